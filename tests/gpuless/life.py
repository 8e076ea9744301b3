"""The life of pods, with and without the webhook: `make life` plays scenarios.yaml, and writes the table of docs/proof.md.

Each pod is created in a namespace that the API server never sends to the webhook, and then in one that it does. Reality that
differs from the scenario fails.
"""

import argparse
import re
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from tests.docs.generated import DOCS
from tests.docs.markdown import set_part, shown, tables
from tests.e2e.api import Api
from tests.e2e.objects import Object, custom_resource, namespace_objects, pods
from tests.gpuless.cluster import GpuCluster, in_own_directory
from tests.gpuless.images import BUSYBOX
from tests.ledger import record

PAGE = DOCS / "proof.md"
SCENARIOS = Path(__file__).with_name("scenarios.yaml")
PAST = "past"  # the webhook
REVIEWED = "reviewed"
MOVING = "moving"  # the same, with HAMi's names translated
STRICT = "strict"  # the same, with the repairs off that a scenario needs
GROUPS = {"Job": "batch/v1", "Deployment": "apps/v1", "RayCluster": "ray.io/v1"}
STARTS = 12.0  # seconds; most pods need two
MAX_SHOWN = 600  # characters of a difference
NEVER = 5.0  # a pod that is pending after 25 cycles of the scheduler stays pending
OFF = ["default-number", "percentage-to-memory", "limits-from-requests", "lower-memory", "toleration"]
MATCHED = [
    {"match": [STRICT], "repairs": dict.fromkeys(OFF, False)},
    {"match": [MOVING], "dialects": {"hami": "translate"}},
]
POLICY = {"namespaces": MATCHED}
WHY = "UnexpectedAdmissionError|untolerated taint|DeviceSharing error"  # of what was seen, in the table
HEAD = ["| pod | without the webhook | the webhook | then |", "|---|---|---|---|"]
NODE = "/api/v1/nodes/a100-1"
TAINT = {"key": "volcano.sh/vgpu", "value": "true", "effect": "NoSchedule"}
CONFIG_SECONDS = 2.0  # until the webhook follows a change of the device config
VALUES = {"excludedNamespaces": [PAST], "allPods": True, "policy": POLICY}
SHOW = "env; echo MOUNTS; cat /proc/mounts; sleep 100000"


@dataclass
class Seen:
    """What became of a pod: its phase (`Refused` if it was not created), and why in the words of Kubernetes or Volcano."""

    phase: str
    message: str = ""
    warnings: tuple[str, ...] = ()
    environment: dict[str, str] = field(default_factory=dict)

    def __str__(self) -> str:
        return f"{self.phase}: {self.message}" if self.message else self.phase


def load() -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = yaml.safe_load(SCENARIOS.read_text())
    return found


def manifest(scenario: dict[str, Any]) -> Object:
    """The pod of a scenario, or the workload that makes several of it."""
    pod = _pod(scenario["pod"])
    if "workload" not in scenario:
        return pod
    kind, spec, labels = scenario["kind"], scenario["workload"], {"app": "life"}
    template = {"metadata": pod["metadata"] | {"labels": labels}, "spec": pod["spec"]}
    if kind == "Deployment":
        spec = {"selector": {"matchLabels": labels}} | spec
        template["spec"] = template["spec"] | {"restartPolicy": "Always"}
    spec = spec | {"template": template}
    if kind == "RayCluster":
        workers = [{"groupName": "workers"} | spec]
        spec = {"headGroupSpec": {"template": _pod(scenario["head"])}, "workerGroupSpecs": workers}
    return {"apiVersion": GROUPS[kind], "kind": kind, "metadata": {"name": "life"}, "spec": spec}


def made(scenario: dict[str, Any]) -> list[Object]:
    """The pods that the operator of a workload would create, as none runs on the cluster."""
    if "head" not in scenario:
        return []
    workers = [scenario["pod"]] * scenario["workload"]["replicas"]
    found = [_pod(pod) for pod in (scenario["head"], *workers)]
    return [pod | {"metadata": pod["metadata"] | {"name": f"life-{at}"}} for at, pod in enumerate(found)]


