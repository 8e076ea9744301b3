"""Taints of the nodes with vGPUs against the toleration that pods get."""

from collections import defaultdict
from collections.abc import Iterator

from webhook import names
from webhook.doctor.check import Check, Line, broken, ok, unchecked, warning
from webhook.doctor.facts import Kind
from webhook.doctor.nodes import registering
from webhook.doctor.reading import Object, counted, listed, name_of, tables, text
from webhook.doctor.setup import Setup
from webhook.rules.base import Toleration

_HARD = ("NoSchedule", "NoExecute")
_PASSING = "node.kubernetes.io/"  # what Kubernetes itself puts on a node that is cordoned or ill


def node_taints(setup: Setup) -> Iterator[Line]:
    """What keeps pods away from cards is tolerated by what the policy gives them."""
    found = registering(setup.facts)
    gap = setup.facts.gap(Kind.NODE)
    if not found:
        yield unchecked(gap) if gap else ok("no node registers vGPU cards")
        return
    if setup.policy_gap:
        yield unchecked(setup.policy_gap)
        return
    toleration = setup.policy.settings.toleration
    own = toleration.key if toleration else names.VGPU_TAINT
    untolerated: dict[tuple[str, str], list[str]] = defaultdict(list)
    for node in found:
        for taint in tables(node, "spec", "taints"):
            key = text(taint, "key")
            if text(taint, "effect") in _HARD and not key.startswith(_PASSING) and not _tolerates(toleration, taint):
                untolerated[key, _spelled(taint)].append(name_of(node))
    for (key, spelled), nodes in untolerated.items():
        if key == own and toleration is not None:
            yield broken(
                f"{listed(nodes)}: the taint {spelled} is not tolerated by policy.toleration, so repaired pods stay pending",
                f"make toleration of the policy tolerate {spelled}",
            )
        else:
            yield warning(
                f"{listed(nodes)}: the taint {spelled} is not tolerated by policy.toleration: only pods that tolerate it "
                "themselves get there",
                "if that is not meant, remove the taint, or set toleration of the policy",
            )
    if not untolerated:
        yield ok(f"repaired pods tolerate the taints of the nodes with vGPUs: {counted(len(found), 'node')}")


def _tolerates(toleration: Toleration | None, taint: Object) -> bool:
    """Source: kubernetes `staging/src/k8s.io/api/core/v1/toleration.go` (ToleratesTaint)."""
    if toleration is None or toleration.effect not in ("", text(taint, "effect")):
        return False
    if toleration.key != text(taint, "key"):
        return False
    return toleration.operator == "Exists" or toleration.value == text(taint, "value")


def _spelled(taint: Object) -> str:
    value = text(taint, "value")
    return f"{text(taint, 'key')}{f'={value}' if value else ''}:{text(taint, 'effect')}"


CHECKS = (Check("node-taints", node_taints),)
