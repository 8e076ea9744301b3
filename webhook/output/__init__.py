"""Values as people and programs read them: JSON, YAML, and two objects as lines with what differs."""