def _pod(pod: dict[str, Any]) -> Object:
    main = _container("main", pod.get("limits"), pod.get("requests")) | pod.get("container", {})
    main["env"] = [{"name": name, "value": value} for name, value in pod.get("env", {}).items()]
    containers = [main, *(_container(f"more{at}", limits) for at, limits in enumerate(pod.get("more", ())))]
    spec: Object = {"containers": containers, "restartPolicy": "Never", "terminationGracePeriodSeconds": 0}
    if "init" in pod:
        spec["initContainers"] = [_container("init", pod["init"]) | {"command": ["true"]}]
    if "sidecar" in pod:
        spec["initContainers"] = [_container("sidecar", pod["sidecar"]) | {"restartPolicy": "Always"}]
    scheduler = pod.get("scheduler", "volcano")
    spec |= ({"schedulerName": scheduler} if scheduler else {}) | pod.get("spec", {})
    metadata = {"name": "life", "annotations": pod.get("annotations", {})}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


def _container(name: str, limits: dict[str, Any] | None, requests: dict[str, Any] | None = None) -> Object:
    resources = {part: _full(amounts) for part, amounts in (("limits", limits), ("requests", requests)) if amounts}
    command = ["sh", "-c", SHOW]
    return {"name": name, "image": BUSYBOX, "imagePullPolicy": "Never", "command": command, "resources": resources}


def _full(amounts: dict[str, Any]) -> dict[str, str]:
    return {name if "/" in name else f"volcano.sh/{name}": str(amount) for name, amount in amounts.items()}


def observe(api: Api, namespace: str, pod: Object, expected: str) -> Seen:
    """Create a pod and wait for what is expected, or for what else becomes certain; then delete the pod."""
    created = api.post(pods(namespace), pod)
    if created.status != 201:
        return Seen("Refused", created.message, warnings=created.warnings)
    path, began = pods(namespace, "life"), time.monotonic()
    try:
        while True:
            now, waited = api.get(path).body, time.monotonic() - began
            status = now["status"]
            phase, reason = status.get("phase", "Pending"), status.get("reason", "")
            started = any(each.get("started") for each in status.get("containerStatuses", ()))
            if phase == "Failed":
                return Seen(phase, f"{reason}: {status.get('message', '')}", warnings=created.warnings)
            if phase == "Running" and started:
                time.sleep(0.3)  # the container writes its environment
                output = str(api.get(f"{path}/log?container=main").body)
                lines = output.partition("MOUNTS")[0].splitlines()
                environment = dict(line.split("=", 1) for line in lines if "=" in line)
                return Seen(phase, warnings=created.warnings, environment=environment)
            if waited > (NEVER if expected == "Pending" else STARTS):
                return Seen(phase, _why_pending(api, namespace, now), warnings=created.warnings)
            time.sleep(0.1)
    finally:
        _delete(api, namespace)


def observe_workload(
    api: Api, namespace: str, workload: Object, expected: str, update: str, *, operated: Sequence[Object] = ()
) -> Seen:
    """Create a workload, and wait until its pods are as expected, like `2 Running, 1 Pending`; then delete it.

    `update` has its pods before an update of the template, if it is updated; `operated` those that its operator would create.
    """
    path = f"/apis/{workload['apiVersion']}/namespaces/{namespace}/{workload['kind'].lower()}s"
    created = api.post(path, workload)
    if created.status != 201:
        return Seen("Refused", created.message, warnings=created.warnings)
    try:
        for pod in operated:
            assert api.post(pods(namespace), pod).status == 201
        if update:
            seen = _settled(api, namespace, update)
            if seen != update:
                return Seen(f"before the update: {seen}", warnings=created.warnings)
            changed = {"spec": {"template": {"metadata": {"annotations": {"updated": "true"}}}}}
            assert api.merge(f"{path}/life", changed).status == 200
        return Seen(_settled(api, namespace, expected), warnings=created.warnings)
    finally:
        now = {"apiVersion": "v1", "kind": "DeleteOptions", "propagationPolicy": "Background"}
        api.send("DELETE", f"{path}/life", now)
        for pod in operated:
            api.send("DELETE", pods(namespace, pod["metadata"]["name"]), now | {"gracePeriodSeconds": 0})
        while _counted(api, namespace):
            time.sleep(0.1)


