"""Existing objects, reviewed as if they were created now."""
