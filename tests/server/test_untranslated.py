"""/readyz says that the API server does not send the pods that the policy translates."""

from tests.cli.conftest import pod
from tests.reviewing import request, snapshot
from webhook.review.endpoints import mutate, validate
from webhook.rules.validate.foreign_dialect import NOT_SENT
from webhook.server.state import ServerState


def test_readyz_says_so_until_a_pod_is_translated_or_the_policy_changes():
    used = snapshot(dialects={"hami": "translate"})
    asked = request(pod(limits={"nvidia.com/gpu": "1", "nvidia.com/gpumem": "3000"}))
    state = ServerState(used)
    for endpoint, told in ((validate, True), (mutate, False), (validate, True), (None, False)):
        if endpoint is not None:
            state.reviewed(endpoint(asked, used))
        else:
            state.snapshot = snapshot()
        ready, text = state.readiness()
        assert ready
        assert (f"dialects: {NOT_SENT}" in text.splitlines()) is told
