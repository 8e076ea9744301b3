"""Requests for each page: together they use each parameter."""

FILTERS = {
    "search": "a",
    "family": "vgpu",
    "name": "*",
    "type": "*",
    "namespace": "a",
    "pod": "b",
    "findings": "true",
    "sort": "pods",
}
REQUESTS = {
    "fleet": [{}, {"search": "npu", "family": "ascend", "name": "*", "type": "Ascend", "limit": "1"}],
    "usage": [{}, FILTERS, {"offset": "1", "limit": "1"}],
}
INVALID = [
    ("/fleet?family=tpu", "family: "),
    ("/fleet?limit=0", "limit: "),
    ("/fleet?limit=1e9", "limit: "),
    ("/fleet?nmae=x", "nmae: no such key; did you mean 'name'?"),
]
