"""Which taints a toleration tolerates, and which taints come and go."""

from collections.abc import Mapping
from typing import Any

LIFECYCLE = "node.kubernetes.io/"  # before the taints that Kubernetes itself adds and removes
# What autoscalers and others add to a node that comes or goes. Sources: kubernetes/autoscaler
# `cluster-autoscaler/utils/taints/taints.go`, karpenter `pkg/apis/v1/taints.go`, cloud-provider `api/well_known_taints.go`.
_PASSING = (
    LIFECYCLE,
    "ToBeDeletedByClusterAutoscaler",
    "DeletionCandidateOfClusterAutoscaler",
    "startup-taint.cluster-autoscaler.kubernetes.io/",
    "ignore-taint.cluster-autoscaler.kubernetes.io/",
    "node.cloudprovider.kubernetes.io/",
    "karpenter.sh/",
)


def is_passing(key: str) -> bool:
    """Whether a taint tells of the state of a node, and is removed when that state ends."""
    return key.startswith(_PASSING)


def tolerates(toleration: Mapping[str, Any], key: str, value: str, effect: str) -> bool:
    """Whether a toleration tolerates a taint.

    Source: kubernetes `staging/src/k8s.io/api/core/v1/toleration.go` (ToleratesTaint).
    """
    own, operator = toleration.get("key") or "", toleration.get("operator") or "Equal"
    if toleration.get("effect") not in (None, "", effect) or (own and own != key):
        return False
    return operator == "Exists" or (operator == "Equal" and own == key and (toleration.get("value") or "") == value)
