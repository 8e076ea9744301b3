"""/readyz says that the API server does not send the pods that the policy translates."""

from webhook.devices.config_file import parse_device_config
from webhook.policy.policy import parse_policy
from webhook.review.endpoints import mutate, validate
from webhook.rules.validate.foreign_dialect import NOT_SENT
from webhook.server.state import ServerState
from webhook.settings.snapshot import SnapshotInputs
from webhook.wire.codec import creation

LIMITS = {"nvidia.com/gpu": "1", "nvidia.com/gpumem": "3000"}


def test_readyz_says_so_until_a_pod_is_translated():
    policy = parse_policy({"dialects": {"hami": "translate"}}, "policy")
    snapshot = SnapshotInputs(parse_device_config({}, "config"), policy, None).snapshot()
    containers = [{"name": "main", "image": "i", "resources": {"limits": LIMITS}}]
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {"containers": containers}}
    request = creation("u", "v1", "Pod", "default", pod)
    state = ServerState(snapshot)
    for outcome, told in ((validate(request, snapshot), True), (mutate(request, snapshot), False)):
        state.reviewed(outcome)
        ready, text = state.readiness()
        assert ready
        assert (f"dialects: {NOT_SENT}" in text.splitlines()) is told
