"""The policy audit log: writing and rotating it; reading, following, indexing, summarising and replaying its decisions."""
