"""Nothing is enforced that nobody wrote: a replica that never had a valid policy or device config is not ready."""

import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.cluster.apiserver import NODES, ApiServer, config_map, config_maps
from tests.cluster.faults import slow, status
from tests.server.conftest import Start
from tests.server.live import DEVICE_CONFIG, OWN, POLICY, Live, gpu_node, put_device_config, put_policy
from tests.server.program import Authority, Program, until
from tests.server.reviews import review
from webhook.server.limits import ServerLimits

NAMED = ("--policy-map", POLICY)
COUNT = "nvidia.com/gpu"
LENIENT = "rules: {card-count: warn}"
NVIDIA = "nvidia: {resourceCountName: volcano.sh/vgpu-number}"
SOON = ServerLimits(catch_up_seconds=0.2)


@pytest.fixture
def api(authority: Authority) -> Iterator[ApiServer]:
    with ApiServer(authority) as server:
        server.put(NODES, gpu_node("a", 4))
        yield server


def replica(start: Start, api: ApiServer, tmp_path: Path, *options: str) -> Live:
    """A server that listens, ready or not."""
    live = Live(start, api, tmp_path / "kubeconfig", *options, limits=SOON, ready=False)
    until(lambda: listens(live.program))
    return live


def listens(program: Program) -> bool:
    try:
        return program.get("/healthz").status == 200
    except OSError:
        return False


def unready(live: Live, reason: str) -> str:
    """The first line of /readyz; metric, log and reviews agree with it."""
    page = live.program.get("/readyz")
    first = page.body.decode().splitlines()[0]
    assert page.status == 503
    assert first.startswith("not ready: ")
    assert f" {reason}: " in first
    assert live.program.metric("ready") == 0
    assert f'vgpu_webhook_ready{{reason="{reason}"}} 0.0' in live.program.get("/metrics").body.decode()
    before = live.program.metric("bad_requests_total", endpoint="validate", code="503")
    answer = live.program.post("/validate", review())
    assert answer.status == 503, "the failurePolicy decides"
    assert b"/readyz says why" in answer.body
    assert live.program.metric("bad_requests_total", endpoint="validate", code="503") == before + 1
    return first


def makes_right(live: Live, mend: Callable[[], None]) -> None:
    """The replica waits, and becomes ready with what somebody wrote."""
    mend()
    until(live.program.is_ready)
    assert live.page().startswith("ready\n")
    assert live.program.metric("ready", reason="") == 1
    assert 'vgpu_webhook_ready{reason="policy"}' not in live.program.get("/metrics").body.decode()


@pytest.mark.parametrize(
    ("data", "why"),
    [
        ({"policy.yaml": "ofANewerRelease: 1"}, "ofANewerRelease"),
        ({"policy.yaml": ""}, "it is empty; write {} for the default policy"),
        (None, f"there is no ConfigMap {OWN}/{POLICY}, and --policy-map names it"),
    ],
    ids=["invalid", "empty", "deleted"],
)
def test_a_replica_without_a_valid_policy_waits_for_one(
    start: Start, api: ApiServer, tmp_path: Path, data: dict[str, str] | None, why: str
):
    if data is not None:
        api.put(config_maps(OWN), config_map(POLICY, data))
    live = replica(start, api, tmp_path, *NAMED)
    until(lambda: why in live.page())
    assert why in unready(live, "policy")
    assert "it is not known until that is corrected" in live.program.log()
    assert live.program.metric("config_reloads_total", source="policy", result="failure") == 1
    makes_right(live, lambda: put_policy(api, LENIENT))
    until(lambda: "fleet: 1 nodes" in live.page())
    assert live.refused(5) == [], "as the policy says"
    put_policy(api, "rules: [")
    until(lambda: "problem: " in live.page())
    assert live.page().startswith("ready\n"), "a running replica keeps the previous policy"
    assert live.refused(5) == []


