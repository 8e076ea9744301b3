"""The doors for people at a terminal: one file a command, each with `main(argv) -> exit code`."""
