"""The operator's policy: the schema of its file, its values, what applies in a namespace, and warnings about it."""
