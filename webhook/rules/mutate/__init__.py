"""The repairs, one per file. The registry has their order."""
