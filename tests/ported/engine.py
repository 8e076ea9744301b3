"""Asks the engine what a row asks, and answers in the words of upstream's tests."""

import json
from pathlib import Path
from typing import Any

from tests.ported.short_forms import cards, device_config, node_json, pod_json, repeated, whole_memory
from tests.reviewing import request
from webhook.devices.config import Geometry, Instance
from webhook.devices.families import Role
from webhook.devices.target import Target
from webhook.devices.vgpu.eligibility import read_constraints
from webhook.devices.vgpu.fleet import Card
from webhook.devices.vgpu.placement import ORDERS, Stuck, walk
from webhook.devices.vgpu.slices import Need
from webhook.outcome import Outcome
from webhook.pod.view import PodView
from webhook.policy.policy import parse_policy
from webhook.review import review
from webhook.settings.files import load_nodes
from webhook.settings.snapshot import SnapshotInputs

Json = dict[str, Any]


def answer(row: Json, wanted: Json, directory: Path) -> Json:
    """The engine's answer, as far as it is wanted."""
    ask = next(ask for slice_request, ask in QUESTIONS.items() if slice_request in row)
    return ask(row, wanted, directory)


# --- a pod, and perhaps a node: the whole pipeline ------------------------------------------------------------------


def _ask_pod(row: Json, wanted: Json, directory: Path) -> Json:
    judged = _review(row, directory)
    main = next(iter(judged.object["spec"]["containers"]), {})
    resources = main.get("resources", {})
    tell = {
        "allowed": lambda: judged.allowed,
        "fits": lambda: judged.allowed,  # and nothing else is wrong with the pod
        "rules": lambda: _rules(judged),
        "asks": lambda: _asks(resources, row),
        "need": lambda: _need(resources, row) if judged.allowed else "refused",
        "limits": lambda: _amounts(resources.get("limits", {}), wanted["limits"]),
        "requests": lambda: _amounts(resources.get("requests", {}), wanted["requests"]),
        "env": lambda: {each["name"]: each["value"] for each in main.get("env", [])},
        "scheduler": lambda: judged.object["spec"].get("schedulerName"),
        "says": lambda: wanted["says"] if wanted["says"] in judged.message() else judged.message(),
        "cards": lambda: _takers(row, directory),
    }
    return {key: tell[key]() for key in wanted}


def _review(row: Json, directory: Path) -> Outcome:
    config, nodes = device_config(row), None
    if "node" in row:
        file = directory / "fleet.json"
        file.write_text(json.dumps(node_json(row["node"], config)))
        nodes = load_nodes(file, config)
    policy = parse_policy(row.get("policy"), "the row's policy")
    return review(request(pod_json(row["pod"])), SnapshotInputs(config, policy, nodes).snapshot())


def _rules(judged: Outcome) -> list[str]:
    told = [*judged.mutations, *[rule for rule, _ in judged.notices], *[found.rule for found in judged.violations]]
    return list(dict.fromkeys(told))


def _takers(row: Json, directory: Path) -> list[str]:
    """The cards of the row's node that take the pod where they are the only one."""
    alone = {card["uuid"]: row | {"node": row["node"] | {"cards": [card]}} for card in cards(row["node"])}
    return [uuid for uuid, lonely in alone.items() if _review(lonely, directory).allowed]


def _asks(resources: Json, row: Json) -> bool:
    """Whether a container has a count."""
    roles = device_config(row).roles
    return any(roles[name][1] is Role.NUMBER for name in resources.get("limits", {}) if name in roles)


def _need(resources: Json, row: Json) -> Json:
    """What the scheduler reads of a container: how many devices; of each, MiB and cores."""
    config = device_config(row)
    limits = resources.get("limits", {})
    asked = {config.roles[name][1]: int(amount) for name, amount in limits.items() if name in config.roles}
    if not asked.get(Role.NUMBER):
        return {"number": 0}
    memory = asked.get(Role.MEMORY) or whole_memory(row["node"])
    return {
        "number": asked[Role.NUMBER],
        "memory": memory * config.vgpu.memory_factor,
        "cores": asked.get(Role.CORES, 0),
    }


def _amounts(found: Json, wanted: Json) -> Json:
    return {name: int(found[name]) if name in found else None for name in wanted}


# --- one rule of the engine at a time -------------------------------------------------------------------------------


def _ask_type(row: Json, wanted: Json, directory: Path) -> Json:
    """Do annotations accept a card of such a type? The pipeline is asked about a pod and a node with such a card, too."""
    found, card = row["type"]["annotations"], row["type"]["card"]
    pod = {"annotations": found or {}, "containers": [{"limits": {device_config(row).vgpu.number_name: 1}}]}
    node = {"cards": [{"type": card, "memory": 1000}]}
    given = _ask_pod(row | {"pod": pod, "node": node}, {"fits": None, "rules": None}, directory)
    given["accepts"] = read_constraints(PodView({"metadata": {"annotations": found}}), Target()).accepts_type(card)
    return {key: given[key] for key in wanted}


def _ask_walk(row: Json, wanted: Json, _: Path) -> Json:
    """Which cards does each container get under a policy of the scheduler? `card`: the last container's first."""
    asked = row["walk"]
    cards = [Card("NVIDIA", card["memory"], card["split"]) for card in repeated(asked["cards"])]
    needs = [Need(1, need["memory"], need["cores"]) for need in repeated(asked["containers"])]
    found = walk(cards, needs, ORDERS[asked["policy"]], [None] * len(cards))
    if isinstance(found, Stuck):
        return {"fits": False}
    given = {"fits": True, "card": found[-1][0], "cards": [list(each) for each in found]}
    return {key: given[key] for key in wanted}


def _ask_mig(row: Json, _wanted: Json, _: Path) -> Json:
    """What does an idle card book for a slice, in units of the factor?"""
    asked = row["mig"]
    groups = tuple(Geometry("group", tuple(Instance(*instance) for instance in group)) for group in asked["groups"])
    booked = Card("NVIDIA-A100", 81920, 7, groups, asked.get("factor", 1)).booked(asked["request"])
    return {"fits": False} if booked is None else {"fits": True, "memory": booked}


def _ask_chip(row: Json, _wanted: Json, _: Path) -> Json:
    """What does an NPU book for an amount of memory?"""
    (chip,) = device_config(row).ascend.chips
    return {"memory": chip.booked(row["chip"]["memory"])}


QUESTIONS = {"pod": _ask_pod, "type": _ask_type, "walk": _ask_walk, "mig": _ask_mig, "chip": _ask_chip}
REVIEWED = {"pod", "type"}  # asked of the whole pipeline, in which rules speak
