"""Policy tests: objects with the reviews that they must get, and the rule book with its examples."""
