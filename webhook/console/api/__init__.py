"""The REST API under /api/v1: one file an operation, with its question, its answer, and how one becomes the other."""
