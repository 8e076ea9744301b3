"""The settings watcher in a thread, as a process without an event loop runs it."""

import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace as replace_fields
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from certs.pki import replace
from tests.cases import each_case
from tests.clock import Clock
from tests.cluster.apihttp import Handler
from tests.cluster.apiserver import NODES, ApiServer, config_map, config_maps
from tests.cluster.faults import hang, status
from tests.server.live import DEVICE_CONFIG, OWN, gpu_node, put_device_config, put_policy
from tests.server.program import DATA, SECONDS, until
from webhook.cluster import settings
from webhook.cluster.client import Client
from webhook.cluster.pace import Pace
from webhook.cluster.settings import ClusterSettings
from webhook.cluster.watcher import SettingsWatcher
from webhook.errors import ConfigError
from webhook.settings.sources import ClusterOptions, Paths, SettingStatus, SourceStatus
from webhook.settings.table import COLLECTIONS, DEVICE_CONFIG_NAMESPACES
from webhook.snapshot import Snapshot

QUEUES, QUOTAS, CLASSES = (each.path for each in COLLECTIONS)
QUICK = Pace(files=0.05, pause=0.0, share=1.0, first_delay=0.05, max_delay=0.3)
SPREAD = "tiers: [{plugins: [{name: deviceshare, arguments: {deviceshare.SchedulePolicy: spread}}]}]"


@pytest.fixture(autouse=True)
def switch_interval() -> Iterator[None]:
    """Restore the switch interval: a watcher of a cluster changes it for the process."""
    before = sys.getswitchinterval()
    yield
    sys.setswitchinterval(before)


@pytest.fixture
def files(tmp_path: Path) -> Paths:
    found = {part: tmp_path / part for part in ("config", "policy", "fleet")}
    write(found["config"], (DATA / "config" / "device-config.yaml").read_text())
    write(found["policy"], "{}")
    write(found["fleet"], (DATA / "fleets" / "mixed.yaml").read_text())
    return found


