"""The checks, one a file. Their order is the registry's; all of them run on every pod."""
