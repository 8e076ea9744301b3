"""Evaluates a row with the engine, and returns the result in the terms of upstream's tests."""

from pathlib import Path
from typing import Any

from tests.ported.short_forms import cards, device_config, node_json, pod_json, repeated, whole_memory
from tests.reviewing import request, snapshot
from webhook.devices.config import Geometry, Instance, MigModels, VgpuConfig
from webhook.devices.families import Role
from webhook.devices.vgpu.eligibility import read_constraints
from webhook.devices.vgpu.explain import Stuck, walk
from webhook.devices.vgpu.fleet import Card, comparable_geometries
from webhook.devices.vgpu.placement import ORDERS
from webhook.devices.vgpu.slices import Need
from webhook.outcome import Outcome
from webhook.pod.view import PodView
from webhook.review.endpoints import review
from webhook.rules.choices import Level
from webhook.rules.registry import DEFAULT_LEVELS
from webhook.volcano.target import Target

# Rules that refuse nothing are made if a row names them; memory-tiny is not, as upstream's tests are about a few MiB.
_NAMED = "".join([path.read_text() for path in Path(__file__).parent.glob("*.yaml")])
_OTHERS = {rule: "off" for rule, level in DEFAULT_LEVELS.items() if level is not Level.DENY and rule not in _NAMED}
_OTHERS |= {"memory-tiny": "off"}

Json = dict[str, Any]


def evaluate(row: Json, expected: Json) -> Json:
    """The expected parts of the engine's result."""
    return next(evaluation for kind, evaluation in EVALUATIONS.items() if kind in row)(row, expected)


# --- a pod, and perhaps a node: the whole pipeline ------------------------------------------------------------------


def _evaluate_pod(row: Json, expected: Json) -> Json:
    outcome = _review(row)
    main = next(iter(outcome.object["spec"]["containers"]), {})
    resources = main.get("resources", {})
    parts = {
        "allowed": lambda: outcome.allowed,
        "fits": lambda: outcome.allowed,  # the rest of the pod is valid
        "rules": lambda: _rules(outcome),
        "requested": lambda: _has_count(resources, row),
        "need": lambda: _need(resources, row) if outcome.allowed else "refused",
        "limits": lambda: _amounts(resources.get("limits", {}), expected["limits"]),
        "requests": lambda: _amounts(resources.get("requests", {}), expected["requests"]),
        "env": lambda: {each["name"]: each["value"] for each in main.get("env", [])},
        "scheduler": lambda: outcome.object["spec"].get("schedulerName"),
        "message": lambda: expected["message"] if expected["message"] in outcome.message() else outcome.message(),
        "cards": lambda: _accepting_cards(row),
    }
    return {key: parts[key]() for key in expected}


def _review(row: Json) -> Outcome:
    config = device_config(row)
    raw = [node_json(row["node"], config)] if "node" in row else None
    return review(
        request(pod_json(row["pod"])), snapshot(config=config, raw=raw, **{"rules": _OTHERS} | row.get("policy", {}))
    )


def _rules(outcome: Outcome) -> list[str]:
    rules = [
        *outcome.mutations,
        *[rule for rule, _ in outcome.notices],
        *[violation.rule for violation in outcome.violations],
    ]
    return list(dict.fromkeys(rules))


def _accepting_cards(row: Json) -> list[str]:
    """The cards of the row's node that take the pod if each is the only one."""
    alone = {card["uuid"]: row | {"node": row["node"] | {"cards": [card]}} for card in cards(row["node"])}
    return [uuid for uuid, one_card in alone.items() if _review(one_card).allowed]


def _has_count(resources: Json, row: Json) -> bool:
    """Whether a container has a count."""
    roles = device_config(row).roles
    return any(roles[name][1] is Role.NUMBER for name in resources.get("limits", {}) if name in roles)


def _need(resources: Json, row: Json) -> Json:
    """The request of a container as the scheduler reads it: the number of devices, and MiB and cores of each."""
    config = device_config(row)
    limits = resources.get("limits", {})
    amounts = {config.roles[name][1]: int(amount) for name, amount in limits.items() if name in config.roles}
    if not amounts.get(Role.NUMBER):
        return {"number": 0}
    memory = amounts.get(Role.MEMORY) or whole_memory(row["node"])
    return {
        "number": amounts[Role.NUMBER],
        "memory": memory * config.vgpu.memory_factor,
        "cores": amounts.get(Role.CORES, 0),
    }


def _amounts(amounts: Json, expected: Json) -> Json:
    return {name: int(amounts[name]) if name in amounts else None for name in expected}


# --- one rule of the engine at a time -------------------------------------------------------------------------------


def _evaluate_type(row: Json, expected: Json) -> Json:
    """Whether annotations accept a type of card; the pipeline also reviews a pod on a node with this card."""
    annotations, card = row["type"]["annotations"], row["type"]["card"]
    pod = {"annotations": annotations or {}, "containers": [{"limits": {device_config(row).vgpu.number_name: 1}}]}
    node = {"cards": [{"type": card, "memory": 1000}]}
    result = _evaluate_pod(row | {"pod": pod, "node": node}, {"fits": None, "rules": None})
    result["accepts"] = read_constraints(PodView({"metadata": {"annotations": annotations}}), Target()).accepts_type(
        card
    )
    return {key: result[key] for key in expected}


def _evaluate_walk(row: Json, expected: Json) -> Json:
    """The cards of each container under a policy of the scheduler. `card`: the first card of the last container."""
    case = row["walk"]
    cards = [Card("NVIDIA", card["memory"], card["split"]) for card in repeated(case["cards"])]
    needs = [Need(1, need["memory"], need["cores"]) for need in repeated(case["containers"])]
    placement = walk(cards, needs, ORDERS[case["policy"]], [None] * len(cards))
    if isinstance(placement, Stuck):
        return {"fits": False}
    result = {"fits": True, "card": placement[-1][0], "cards": [list(each) for each in placement]}
    return {key: result[key] for key in expected}


def _evaluate_mig(row: Json, _expected: Json) -> Json:
    """The memory that an idle card books for a slice, in units of the factor."""
    case = row["mig"]
    groups = tuple(Geometry("group", tuple(Instance(*instance) for instance in group)) for group in case["groups"])
    config = VgpuConfig(memory_factor=case.get("factor", 1), mig_models=(MigModels(("A100",), groups),))
    geometries = comparable_geometries(config, Target()).geometries_of("NVIDIA-A100")
    accounted = Card("NVIDIA-A100", 81920, 7, geometries=geometries).accounted(case["request"])
    return {"fits": False} if accounted is None else {"fits": True, "memory": accounted}


def _evaluate_chip(row: Json, _expected: Json) -> Json:
    """The memory that an NPU books for an amount of memory."""
    (chip,) = device_config(row).ascend.chips
    return {"memory": chip.accounted(row["chip"]["memory"])}


EVALUATIONS = {
    "pod": _evaluate_pod,
    "type": _evaluate_type,
    "walk": _evaluate_walk,
    "mig": _evaluate_mig,
    "chip": _evaluate_chip,
}
REVIEWED = {"pod", "type"}  # reviewed by the whole pipeline, which reports rules
