"""Which taints a toleration tolerates."""

from collections.abc import Mapping
from typing import Any


def tolerates(toleration: Mapping[str, Any], key: str, value: str, effect: str) -> bool:
    """Whether a toleration tolerates a taint.

    Source: kubernetes `staging/src/k8s.io/api/core/v1/toleration.go` (ToleratesTaint).
    """
    own, operator = toleration.get("key") or "", toleration.get("operator") or "Equal"
    if toleration.get("effect") not in (None, "", effect) or (own and own != key):
        return False
    return operator == "Exists" or (operator == "Equal" and own == key and (toleration.get("value") or "") == value)