def _settled(api: Api, namespace: str, expected: str) -> str:
    """How many pods are in which phase: as expected, and still so when pending pods stay pending; or what else there is."""
    began = since = time.monotonic()
    while True:
        seen, now = _counted(api, namespace), time.monotonic()
        since = since if seen == expected else now
        if now - since > NEVER or now - began > STARTS + NEVER:
            return seen
        time.sleep(0.1)


def _counted(api: Api, namespace: str) -> str:
    phases = [each["status"].get("phase", "Pending") for each in api.get(pods(namespace)).body["items"]]
    return ", ".join(f"{count} {phase}" for phase, count in sorted(Counter(phases).items(), reverse=True))


def _why_pending(api: Api, namespace: str, pod: Object) -> str:
    """What Kubernetes says of a pod that waits: its condition, then the events of it and of its group."""
    said = [each.get("message", "") for each in pod["status"].get("conditions", ())]
    uid = pod["metadata"]["uid"]
    for event in api.get(f"/api/v1/namespaces/{namespace}/events").body["items"]:
        about = event["involvedObject"]
        if event["type"] == "Warning" and (about.get("uid") == uid or uid in about.get("name", "")):
            said.append(event["message"])
    return "; ".join(dict.fromkeys(text.strip() for text in said if text)) or "no event, no condition"


def _delete(api: Api, namespace: str) -> None:
    now = {"apiVersion": "v1", "kind": "DeleteOptions", "gracePeriodSeconds": 0}
    api.send("DELETE", pods(namespace, "life"), now)
    while api.get(pods(namespace, "life")).status != 404:
        time.sleep(0.1)


def differs(seen: Seen, expected: dict[str, Any]) -> str:
    """How reality differs from a part of a scenario; empty if it does not."""
    if "refused" in expected:
        right = seen.phase == "Refused" and re.search(expected["refused"], seen.message)
        return "" if right else f"expected a refusal with {expected['refused']!r}, saw {seen}"
    if seen.phase != expected["phase"]:
        return f"expected {expected['phase']}, saw {seen}"
    if not re.search(expected.get("message", ""), seen.message):
        return f"expected {expected['message']!r}, saw {seen}"
    for name, value in expected.get("env", {}).items():
        if seen.environment.get(name) != value:
            return f"expected {name}={value}, saw {seen.environment.get(name)}"
    return ""


def answer_differs(seen: Seen, expected: dict[str, list[str]]) -> str:
    """How the webhook's answer differs; empty if it does not."""
    if "refused" in expected:
        return differs(seen, expected)
    said = f"{seen.message} {' '.join(seen.warnings)}"
    if "refuses" in expected:
        missing = [rule for rule in expected["refuses"] if f"{rule}:" not in seen.message]
        right = seen.phase == "Refused" and "denied the request" in seen.message and not missing
        return "" if right else f"expected a refusal by {expected['refuses']}, saw {seen}"
    if seen.phase == "Refused":
        return f"expected no refusal, saw {seen}"
    missing = [rule for rule in expected.get("warns", ()) if f"{rule}:" not in said]
    return f"expected a warning by {missing}, saw {seen.warnings}" if missing else ""


def play(api: Api, scenario: dict[str, Any]) -> tuple[Seen, Seen, list[str]]:
    """Play a scenario past the webhook, then with it; returns what was seen, and what differs from the scenario."""
    pod, then = manifest(scenario), scenario.get("then", {})
    without, with_webhook = (
        observe_workload(api, namespace, pod, phase, scenario.get("update", ""), operated=made(scenario))
        if "workload" in scenario
        else observe(api, namespace, pod, phase)
        for namespace, phase in (
            (PAST, scenario["without"].get("phase", "")),
            (scenario.get("namespace", REVIEWED), then.get("phase", "")),
        )
    )
    found = [differs(without, scenario["without"]), answer_differs(with_webhook, scenario["webhook"])]
    if then:
        found.append(differs(with_webhook, then))
    return without, with_webhook, [each for each in found if each]


def namespaces() -> list[Object]:
    return [each for name in (PAST, REVIEWED, MOVING, STRICT) for each in namespace_objects(name)]


