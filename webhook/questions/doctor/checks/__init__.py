"""One file a subject, one function a check. A check reports what it cannot read as not checked, and nothing else of it."""
