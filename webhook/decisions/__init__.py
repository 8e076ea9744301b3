"""Recorded decisions: reading, following, holding, filtering, summing up and replaying audit logs. Nothing here prints."""
