"""Coverage-guided fuzzing: `python -m tests.fuzz KIND` searches inputs that break an invariant of `targets`."""
