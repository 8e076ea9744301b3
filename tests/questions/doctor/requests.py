"""Requests for each page: together they use each parameter."""

REQUESTS = {"health": [{}, {"refresh": "true", "wait": "20"}], "doctor": [{}, {"refresh": "true", "wait": "1.5"}]}
INVALID = [
    ("/health?wait=nan", "wait: "),
    ("/health?wait=-1", "wait: "),
    ("/health?wait=31", "wait: "),
    ("/health?refresh=maybe", "refresh: "),
]
