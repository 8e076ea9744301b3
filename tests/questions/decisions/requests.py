"""Requests for each page: together they use each parameter."""

FILTERS = {
    "since": "2020-01-01",
    "until": "2099-01-01",
    "refused": "true",
    "rule": ["cores-range", "*"],
    "namespace": "*",
    "user": "*",
    "name": "*",
    "outcome": "refused",
    "dryRun": "false",
    "endpoint": "validate",
    "id": "0123456789ab",
}
REQUESTS = {
    "decisions": [{}, {**FILTERS, "before": "1000", "limit": "5"}, {"after": "1"}],
    "decisions_summary": [{}, FILTERS],
    "decision": [{"key": "1"}],
}
