"""Why a pod waits: what refuses it on the nodes as they are now."""