def test_a_policy_that_cannot_be_read_is_waited_for(start: Start, api: ApiServer, tmp_path: Path):
    put_policy(api, LENIENT)
    api.fail(config_maps(OWN), status(403))
    live = replica(start, api, tmp_path)
    until(lambda: "403" in live.page())
    assert "403" in unready(live, "policy")
    assert "WARNING not ready: policy: not read yet" in live.program.log()
    makes_right(live, api.heal)


def test_a_replica_that_starts_without_an_api_server_waits_for_it(start: Start, api: ApiServer, tmp_path: Path):
    put_policy(api, LENIENT)
    api.stop()
    live = replica(start, api, tmp_path)
    until(lambda: "Connection refused" in live.page())
    assert live.page().splitlines()[0].count("Connection refused") == 3, (
        "of the device config's two places, and the policy"
    )
    unready(live, "policy")
    makes_right(live, api.start)


def test_an_api_server_that_answers_slowly_is_waited_for(start: Start, api: ApiServer, tmp_path: Path):
    api.fail(".*", slow(0.05, 10_000))
    live = replica(start, api, tmp_path)
    assert "not read yet" in unready(live, "policy")
    assert "not read yet" in unready(live, "device-config")


def test_a_device_config_is_waited_for_likewise(start: Start, api: ApiServer, tmp_path: Path):
    put_policy(api, LENIENT)
    live = replica(start, api, tmp_path, *NAMED, "--device-config-map", DEVICE_CONFIG)
    until(lambda: "and --device-config-map names it" in live.page())
    assert "and --device-config-map names it" in unready(live, "device-config")
    makes_right(live, lambda: put_device_config(api, NVIDIA))


def test_a_worker_that_takes_the_place_of_another_needs_a_valid_policy_too(
    start: Start, api: ApiServer, tmp_path: Path
):
    put_policy(api, LENIENT)
    live = replica(start, api, tmp_path, *NAMED)
    until(live.program.is_ready)
    put_policy(api, "rules: [")
    until(lambda: "problem: " in live.page())
    killed = live.program.worker
    os.kill(killed, signal.SIGKILL)
    until(lambda: killed not in live.program.children and listens(live.program))
    until(lambda: "policy.yaml" in live.page())
    unready(live, "policy")
    makes_right(live, lambda: put_policy(api, LENIENT))


def test_files_need_no_api_server(start: Start, api: ApiServer, tmp_path: Path):
    """The policy and the device config are given, so only the nodes are missing, and nothing is refused because of them."""
    policy, config = tmp_path / "policy", tmp_path / "config"
    policy.write_text(LENIENT)
    config.write_text(NVIDIA)
    api.stop()
    live = Live(start, api, tmp_path / "kubeconfig", "--policy", str(policy), "--device-config", str(config))
    assert live.page().splitlines()[:2] == ["ready", "fleet: unknown, so nothing is refused because of it"]
    assert live.refused(5) == []


def test_the_first_reviews_use_the_settings_of_the_cluster(start: Start, api: ApiServer, tmp_path: Path):
    """After a start, and after a worker died."""
    api.put(NODES, gpu_node("a", 4, COUNT))
    put_device_config(api, f"nvidia: {{resourceCountName: {COUNT}}}")
    put_policy(api, "rules: {visible-devices: deny}")
    live = Live(start, api, tmp_path / "kubeconfig")
    assert live.refused(5, COUNT) == ["card-count"]
    killed = live.program.worker
    os.kill(killed, signal.SIGKILL)
    until(lambda: killed not in live.program.children)
    assert live.refused(5, COUNT) == ["card-count"], "the request was sent while there was no worker"
    api.put(NODES, gpu_node("a", 8, COUNT))
    until(lambda: live.refused(5, COUNT) == [])
    missing = [line for line in live.page().splitlines() if "(there is no" in line]
    assert [line.partition(":")[0] for line in missing] == ["scheduler configuration"]
