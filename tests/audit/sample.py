"""Writes the sample log that ships with the webhook: `python -m tests.audit.sample`."""

import hashlib
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import orjson
import yaml

from tests.cli.conftest import only_rules
from tests.reviewing import request
from webhook.audit import writer as audit
from webhook.policy.policy import Policy, parse_policy
from webhook.review.endpoints import mutate, validate
from webhook.settings.snapshot import SnapshotInputs
from webhook.settings.sources import SAMPLES, load, or_samples
from webhook.snapshot import Snapshot
from webhook.wire.models import Request

LOG = SAMPLES / "audit.jsonl"

# For tests that count decisions: what a new rule finds in these pods changes no count.
_RULES = ("card-count", "cores-range", "foreign-scheduler", "host-access", "isolation-env", "mode-invalid")
POLICY = parse_policy(only_rules(*_RULES, "percentage-unresolved"), "the tests' policy")

_BEGIN = datetime(2026, 11, 20, 8, 0, tzinfo=UTC)
_FORMAT = orjson.OPT_APPEND_NEWLINE

# Minutes since the beginning, namespace, user, and the name of the created pod.
_REQUESTS = (
    (4, "team-vision", "anna@example.org", "pod-refused"),
    (9, "team-vision", "anna@example.org", "pod-repaired"),
    (31, "team-speech", "ben@example.org", "pod-warned"),
    (66, "team-vision", "system:serviceaccount:team-vision:runner", "nine"),
    (67, "team-vision", "system:serviceaccount:team-vision:runner", "nine"),
    (69, "team-vision", "system:serviceaccount:team-vision:runner", "nine"),
    (95, "team-speech", "ben@example.org", "debug"),
    (128, "team-speech", "chris@example.org", "pod-repaired"),
)


def lines(policy: Policy | None = None) -> Iterator[bytes]:
    """The lines that the webhook would write, with a fixed duration."""
    used = SnapshotInputs.of(load(or_samples({})) | ({"policy": policy} if policy else {})).snapshot()
    for minute, namespace, user, name in _REQUESTS:
        admission_request = request(_pod(name), namespace=namespace, name="", user=user)
        at = _BEGIN + timedelta(minutes=minute)
        repaired = _unique(admission_request, f"{minute}m")
        outcome = mutate(repaired, used)
        yield _line("mutate", repaired, outcome, used, at)
        judged = _unique(admission_request._replace(object=dict(outcome.object)), f"{minute}v")
        yield _line("validate", judged, validate(judged, used), used, at + timedelta(milliseconds=3))


def _line(endpoint: str, admission_request: Request, outcome: Any, used: Snapshot, at: datetime) -> bytes:
    record = orjson.loads(audit.line(audit.Exchange(endpoint, 60_000), admission_request, outcome, used))
    return orjson.dumps({**record, "time": at.isoformat().replace("+00:00", "Z")}, option=_FORMAT)


def _unique(admission_request: Request, text: str) -> Request:
    digest = hashlib.sha256(text.encode()).hexdigest()
    return admission_request._replace(
        uid=f"{digest[:8]}-{digest[8:12]}-{digest[12:16]}-{digest[16:20]}-{digest[20:32]}"
    )


def _pod(name: str) -> dict[str, Any]:
    if name.startswith("pod-"):
        found: dict[str, Any] = yaml.safe_load((SAMPLES / f"{name}.yaml").read_text())
        return found
    container = {"name": "main", "resources": {"limits": {"volcano.sh/vgpu-number": 9 if name == "nine" else 1}}}
    spec = {"containers": [container]} | ({"hostPID": True} if name == "debug" else {})
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec}


if __name__ == "__main__":
    LOG.write_bytes(b"".join(lines()))
