"""The repairs, one a file. Their order is the registry's."""
