"""The checks, one per file. The registry has their order; all of them run on every pod."""
