"""Requests for each page: together they use each parameter."""

FILTERS = {"family": "vgpu", "name": "*", "type": "*", "namespace": "a", "pod": "b", "findings": "true", "sort": "pods"}
REQUESTS = {
    "fleet": [{}, {"family": "ascend", "name": "*", "type": "Ascend", "limit": "1"}],
    "usage": [{}, FILTERS, {"offset": "1", "limit": "1"}],
}
