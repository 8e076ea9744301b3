"""Recorded decisions: reading, filtering, summing up and replaying audit logs. Values only: nothing here prints."""
