"""Recorded requests of a real API server, the outcomes of all and the complete responses to some; and printed explanations.

`python -m tests.golden` updates what is recorded after an intended change. Read every difference before you commit it.
"""
