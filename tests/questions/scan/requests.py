"""Requests for each page: together they use each parameter."""

REQUESTS = {"scan": [{"wait": "30"}, {"namespace": "team-c", "refresh": "true", "wait": "0"}]}
INVALID = [("/scan?wait=31", "wait: "), ("/scan?namespace=" + "x" * 254, "namespace: ")]
