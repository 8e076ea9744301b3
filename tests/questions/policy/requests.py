"""Requests for each page: together they use each parameter."""

from tests.console.conftest import sample_parts

REQUESTS = {"policy": [{"digest": sample_parts().policy.digest}]}
