"""/readyz says that the API server does not send the pods that the policy translates."""

from tests.cli.conftest import pod
from tests.reviewing import request, snapshot
from webhook.review.endpoints import mutate, validate
from webhook.rules.validate.foreign_dialect import NOT_SENT
from webhook.server.state import ServerState


def test_readyz_says_so_until_a_pod_is_translated():
    used = snapshot(dialects={"hami": "translate"})
    asked = request(pod(limits={"nvidia.com/gpu": "1", "nvidia.com/gpumem": "3000"}))
    state = ServerState(used)
    for endpoint, told in ((validate, True), (mutate, False)):
        state.reviewed(endpoint(asked, used))
        ready, text = state.readiness()
        assert ready
        assert (f"dialects: {NOT_SENT}" in text.splitlines()) is told
