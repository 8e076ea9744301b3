"""How a Deployment replaces its pods. Source: Kubernetes `pkg/controller/deployment/util/deployment_util.go`."""

from collections.abc import Mapping
from math import ceil
from typing import Any, NamedTuple

from webhook.lenient import at, obj
from webhook.pod.fields import FieldGroup

ROLLOUT = FieldGroup(
    "how its pods are replaced",
    frozenset(f"workload.{field}" for field in ("strategy", "type", "maxSurge", "maxUnavailable")),
)


class Rollout(NamedTuple):
    """A rolling update.

    Attributes:
        surge: how many pods there may be above the replicas.
        unavailable: how many of the replicas may be missing.
    """

    surge: int
    unavailable: int


def read_rollout(spec: Mapping[str, Any], replicas: int) -> Rollout | None:
    """The rolling update of a Deployment with these replicas; None if it ends all pods before it makes new ones."""
    if (at(spec, "strategy", "type") or "RollingUpdate") != "RollingUpdate":
        return None
    rolling = obj(spec, "strategy", "rollingUpdate")
    surge = _share(rolling.get("maxSurge", "25%"), replicas, up=True)
    unavailable = _share(rolling.get("maxUnavailable", "25%"), replicas, up=False)
    return Rollout(surge, unavailable) if surge or unavailable else Rollout(0, 1)


def first_of_rollout(spec: Mapping[str, Any], replicas: int) -> int:
    """How many new pods an update of a Deployment creates while none of them is ready."""
    rollout = read_rollout(spec, replicas)
    return replicas if rollout is None else min(sum(rollout), replicas)


def _share(value: Any, replicas: int, *, up: bool) -> int:
    """A number of pods, or a percentage of them; all of them if it is neither."""
    if isinstance(value, int) and not isinstance(value, bool):
        return max(value, 0)
    text = value.removesuffix("%") if isinstance(value, str) and value.endswith("%") else ""
    if not text.isascii() or not text.isdigit() or len(text) > 4:
        return replicas
    exact = int(text) * replicas / 100
    return ceil(exact) if up else int(exact)
