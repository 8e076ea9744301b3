"""Recorded requests of a real API server, and the whole answers to them.

`python -m tests.golden` writes the answers anew after a change that was meant. Read every difference before you commit
it: a golden file is worth what the eye that read it was worth.
"""
