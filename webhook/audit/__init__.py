"""The policy audit log: writing it; reading, following, indexing, summarising and replaying its decisions."""
