"""One small file a subject, one function a check. A check says nothing of what could not be looked at, but that."""
