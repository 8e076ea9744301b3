"""Requests, and the lines that the webhook records of them."""

from pathlib import Path
from typing import Any

from webhook.audit import writer as audit
from webhook.audit.decision import Decision, parse_decision
from webhook.audit.replay import ENDPOINT_REVIEWS
from webhook.policy.policy import parse_policy
from webhook.review import Snapshot
from webhook.settings.files import load_device_config, load_nodes
from webhook.settings.snapshot import SnapshotInputs
from webhook.wire.codec import API_VERSION
from webhook.wire.models import Request

DATA = Path(__file__).parents[1] / "data"
CONFIG = load_device_config(DATA / "config" / "device-config.yaml")
NODES = [node for name in ("every-family", "npu-core") for node in load_nodes(DATA / "fleets" / f"{name}.yaml", CONFIG)]


def snapshot(policy: Any = None, nodes: Any = NODES, config: Any = CONFIG) -> Snapshot:
    return SnapshotInputs(config, parse_policy(policy, "test"), nodes).snapshot()


def request(raw: dict[str, Any], old: dict[str, Any] | None = None, **fields: Any) -> Request:
    """A request to create an object, or to change it."""
    operation = "CREATE" if old is None else "UPDATE"
    kind, group = raw.get("kind", "Pod"), raw.get("apiVersion", "v1").rpartition("/")[0]
    made = Request("u-1", API_VERSION, operation, group, kind, "", "default", "", "alice", False, raw, old)
    return made._replace(**fields)


def record(asked: Request, used: Snapshot, endpoint: str = "validate") -> bytes:
    """The audit line of a request."""
    outcome = ENDPOINT_REVIEWS[endpoint](asked, used)
    return audit.line(audit.Exchange(endpoint, 50_000), asked, outcome, used)


def recorded(asked: Request, used: Snapshot, endpoint: str = "validate") -> Decision:
    """The audit line of a request, read."""
    decision = parse_decision(record(asked, used, endpoint))
    assert decision is not None
    return decision
