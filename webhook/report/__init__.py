"""How outcomes are told: to a person at a terminal, or to a program. Decides nothing."""
