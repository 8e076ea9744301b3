"""Recorded requests of a real API server, and the complete responses.

`python -m tests.golden` updates the responses after an intended change. Read every difference before you commit it.
"""