@pytest.fixture
def cluster(api: ApiServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ClusterOptions:
    monkeypatch.setattr(settings, "Client", partial(Client, quiet_seconds=SECONDS))
    api.put(NODES, gpu_node("a", 4))
    return ClusterOptions(api.kubeconfig(tmp_path / "kubeconfig", OWN))


def write(path: Path | None, text: str) -> None:
    """Replace the file atomically, so that the watcher never reads half of it."""
    assert path is not None
    replace(path, text.encode(), 0o644)


def watch(files: Paths, cluster: ClusterOptions | None = None, *more: Any, **pace: Any) -> SettingsWatcher:
    """A watcher that looks often."""
    return SettingsWatcher(files, cluster, *more, pace=replace_fields(QUICK, **pace))


@contextmanager
def running(watcher: SettingsWatcher, patience: float = 0.0) -> Iterator[SettingsWatcher]:
    """Run the watcher; afterwards all of its threads have ended."""
    watcher.start(patience)
    try:
        yield watcher
    finally:
        watcher.stop()
    until(lambda: not threads())


def threads() -> list[str]:
    """The threads of watchers, without those of the fake API server."""
    names = [thread.name for thread in threading.enumerate()]
    return [name for name in names if name.startswith(("settings", "reflector"))]


def source(watcher: SettingsWatcher, name: str) -> SettingStatus:
    """The status of a setting; the scheduler configuration has one only with a cluster."""
    found = {state.name: state for state in watcher.statuses()}
    assert list(found)[:3] == ["device config", "policy", "fleet"]
    return found[name]


def test_files_are_read_before_the_watcher_runs(files: Paths):
    watcher = watch(files)
    assert watcher.snapshot.fleet is not None
    assert watcher.snapshot.fleet.nodes == 4
    assert (tuple(watcher.lines()), watcher.age(), watcher.problems) == ((), None, {})
    origins = [(state.source.origin, state.source.problem, state.source.age) for state in watcher.statuses()]
    assert origins == [(str(path), None, None) for path in files.values()]
    digests = watcher.snapshot.digests
    assert [state.digest for state in watcher.statuses()] == [digests[part] for part in ("config", "policy", "fleet")]


def test_default_settings_have_an_origin(tmp_path: Path):
    watcher = watch({})
    assert [state.source.origin for state in watcher.statuses()] == [
        "Volcano's built-in defaults",
        "the default policy",
        "no file and no cluster",
    ]
    assert source(watcher, "fleet").digest == "unknown"
    write(tmp_path / "policy", "fleet: {declared: [{name: h100, cards: [{type: H100, memory: 95000}]}]}")
    declared = watch({"policy": tmp_path / "policy"})
    assert source(declared, "fleet").source.origin == "the shapes that the policy declares"


def test_a_bad_file_at_the_start_is_an_error(files: Paths):
    write(files["policy"], "rules: {no-such-rule: deny}")
    with pytest.raises(ConfigError, match="no-such-rule"):
        watch(files)


def test_a_changed_file_is_loaded_and_only_its_date_changes(files: Paths):
    used, read = [], []
    watcher = watch(files, None, used.append, lambda *report: read.append(report))
    before, started = {state.name: state for state in watcher.statuses()}, datetime.now(UTC)
    with running(watcher):
        write(files["policy"], "schedulerName: other\nschedulerNames: [other]")
        until(lambda: watcher.snapshot.policy.scheduler_name == "other")
    after = {state.name: state for state in watcher.statuses()}
    assert after["policy"].digest != before["policy"].digest
    assert started <= after["policy"].since <= datetime.now(UTC)
    assert {name for name in after if after[name] == before[name]} == {"device config", "fleet"}
    assert used == [watcher.snapshot]
    assert read == [("policy", True)]


@pytest.mark.parametrize(
    ("name", "field", "text"),
    [
        ("device config", "config", "nvidia: ["),
        ("policy", "policy", "rules: {no-such-rule: deny}"),
        ("policy", "policy", "# a template that failed\n"),
        ("fleet", "fleet", "kind: Secret"),
    ],
)
def test_a_bad_file_is_reported_and_the_last_good_one_stays_in_use(files: Paths, name: str, field: str, text: str):
    path: Path = files[field]
    watcher, good = watch(files), path.read_text()
    snapshot, before = watcher.snapshot, watcher.statuses()
    with running(watcher):
        write(path, text)
        problem = until(lambda: source(watcher, name).source.problem)
        assert str(path) in problem
        assert watcher.problems == {"policy" if field == "policy" else "device-config, fleet": problem}
        assert [state.name for state in watcher.statuses() if state.source.problem] == [name]
        assert watcher.snapshot is snapshot
        if field != "policy":
            other = files["config" if field == "fleet" else "fleet"]
            write(other, other.read_text() + "\n")
            wait = f"; what changed in {other} is not used either until this is mended"
            until(lambda: wait in watcher.problems["device-config, fleet"])
        write(path, good)
        until(lambda: not watcher.problems)
    assert watcher.statuses() == before, "the statuses are the same as before"


@each_case("broken", ["config", "fleet"])
def test_a_new_policy_does_not_wait_for_an_unusable_file(files: Paths, cluster: ClusterOptions, broken: str):
    for watcher in (watch(files), watch(files, cluster)):
        good, fleet = files[broken].read_text(), watcher.snapshot.digests["fleet"]
        with running(watcher):
            write(files[broken], "{")
            until(lambda watcher=watcher: watcher.problems)
            write(files["policy"], "enforcement: warn")
            until(lambda watcher=watcher: watcher.snapshot.policy.enforcement == "warn")
            assert watcher.snapshot.digests["fleet"] == fleet
            assert watcher.problems
        write(files[broken], good)
        write(files["policy"], "{}")


def test_a_pipe_is_read_once(files: Paths):
    """`--policy <(…)` is a pipe: a second read would return nothing, and an empty policy is the default one."""
    files["policy"].unlink()
    os.mkfifo(files["policy"])
    os.utime(files["policy"], ns=(1, 1))  # so that writing changes it, however soon that is
    writer = threading.Thread(target=files["policy"].write_text, args=("rules: {card-count: warn}",))
    writer.start()
    watcher = watch(files)
    writer.join()
    digest = watcher.snapshot.digests["policy"]
    with running(watcher):
        write(files["fleet"], (DATA / "fleets" / "rtx4090.yaml").read_text())
        until(
            lambda: any("a pipe cannot be read again" in (state.source.problem or "") for state in watcher.statuses())
        )
        assert watcher.snapshot.digests["policy"] == digest
        files["policy"].unlink()
        write(files["policy"], "rules: {card-count: audit}")
        until(lambda: watcher.snapshot.digests["policy"] != digest)


def test_a_fleet_file_with_far_fewer_nodes_is_read_again(files: Paths):
    """A file that is being written is valid at the end of each node."""
    whole = files["fleet"].read_text()
    seen: list[tuple[bool, int, str]] = []

    def note(_source: str, usable: bool) -> None:
        assert watcher.snapshot.fleet is not None
        seen.append((usable, watcher.snapshot.fleet.nodes, source(watcher, "fleet").source.problem or ""))

    with running(watch(files, None, lambda _: None, note)) as watcher:
        write(files["fleet"], whole[: whole.index("- apiVersion", whole.index("gpu-a"))])
        until(lambda: len(seen) == 2)
    (usable, nodes, problem), *rest = seen
    assert (usable, nodes) == (False, 4)
    assert f"{whole.count('- apiVersion')} before; it may not be complete yet" in problem
    assert rest == [(True, 1, "")]


def test_inputs_are_those_of_the_snapshot(files: Paths, cluster: ClusterOptions):
    watcher = watch(files)
    inputs = watcher.inputs
    assert watcher.inputs is inputs
    assert inputs.snapshot().digests == watcher.snapshot.digests
    with running(watcher):
        write(files["fleet"], (DATA / "fleets" / "cpu-only.yaml").read_text())
        until(lambda: watcher.inputs.nodes == [])
    live = watch({}, cluster)
    with running(live):
        until(lambda: [node.name for node in live.inputs.nodes or ()] == ["a"])


def test_start_waits_for_a_snapshot_with_what_became_known_while_one_was_built(
    api: ApiServer, cluster: ClusterOptions, monkeypatch: pytest.MonkeyPatch
):
    read = ClusterSettings.read

    def read_slowly(sources: ClusterSettings) -> Any:
        # Then all four ConfigMaps are listed: device config (two), policy and scheduler. So reading knows them, and begins to
        # follow the nodes.
        places = (OWN, *DEVICE_CONFIG_NAMESPACES)
        until(lambda: sum(len(api.requests_for(config_maps(each), watch=True)) for each in places) >= 4)
        found = read(sources)
        until(lambda: sources.settled)
        return found

    monkeypatch.setattr(ClusterSettings, "read", read_slowly)
    with running(watch({}, cluster), patience=SECONDS) as watcher:
        assert watcher.snapshot.fleet is not None


def test_the_cluster_is_followed(api: ApiServer, cluster: ClusterOptions):
    put_policy(api, "schedulerName: first\nschedulerNames: [first]")
    with running(watch({}, cluster), patience=SECONDS) as watcher:
        assert watcher.snapshot.fleet is not None, "start waits until the nodes are listed"
        assert watcher.snapshot.fleet.nodes == 1
        policy, fleet = source(watcher, "policy"), source(watcher, "fleet")
        assert policy.source.origin == f"ConfigMap {OWN}/vgpu-webhook-policy"
        assert source(watcher, "device config").source.origin.startswith("Volcano's built-in defaults (there is no ")
        assert (fleet.source.origin, fleet.source.problem) == ("the API server", None)
        assert fleet.source.age is not None
        assert 0 <= fleet.source.age <= watcher.age()
        put_policy(api, "rules: {no-such-rule: deny}")
        assert "no-such-rule" in until(lambda: source(watcher, "policy").source.problem)
        assert source(watcher, "policy").digest == policy.digest
        put_device_config(api, "nvidia: {resourceCountName: example.org/gpu}")
        until(lambda: watcher.snapshot.config.vgpu.number_name == "example.org/gpu")
        before = source(watcher, "device config")
        assert before.source.origin == f"ConfigMap kube-system/{DEVICE_CONFIG}"
        api.delete(config_maps("kube-system"), DEVICE_CONFIG)
        until(lambda: source(watcher, "device config").digest != before.digest)
        after = source(watcher, "device config")
        assert after.since > before.since, "the date is that of the deletion"
        assert "there is no ConfigMap" in after.source.origin


def test_nodes_wait_for_the_device_config(api: ApiServer, cluster: ClusterOptions):
    """The device config has the names of the resources to read from nodes."""
    api.fail("/api/v1/namespaces/kube-system/configmaps", status(403, message="configmaps is forbidden"))
    with running(watch({}, cluster)) as watcher:
        until(lambda: "403 configmaps" in (source(watcher, "device config").source.problem or ""))
        until(lambda: len(api.requests_for("/api/v1/namespaces/kube-system/configmaps")) > 3)
        assert (api.requests_for(NODES), watcher.snapshot.fleet) == ([], None)
        api.heal()
        until(lambda: watcher.snapshot.fleet)


def test_a_change_soon_after_another_waits_for_the_pause(api: ApiServer, cluster: ClusterOptions, tmp_path: Path):
    clock, looks, policy = Clock(), [], tmp_path / "policy"
    write(policy, "{}")
    watcher = watch({"policy": policy}, cluster, lambda _: None, lambda *_: looks.append(1), pause=3.0, clock=clock)

    def cards() -> int:
        return len(watcher.snapshot.fleet.vgpu.shapes[0].devices)

    def await_turn() -> None:
        """Until another turn has begun, which looks at files first."""
        before = len(looks)
        write(policy, policy.read_text() + " ")
        until(lambda: len(looks) > before)

    with running(watcher, patience=SECONDS):
        api.put(NODES, gpu_node("a", 5))
        until(lambda: cards() == 5)
        await_turn()
        clock.now += 2
        api.put(NODES, gpu_node("a", 6))
        until(lambda: watcher.age() == 0.0)
        await_turn()
        await_turn()
        assert cards() == 5
        clock.now += 1
        until(lambda: cards() == 6)


def test_the_scheduler_its_queues_and_device_classes_are_followed(api: ApiServer, cluster: ClusterOptions):
    queue = {"metadata": {"name": "research"}, "spec": {"parent": "root"}, "status": {"state": "Open", "pending": 1}}
    served = {"kind": "DeviceClass", "metadata": {"name": "whole"}, "spec": {"extendedResourceName": "example.com/gpu"}}
    api.put(CLASSES, served)
    with running(watch({}, cluster), patience=SECONDS) as watcher:
        assert watcher.snapshot.target.scheduler is None
        assert source(watcher, "scheduler configuration").digest == "unknown"
        api.put(config_maps("volcano-system"), config_map("volcano-scheduler-configmap", {"mine.conf": SPREAD}))
        until(lambda: watcher.snapshot.target.policies == ("spread",))
        assert source(watcher, "scheduler configuration").digest == watcher.snapshot.digests["scheduler"]
        api.put(QUEUES, queue)
        until(lambda: (queues := watcher.snapshot.collections.queues) and "research" in queues.by_name)
        assert source(watcher, "list of queues").digest == watcher.snapshot.digests["queues"]
        assert source(watcher, "list of queues").source == SourceStatus("the API server")
        before = watcher.snapshot
        api.put(QUEUES, {**queue, "status": {"state": "Open", "pending": 2}})  # as after each scheduling cycle
        api.put(QUEUES, {"metadata": {"name": "other"}})
        until(lambda: "other" in watcher.snapshot.collections.queues.by_name)
        assert watcher.snapshot.collections.queues.by_name["research"] is before.collections.queues.by_name["research"]
        api.put(QUEUES, {**queue, "status": {"state": "Closed"}})
        until(lambda: not watcher.snapshot.collections.queues.by_name["research"].is_open)
        until(lambda: watcher.snapshot.collections.classes.by_resource == {"example.com/gpu": "whole"})
        assert watcher.snapshot.collections.classes.complete
        assert source(watcher, "list of DeviceClasses").source.problem is None
        api.put(CLASSES, {**served, "metadata": {"name": "odd"}, "spec": {"extendedResourceName": 5}})
        until(lambda: not watcher.snapshot.collections.classes.complete)
        assert source(watcher, "list of DeviceClasses").source.problem == (
            "DeviceClass odd: spec.extendedResourceName is no text"
        )


@pytest.mark.parametrize(
    ("path", "refused", "known"),
    [
        (QUEUES, 403, True),  # they are optional
        (QUEUES, 404, True),
        (CLASSES, 403, False),  # they may serve anything
        (CLASSES, 404, True),
        (config_maps("volcano-system"), 403, False),
    ],
)
def test_what_cannot_be_read_is_unknown(api: ApiServer, cluster: ClusterOptions, path: str, refused: int, known: bool):
    watcher = watch({"config": DATA / "config" / "device-config.yaml"}, cluster)

    def refuse(handler: Handler) -> None:
        until(lambda: watcher.snapshot.fleet)  # there is a snapshot with all else, which it changes
        handler.refuse(refused, "a refusal")

    api.fail(path, refuse)
    with running(watcher, patience=SECONDS):
        assert watcher.snapshot.fleet is not None
        assert watcher.snapshot.target.scheduler is None
        assert watcher.snapshot.collections.queues is None or path != QUEUES
        classes = watcher.snapshot.collections.classes
        assert (classes is None or classes.complete) is (known or path != CLASSES)
        name = {QUEUES: "list of queues", CLASSES: "list of DeviceClasses"}.get(path, "scheduler configuration")
        shown = source(watcher, name).source
        assert str(refused) in shown.text
        assert ("reading ConfigMap volcano-system/" in shown.text) is ("configmaps" in path)
        assert (shown.problem is None) is known
    assert len(api.requests_for(path)) == 1, "they are retried much later"


def test_quotas_are_followed_while_a_rule_reads_them(api: ApiServer, cluster: ClusterOptions):
    quota = {"kind": "ResourceQuota", "spec": {"hard": {"limits.volcano.sh/vgpu-memory": 1000}}}
    for namespace in ("team-a", "team-b"):
        api.put(QUOTAS, {**quota, "metadata": {"name": f"gpus-of-{namespace}", "namespace": namespace}})
    put_policy(api, "rules: {quota-memory: off}")
    with running(watch({}, cluster), patience=SECONDS) as watcher:
        assert watcher.snapshot.fleet is not None
        assert (watcher.snapshot.collections.quotas, api.requests_for(QUOTAS)) == (None, [])
        put_policy(api, "{}")
        until(lambda: watcher.snapshot.collections.quotas is not None)
        found = watcher.snapshot.collections.quotas
        assert [len(found.of(f"team-{letter}")) for letter in "abc"] == [1, 1, 0]
        assert source(watcher, "list of quotas").digest == watcher.snapshot.digests["quotas"]
        put_policy(api, "rules: {quota-memory: off}")
        until(lambda: watcher.snapshot.collections.quotas is None)
        assert "list of quotas" not in {each.name for each in watcher.statuses()}, "no rule reads them any more"


def test_files_override_the_cluster(files: Paths, api: ApiServer, cluster: ClusterOptions):
    watcher = watch(files, cluster)
    put_policy(api, "rules: {no-such-rule: deny}")
    with running(watcher, patience=SECONDS):
        assert {request.path for request in api.requests} == {config_maps("volcano-system"), QUEUES, QUOTAS, CLASSES}
        assert watcher.age() is None
        assert not watcher.unknown
        assert source(watcher, "policy").source.origin == str(files["policy"])
        assert source(watcher, "policy").source.problem is None
        write(files["policy"], "schedulerName: other\nschedulerNames: [other]")
        until(lambda: watcher.snapshot.policy.scheduler_name == "other")


def test_a_fleet_file_is_read_with_the_device_config_of_the_cluster(
    files: Paths, api: ApiServer, cluster: ClusterOptions
):
    put_device_config(api, "nvidia: {resourceCountName: example.org/gpu}")
    with running(watch({"fleet": files["fleet"]}, cluster), patience=SECONDS) as watcher:
        assert source(watcher, "device config").source.origin == f"ConfigMap kube-system/{DEVICE_CONFIG}"
        assert watcher.snapshot.config.vgpu.number_name == "example.org/gpu"
        assert (source(watcher, "fleet").source.origin, watcher.snapshot.fleet.nodes) == (str(files["fleet"]), 4)
        assert api.requests_for(NODES) == []


def test_an_unreachable_api_server_is_reported(api: ApiServer, cluster: ClusterOptions):
    api.stop()
    with running(watch({}, cluster), patience=SECONDS) as watcher:
        assert watcher.snapshot.fleet is None
        # The device config, in two places, the policy, the scheduler's configuration, queues and DeviceClasses.
        until(lambda: "".join(watcher.lines()).count("Connection refused") == 6)
        config, fleet = source(watcher, "device config"), source(watcher, "fleet")
        assert config.source.origin == "unknown"
        assert list(watcher.unknown) == ["device-config", "policy"]
        assert config.source.problem.startswith("not read yet; ConfigMap kube-system/")
        assert "Connection refused" in config.source.problem
        assert (fleet.source.problem, fleet.digest) == ("not listed yet", "unknown")
        assert fleet.source.age > 0
        api.start()
        until(lambda: watcher.snapshot.fleet is not None)
        until(lambda: {state.source.problem for state in watcher.statuses()} == {None})
        assert not watcher.unknown
        api.stop()
        assert "last news" in until(lambda: source(watcher, "fleet").source.problem)
        assert watcher.snapshot.fleet is not None, "it is not stale yet"


def test_nodes_and_collections_get_stale_without_news(api: ApiServer, cluster: ClusterOptions):
    put_policy(api, "fleet: {staleAfterSeconds: 100}")
    clock = Clock()
    with running(watch({}, cluster, clock=clock), patience=SECONDS) as watcher:
        assert watcher.snapshot.fleet
        assert watcher.snapshot.collections.queues
        api.stop()
        clock.now += 101
        until(lambda: (watcher.snapshot.fleet, watcher.snapshot.collections.queues) == (None, None))


def test_nothing_waits_for_an_unresponsive_api_server(api: ApiServer, cluster: ClusterOptions):
    api.fail(".*", hang)
    watcher = watch({}, cluster)
    watcher.start(patience=0.1)
    until(lambda: len(api.requests) == 6)
    assert not watcher.settled.is_set()
    watcher.stop()
    assert threads(), "stop does not wait for those that wait for the first byte of a response"
    api.stop()
    until(lambda: not threads())


def test_it_can_be_stopped_at_any_time(files: Paths, cluster: ClusterOptions):
    watcher = watch(files)
    watcher.stop()
    watcher.start()
    until(lambda: not threads())
    for _ in range(10):
        watcher = watch({}, cluster)
        watcher.start()
        watcher.stop()
        watcher.stop()
    until(lambda: not threads())


def test_a_bug_is_logged_and_later_changes_are_used(files: Paths, caplog: pytest.LogCaptureFixture):
    used: list[str] = []

    def use(snapshot: Snapshot) -> None:
        used.append(snapshot.digests["policy"])
        assert len(used) > 1, "a bug"

    with running(watch(files, None, use)) as watcher:
        write(files["policy"], "rules: {card-count: warn}")
        until(lambda: "policy: a bug" in caplog.text)
        write(files["policy"], "{}")
        until(lambda: len(used) == 2 and not watcher.problems)


def test_without_a_cluster_the_kubernetes_client_is_not_imported(files: Paths):
    script = (
        "import sys, webhook.cli.console, webhook.cli.serve\n"
        "from webhook.cluster.watcher import SettingsWatcher; from webhook.settings.sources import or_samples\n"
        "SettingsWatcher(or_samples({}), None).start(1)\n"
        "assert not {'kubernetes', 'urllib3'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", script], check=True, env=os.environ | {"KUBECONFIG": "/nowhere"})
