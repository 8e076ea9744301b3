"""The settings that a review depends on: what they are, how files give them, and the snapshot that they make."""
