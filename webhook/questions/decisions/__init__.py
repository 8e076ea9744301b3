"""What was decided: the command that reads the audit log, and the page Decisions."""
