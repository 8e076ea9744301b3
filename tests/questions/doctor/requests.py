"""Requests for each page: together they use each parameter."""

REQUESTS = {
    "health": [{}, {"refresh": "true", "wait": "20"}],
    "doctor": [{}, {"refresh": "true", "wait": "1.5"}],
}
