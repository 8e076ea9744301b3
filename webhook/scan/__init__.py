"""Judging what a cluster already holds: objects as they are stored, not as requests bring them. Pure, like the engine."""
