"""Requests for each page: together they use each parameter."""

REQUESTS = {
    "rules": [{}, {"namespace": "team", "search": "memory"}],
    "rule": [{"id": "cores-range"}, {"id": "memory-above-card", "namespace": "team"}],
}
INVALID = [(f"/rules?namespace={'a' * 300}", "namespace: ")]
