"""Recorded requests of a real API server: the outcomes of all, and the complete responses to some.

`python -m tests.golden` updates both after an intended change. Read every difference before you commit it.
"""