def row(scenario: dict[str, Any], without: Seen, with_webhook: Seen) -> str:
    answer = scenario["webhook"]
    verbs = (("refuses", "refused by"), ("repairs", "repaired by"), ("warns", "warned by"), ("records", "recorded by"))
    said = [f"{verb} {', '.join(f'`{rule}`' for rule in answer[key])}" for key, verb in verbs if answer.get(key)]
    if "file" in scenario:
        said.append(f"`review` of the file warns by {', '.join(f'`{rule}`' for rule in scenario['file'])}")
    what = "; ".join(said) or ("refused by the API server" if "refused" in answer else "admitted")
    then = _cell(scenario.get("then"), with_webhook)
    return f"| {scenario['title']} | {_cell(scenario['without'], without)} | {what} | {then} |"


def _cell(expected: dict[str, Any] | None, seen: Seen) -> str:
    if expected is None:
        return ""
    if seen.phase == "Refused":
        return "refused by the API server"
    names = expected.get("env", {})
    limits = [f"`{name}={seen.environment[name]}`" if name in seen.environment else f"no `{name}`" for name in names]
    why = re.search(WHY, seen.message)
    return ", ".join([seen.phase, *([why[0]] if why else []), *limits])


@contextmanager
def prepared(running: GpuCluster, scenario: dict[str, Any]) -> Iterator[Api]:
    """A connection to the cluster, with the taint and the device config of a scenario for as long as it is played."""
    with running.cluster.api() as api:
        if scenario.get("taint"):
            api.merge(NODE, {"spec": {"taints": [TAINT]}})
        configure(running, scenario.get("config"))
        try:
            yield api
        finally:
            api.merge(NODE, {"spec": {"taints": None}})
            configure(running, {} if "config" in scenario else None)


def configure(running: GpuCluster, settings: dict[str, Any] | None) -> None:
    """Write the device config with some settings, and wait until the webhook follows; None leaves it as it is."""
    if settings is not None:
        running.write_device_config(overwriteEnv=True, **settings)
        time.sleep(CONFIG_SECONDS)


def with_row(page: str, title: str, line: str) -> str:
    """The page with the row of a scenario in its table, in the order of the scenarios; the rows of the others stay."""
    rows = {tables(f"{old}\n")[0][0][0]: old for old in shown(page)["life"].splitlines()[len(HEAD) :]} | {title: line}
    ordered = [rows[scenario["title"]] for scenario in load() if scenario["title"] in rows]
    return set_part(page, "life", "".join(f"{each}\n" for each in [*HEAD, *ordered]))


def play_all(running: GpuCluster, scenarios: list[dict[str, Any]]) -> int:
    """Play scenarios, print what differs, and write the row of each that does not into the table; returns how many differ."""
    running.cluster.apply(*namespaces(), custom_resource("ray.io", "v1", "RayCluster"))
    configure(running, {})
    wrong = 0
    for scenario in scenarios:
        with prepared(running, scenario) as api:
            without, with_webhook, differences = play(api, scenario)
        print(f"{'DIFFERS' if differences else 'ok':8}{scenario['title']}", flush=True)
        for line in differences:
            print(f"        {line[:MAX_SHOWN]}", flush=True)
        wrong += bool(differences)
        if not differences:
            line = row(scenario, without, with_webhook)
            PAGE.write_text(with_row(PAGE.read_text(), scenario["title"], line))
    print(f"{len(scenarios)} scenarios, {wrong} differ")
    return wrong


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.gpuless.life", description=__doc__)
    parser.add_argument("only", nargs="?", default="", help="play those whose title or rule contains this")
    only = parser.parse_args().only
    chosen = [scenario for scenario in load() if only in f"{scenario['title']} {scenario.get('rule', '')}"]
    with in_own_directory("a100") as (_, running):
        print("building the webhook's image, and installing its chart", flush=True)
        running.install_webhook(**VALUES)
        wrong = play_all(running, chosen)
    if not only:
        record("life", f"{len(chosen)} scenarios, {wrong} differ")
    sys.exit(wrong > 0)


if __name__ == "__main__":
    main()
