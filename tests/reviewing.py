"""Settings and requests for the pipeline, and the recorded reviews. `server/reviews.py` has requests as bytes."""

import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from types import FrameType
from typing import Any

from webhook.devices.config import DeviceConfig
from webhook.devices.nodes import Node
from webhook.devices.verdict import Reason
from webhook.outcome import Outcome
from webhook.policy.policy import parse_policy
from webhook.review.endpoints import mutate, validate
from webhook.rules.context import Collections
from webhook.settings.snapshot import SnapshotInputs, read_nodes
from webhook.settings.table import DEVICE_CONFIG, FLEET
from webhook.snapshot import Snapshot
from webhook.volcano.scheduler import parse_scheduler_conf
from webhook.wire.codec import API_VERSION
from webhook.wire.models import Request

DATA = Path(__file__).parent / "data"
RECORDED = sorted((DATA / "reviews").glob("*.json"))
assert RECORDED, "without reviews the tests that loop over them cannot fail"
CONFIG = DEVICE_CONFIG.load(DATA / "config" / "device-config.yaml")
# The rules that say because of the nodes that a pod or gang never gets its devices. Others say what happens after that.
NODES_DECIDE = {reason.rule for reason in Reason} | {
    "mode-invalid",
    "cores-range",
    "gang-too-large",
    "gang-never-complete",
}
ALL_FAMILIES = ("every-family", "npu-core")  # fleets that have nodes of all families together


def nodes_in(*fleets: str, config: DeviceConfig = CONFIG) -> list[Node]:
    """The nodes of files in tests/data/fleets."""
    return [node for name in fleets for node in read_nodes(FLEET.load(DATA / "fleets" / f"{name}.yaml"), config)]


def snapshot(
    *fleets: str,
    config: DeviceConfig = CONFIG,
    raw: Iterable[Any] | None = None,
    plugins: Any = None,
    collections: Collections | None = None,
    **policy: Any,
) -> Snapshot:
    """The settings with the nodes of files, or of JSON, and the plugins of the scheduler; what is not given is unknown."""
    known = nodes_in(*fleets, config=config) if fleets else None
    nodes = known if raw is None else read_nodes(raw, config)
    conf = None if plugins is None else parse_scheduler_conf({"tiers": [{"plugins": plugins}]}, "the test's scheduler")
    inputs = SnapshotInputs(
        config, parse_policy(policy, "the test's policy"), nodes, conf, collections or Collections()
    )
    return inputs.snapshot()


def request(raw: Any, old: Any = None, **fields: Any) -> Request:
    """A request to create an object, or to update it if there is an old one."""
    operation = "CREATE" if old is None else "UPDATE"
    manifest = raw if isinstance(raw, dict) else {}
    group = str(manifest.get("apiVersion", "v1")).rpartition("/")[0]
    kind = manifest.get("kind", "Pod")
    default = Request("u-1", API_VERSION, operation, group, kind, "", "default", "", "alice", False, raw, old)
    return default._replace(**fields)


def at_both_endpoints(sent: Request, settings: Snapshot) -> tuple[Outcome, Outcome]:
    """The outcomes of both endpoints; /validate gets the object as /mutate returns it."""
    repaired = mutate(sent, settings)
    return repaired, validate(sent._replace(object=dict(repaired.object)) if repaired.reviewed else sent, settings)


def refusals(outcome: Outcome) -> set[str]:
    return {violation.rule for violation in outcome.denials}


def calls_of(function: Callable[..., Any], action: Callable[..., Any], *args: Any, **more: Any) -> int:
    """How often an action calls a function."""
    calls = 0

    def count(frame: FrameType, event: str, _: object) -> None:
        nonlocal calls
        calls += event == "call" and frame.f_code is function.__code__

    sys.setprofile(count)
    try:
        action(*args, **more)
    finally:
        sys.setprofile(None)
    return calls
