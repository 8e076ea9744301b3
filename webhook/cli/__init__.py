"""The command line: one module for each command, `main` that runs it, and the options that commands share."""
