"""The console as a user has it before them: a real process, a real browser."""
