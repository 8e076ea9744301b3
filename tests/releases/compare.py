"""Compares the verdicts of the engine with those of a release's own allocation code, which oracle/ calls."""

import json
import random
import subprocess
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from tests.releases import families
from tests.releases.fleets import Object, RandomFleet, random_fleet
from tests.reviewing import NODES_DECIDE, request, snapshot
from webhook.devices.config_file import parse_device_config
from webhook.review.endpoints import review
from webhook.snapshot import Snapshot
from webhook.volcano.scheduler import DEVICESHARE, POLICIES, SCHEDULE_POLICY

PODS = 40  # of a fleet
# By the family as the oracle calls it: deviceshare serves one of the first three at a time.
FLEETS: dict[str, Callable[[random.Random, int], RandomFleet]] = {
    "vgpu": random_fleet,
    "gpushare-memory": partial(families.gpushare, by_memory=True),
    "gpushare-number": partial(families.gpushare, by_memory=False),
    "ascend": families.ascend,
    "mindcluster": families.mindcluster,
}
# What a release does with a pod: a node gives it devices; only nodes of which it asks no device can take it, so that it is
# bound without one; no node takes it.
PLACES, SKIPS, REFUSES = "placed", "skipped", "refused"

ADMITTED, TIGHT, DOUBT, REFUSED = "admitted", "fits-tightly", "in doubt", "refused"
# Whether the scheduler places a pod with this verdict. In doubt it may: an amount that is 0 now hides a node from some
# releases, and from the others only from pods that request it.
PLACED = {ADMITTED: True, TIGHT: False, REFUSED: False}


@dataclass
class Comparison:
    """How many pods have each verdict of the engine, how many a release would bind without devices, and where they differ."""

    counts: Counter[str] = field(default_factory=Counter)
    skipped: int = 0
    differences: list[Object] = field(default_factory=list)


def snapshot_of(fleet: RandomFleet, version: str) -> Snapshot:
    """The settings for a fleet whose scheduler is of a version."""
    config = parse_device_config(fleet.config, "the fleet's device config")
    target = {"volcano": version, "devicePlugin": "1.11.0"}  # which serves several containers
    # What device plugins do is not compared.
    rules = fleet.policy.get("rules", {}) | {"several-device-containers": "off"}
    deviceshare = {"name": DEVICESHARE, "arguments": {SCHEDULE_POLICY: fleet.schedule_policy}}
    plugins = None if fleet.schedule_policy is None else [deviceshare]
    return snapshot(
        config=config, raw=fleet.nodes, plugins=plugins, **{**fleet.policy, "target": target, "rules": rules}
    )


def verdict(pod: Object, settings: Snapshot) -> tuple[str, Object]:
    """What the engine says of a pod, and the pod that it says this of: with all repairs."""
    outcome = review(request(pod), settings)
    repaired = dict(outcome.repaired)
    if not outcome.allowed:
        return REFUSED, repaired
    if TIGHT in outcome.rules:
        return TIGHT, repaired
    return DOUBT if any(violation.rule in NODES_DECIDE for violation in outcome.violations) else ADMITTED, repaired


def question(fleet: RandomFleet, family: str, version: str) -> tuple[list[str], Object]:
    """What the engine says of each pod of a fleet, and what a release is asked about: the pods with their repairs."""
    settings = snapshot_of(fleet, version)
    judged = [verdict(pod, settings) for pod in fleet.pods]
    policies = POLICIES if fleet.schedule_policy is None else [fleet.schedule_policy]
    pods = [repaired for _, repaired in judged]
    asked = {"family": family, "deviceConfig": fleet.config, "policies": policies, "nodes": fleet.nodes, "pods": pods}
    return [word for word, _ in judged], asked


def differs(word: str, does: str) -> bool:
    """Whether a release does something else with a pod than the engine says."""
    placed = does == PLACES
    return PLACED.get(word, placed) != placed


def ask(program: Path, fleets: list[Object]) -> list[list[str]]:
    """The verdicts of a release for each pod of each fleet."""
    lines = "".join(f"{json.dumps(fleet)}\n" for fleet in fleets)
    done = subprocess.run([program], input=lines, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{program} ended with {done.returncode}:\n{done.stderr[-2000:]}"
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    assert [len(answer) for answer in answers] == [len(fleet["pods"]) for fleet in fleets], f"{program} left pods out"
    assert {word for answer in answers for word in answer} <= {PLACES, SKIPS, REFUSES}, f"{program} says something else"
    return answers


def compare(program: Path, version: str, seed: int, fleets: int, family: str = "vgpu") -> Comparison:
    """Compare the verdicts on random pods of a family; the same seed makes the same pods for every release."""
    rng = random.Random(seed)
    asked = [question(FLEETS[family](rng, PODS), family, version) for _ in range(fleets)]
    found = Comparison()
    for (words, fleet), answer in zip(asked, ask(program, [fleet for _, fleet in asked]), strict=True):
        for word, pod, does in zip(words, fleet["pods"], answer, strict=True):
            found.counts[word] += 1
            found.skipped += does == SKIPS
            if differs(word, does):
                found.differences.append({**fleet, "pods": [pod], "verdict": word, "does": does})
    return found
