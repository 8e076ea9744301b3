"""Values as text for the terminal and for other programs: one module for each command. Nothing here reads or decides."""
