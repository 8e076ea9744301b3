"""Why a pod waits: the answer, the command `why`, the page, and the Events, which deploy/components/events writes."""
