"""`review` gives the same verdict as the scheduler in every recorded case.

The explanations must agree, too: each offered change is applied, and the pod is reviewed again.
"""

import copy
import json
from typing import Any

import pytest

from tests.cli.conftest import DATA, Result

POLICY = {"memoryAboveCard": "deny", "target": {"volcano": "1.16.0"}, "rules": {"several-device-containers": "off"}}


def fleets(name: str) -> list[Any]:
    return [json.loads(line) for line in (DATA / "oracle" / name).read_text().splitlines()]


FLEETS = fleets("cases.jsonl")
FAMILIES = fleets("families.jsonl")
RELEASES = fleets("versions.jsonl")
ALLOWED = {"allow": {True}, "deny": {False}, "either": {True, False}}


@pytest.fixture
def review(run, write):
    def review(fleet: dict[str, Any], nodes: list[Any], pods: list[Any], *options: str, policy: Any = POLICY) -> Result:
        documents = {"policy": policy, "device-config": fleet["deviceConfig"]}
        for name, items in (("fleet", nodes), ("filename", pods)):
            documents[name] = {"apiVersion": "v1", "kind": "List", "items": items}
        words = [word for name, content in documents.items() for word in (f"--{name}", write(name, content))]
        return run("review", "-o", "json", *options, *words)

    return review


# Fleets where no single change makes a pod fit.
WITHOUT_OFFERS = {"gpushare21-13", "gpushare21-16", "gpushare21-17"}

EXPLAINED: dict[int, list[Any]] = {}  # the output for the pods of a fleet, by id(fleet); several tests use it


@pytest.fixture
def explained(review):
    """The JSON lines of all pods of a fleet, with explanations."""

    def explained(fleet: dict[str, Any]) -> list[Any]:
        if id(fleet) not in EXPLAINED:
            pods = [case["pod"] for case in fleet["cases"]]
            EXPLAINED[id(fleet)] = review(fleet, fleet["nodes"], pods, "--explain").lines
        return EXPLAINED[id(fleet)]

    return explained


def test_the_oracle_is_complete():
    cases = [case for fleet in FLEETS for case in fleet["cases"]]
    assert len(cases) == 2000
    assert {"allow", "deny"} <= {case["expect"] for case in cases} <= set(ALLOWED)
    others = [case for fleet in FAMILIES for case in fleet["cases"]]
    assert len(others) == 1000
    assert {case["expect"] for case in others} == {"allow", "deny"}
    assert sum(len(case["fits"]) for fleet in RELEASES for case in fleet["cases"]) == 5040


@pytest.mark.parametrize("fleet", FLEETS, ids=lambda fleet: fleet["id"])
def test_verdicts_match_the_scheduler(fleet, explained):
    cases = fleet["cases"]
    lines = explained(fleet)
    assert len(lines) == len(cases)
    for case, line in zip(cases, lines, strict=True):
        assert line["allowed"] in ALLOWED[case["expect"]], (case, line["findings"])
        placements = {shape["placement"] for pod in line["explain"] for shape in pod["shapes"]}
        if line["explain"] and line["explain"][0]["placeable"]:
            assert ("fits" in placements) == (case["expect"] == "allow"), (case, line["explain"])
        _check_slices(case, line)


@pytest.mark.parametrize("release", RELEASES[0]["cases"][0]["fits"])
def test_verdicts_match_each_release(release, review):
    volcano = "1.16.0" if release == "HEAD" else release
    policy = {**POLICY, "target": {"volcano": volcano, "devicePlugin": "1.11.0"}}
    wrong = []
    for fleet in RELEASES:
        cases = fleet["cases"]
        lines = review(fleet, fleet["nodes"], [case["pod"] for case in cases], policy=policy).lines
        for case, line in zip(cases, lines, strict=True):
            fits = case["fits"][release]
            if not line["allowed"] if fits else case["one"] and line["allowed"]:
                wrong.append((fleet["id"], case["pod"]["metadata"]["name"], fits))
    assert wrong == []


