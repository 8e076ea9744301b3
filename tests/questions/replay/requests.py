"""Requests for each page: together they use each parameter."""

REQUESTS = {"replay": [{"key": "1"}, {"key": "1", "settings": ["rules.card-count=warn"], "split": "4"}]}
