"""Why a pod waits: the answer, the command `why`, the page and the Events that tell the author."""
