"""`serve --cluster`: a replica that never had a valid policy or device config is not ready; later, it uses the last one."""

import os
import signal
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tests.cluster.apiserver import NODES, ApiServer, config_maps
from tests.cluster.faults import slow, status
from tests.server.conftest import Start
from tests.server.live import DEVICE_CONFIG, OWN, POLICY, QUICK, Live, gpu_node, put_device_config, put_policy
from tests.server.program import PATIENT, Authority, Program, until
from tests.server.reviews import review

NAMED = ("--policy-map", POLICY)
COUNT = "nvidia.com/gpu"
LENIENT = "rules: {card-count: warn}"
NVIDIA = "nvidia: {resourceCountName: volcano.sh/vgpu-number}"
SOON = replace(PATIENT, catch_up_seconds=0.2)


@pytest.fixture
def api(authority: Authority) -> Iterator[ApiServer]:
    with ApiServer(authority) as server:
        server.put(NODES, gpu_node("a", 4))
        yield server


def replica(start: Start, api: ApiServer, tmp_path: Path, *options: str) -> Live:
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


Spoil = Callable[[ApiServer], object]
NOT_READ = "not ready: policy: not read yet"
SPOILT: dict[str, tuple[Spoil, tuple[str, ...], str, str, str]] = {
    # What is wrong at the start, options, the reasons, why, and a part of the log.
    "an invalid policy": (
        lambda api: put_policy(api, "ofANewerRelease: 1"), NAMED, "policy", "ofANewerRelease",
        "it is not known until that is corrected",
    ),
    "no policy": (
        lambda api: api.delete(config_maps(OWN), POLICY), NAMED, "policy",
        f"there is no ConfigMap {OWN}/{POLICY}, and --policy-map names it", "",
    ),
    "a policy that may not be read": (
        lambda api: api.fail(config_maps(OWN), status(403)), (), "policy", "403", f"WARNING {NOT_READ}",
    ),
    "no API server": (ApiServer.stop, (), "policy device-config", "Connection refused", NOT_READ),
    "a slow API server": (
        lambda api: api.fail(".*", slow(0.05, 10_000)), (), "policy device-config", "not read yet", NOT_READ,
    ),
    "no device config": (
        lambda api: None, ("--device-config-map", DEVICE_CONFIG), "device-config", "and --device-config-map names it", "",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", SPOILT)
def test_a_replica_without_valid_settings_waits_for_them(start: Start, api: ApiServer, tmp_path: Path, name: str):
    spoil, options, reasons, why, logged = SPOILT[name]
    put_policy(api, LENIENT)
    spoil(api)
    live = replica(start, api, tmp_path, *options)
    until(lambda: why in live.page())
    for reason in reasons.split():
        assert why in unready(live, reason)
    assert logged in live.program.log()

    def mend() -> None:
        api.heal()
        put_policy(api, LENIENT)
        put_device_config(api, NVIDIA)
        if name == "no API server":
            api.start()

    makes_right(live, mend)
    until(lambda: "fleet: 1 nodes" in live.page())
    assert live.refused(5) == [], "as the policy says"


def test_a_worker_that_takes_the_place_of_another_needs_a_valid_policy_too(
    start: Start, api: ApiServer, tmp_path: Path
):
    put_policy(api, LENIENT)
    live = replica(start, api, tmp_path, *NAMED)
    until(live.program.is_ready)
    put_policy(api, "rules: [")
    until(lambda: "problem: " in live.page())
    assert live.page().startswith("ready\n"), "a running replica keeps the previous policy"
    assert live.refused(5) == []
    killed = live.program.worker
    os.kill(killed, signal.SIGKILL)
    until(lambda: killed not in live.program.children and listens(live.program))
    until(lambda: "policy.yaml" in live.page())
    unready(live, "policy")
    until(lambda: live.program.metric("config_reloads_total", source="policy", result="failure") == 1)
    assert 'config_last_reload_successful{source="policy"} 0.0' in live.program.get("/metrics").body.decode()
    makes_right(live, lambda: put_policy(api, LENIENT))
    assert live.program.metric("config_last_reload_successful", source="policy") == 1


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
    ready, fleet, *lines = live.page().splitlines()
    assert (ready, fleet[:27]) == ("ready", "fleet: 1 nodes with devices")
    assert lines[:2] == [f"device config: ConfigMap kube-system/{DEVICE_CONFIG}", f"policy: ConfigMap {OWN}/{POLICY}"]
    assert lines[2].startswith("scheduler configuration: unknown (there is no ConfigMap volcano-system/")
    assert lines[3:6] == [f"list of {each}: the API server" for each in ("queues", "quotas", "DeviceClasses")]
    assert lines[6].startswith("fleet: the API server, last news ")
    assert live.program.metric("fleet_nodes", family="vgpu") == 1
    assert 0 <= live.program.metric("fleet_age_seconds") < 3600


# --- while the API server is down, reviews continue, and no pod is refused for unknown nodes ---------------------------


def test_a_fleet_gets_stale_and_comes_back(start: Start, api: ApiServer, tmp_path: Path):
    put_policy(api, "fleet: {staleAfterSeconds: 3}")
    # A fleet that gets stale takes effect at once; only changes of nodes wait for the pause.
    live = Live(start, api, tmp_path / "kubeconfig", pace=replace(QUICK, pause=60))
    until(lambda: live.refused(5) == ["card-count"])
    api.stop()
    until(lambda: live.refused(5) == [])
    page = live.page()
    assert "fleet: unknown" in page
    assert "more than the 3 s after which they count as unknown" in page
    assert live.program.metric("fleet_nodes") == 0
    assert live.program.metric("fleet_age_seconds") > 3
    api.start()
    until(lambda: live.refused(5) == ["card-count"])
    until(lambda: live.program.metric("fleet_age_seconds") < 3)
    assert "Traceback" not in live.program.log()


def test_sigterm_ends_it_at_once(start: Start, api: ApiServer, tmp_path: Path):
    live = Live(start, api, tmp_path / "kubeconfig")
    until(lambda: live.refused(5) == ["card-count"])
    api.fail(NODES, lambda handler: handler.api.sleep(300), watch=True)
    api.break_watches()
    until(lambda: len(api.requests_for(NODES, watch=True)) >= 2)
    live.program.process.terminate()
    assert live.program.process.wait() == 0
    assert "SIGKILL" not in live.program.log()
    assert "Traceback" not in live.program.log()


def test_sigterm_ends_the_threads_that_watch(start: Start, api: ApiServer, tmp_path: Path):
    live = Live(start, api, tmp_path / "kubeconfig", "--drain-seconds", "3600")
    until(lambda: live.refused(5) == ["card-count"] and api.requests_for(NODES, watch=True))
    threads = Path(f"/proc/{live.program.worker}/task")
    before = len(list(threads.iterdir()))
    live.program.process.terminate()
    until(lambda: len(list(threads.iterdir())) <= before - 4)  # of three ConfigMaps and the nodes
    assert live.refused(5) == ["card-count"], "pods are still reviewed while it drains"
    live.program.process.kill()