@pytest.mark.parametrize("fleet", FAMILIES, ids=lambda fleet: fleet["id"])
def test_verdicts_of_other_families_match_the_scheduler(fleet, explained):
    cases = fleet["cases"]
    lines = explained(fleet)
    assert [line["allowed"] for line in lines] == [case["expect"] == "allow" for case in cases]
    for case, line in zip(cases, lines, strict=True):
        placements = [[shape["placement"] for shape in pod["shapes"]] for pod in line["explain"]]
        assert line["explain"]
        assert {placement for shapes in placements for placement in shapes} <= {"fits", "never"}
        assert all("fits" in shapes for shapes in placements) == line["allowed"], (case, line["explain"])


def _check_slices(case: dict[str, Any], line: dict[str, Any]) -> None:
    """The slices of a container are on different cards of the node."""
    counts = [_number(container) for container in case["pod"]["spec"]["containers"]]
    for shape in (shape for pod in line["explain"] for shape in pod["shapes"] if shape["slices"]):
        cards = sum(kind["count"] for kind in shape["kinds"])
        names = dict.fromkeys(slice_["container"] for slice_ in shape["slices"])
        taken = [[slice_["device"] for slice_ in shape["slices"] if slice_["container"] == name] for name in names]
        assert [len(set(indexes)) for indexes in taken] == [count for count in counts if count]
        assert all(0 <= index < cards for indexes in taken for index in indexes)


@pytest.mark.parametrize("fleet", [*FLEETS[::3], *FAMILIES], ids=lambda fleet: fleet["id"])
def test_offered_changes_help(fleet, review, explained):
    """Apply each change, at least twelve; for a number, also check that one more does not fit."""
    nodes = {node["metadata"]["name"]: node for node in fleet["nodes"]}
    offers: dict[tuple[str, ...], list[Any]] = {}
    for case, line in zip(fleet["cases"], explained(fleet), strict=True):
        # A pod with several chips needs several changes.
        for shape in line["explain"][0]["shapes"] if len(line["explain"]) == 1 else ():
            if shape["change"]:
                offers.setdefault(tuple(shape["names"]), []).append((case["pod"], shape["change"]))
    assert bool(offers) == (fleet["id"] not in WITHOUT_OFFERS)
    tried = 0
    for alone, changes in offers.items():
        if tried > 12 and fleet in FLEETS:
            break
        tried += len(changes)
        pods = [_apply(pod, change, extra) for pod, change in changes for extra in (0, 1)]
        lines = review(fleet, [nodes[name] for name in alone], pods).lines
        for (pod, change), changed, exceeding in zip(changes, lines[::2], lines[1::2], strict=True):
            assert changed["allowed"], (alone, pod, change, changed["findings"])
            tight = any(finding["rule"] == "fits-tightly" for finding in exceeding["findings"])
            whole = "remove" in change or tight or _is_whole(change, exceeding)
            assert whole or not exceeding["allowed"], (alone, pod, change)


def _is_whole(change: dict[str, Any], line: dict[str, Any]) -> bool:
    """Whether memory above that of an NPU was rounded down to a whole NPU."""
    whole = f"{change['most'] + 1} becomes {change['most']}, the whole NPU"
    return any(whole in warning for warning in line["warnings"])


def _number(container: dict[str, Any]) -> int:
    limits = container.get("resources", {}).get("limits", {})
    number, memory = limits.get("volcano.sh/vgpu-number"), limits.get("volcano.sh/vgpu-memory")
    return int(number) if number is not None else int(memory is not None)


def _apply(pod: dict[str, Any], change: dict[str, Any], extra: int) -> dict[str, Any]:
    pod = copy.deepcopy(pod)
    if "remove" in change:
        del pod["metadata"]["annotations"][change["remove"]]
        return pod
    container = next(c for c in pod["spec"]["containers"] if c["name"] == change["container"])
    for part in container["resources"].values():
        part[change["resource"]] = str(change["most"] + extra)
    return pod
