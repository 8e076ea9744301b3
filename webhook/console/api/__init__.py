"""The REST API under /api/v1: one file an operation, with its question, its answer, and how one becomes the other.

What does not fit into the file of an operation stands beside it and begins with its name: `review_answers`,
`decision_summary`. Nothing here knows of pages.
"""
