"""How outcomes are told: to a person at a terminal, to a program, or as drawings for whoever paints them. Decides nothing."""
