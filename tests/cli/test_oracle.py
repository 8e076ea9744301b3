"""The scheduler's own verdicts, through the command's own path: files in, JSON lines out. None may differ.

The explanations must agree, too: a change that is offered is made, and the pod is reviewed again.
"""

import copy
import json
from typing import Any

import pytest

from tests.cli.conftest import DATA, Ran

POLICY = {
    "memoryAboveCard": "deny",
    "target": {"volcano": "1.16.0"},
    "rules": {"several-device-containers": "off"},
}


def fleets(name: str) -> list[Any]:
    return [json.loads(line) for line in (DATA / "oracle" / name).read_text().splitlines()]


FLEETS = fleets("cases.jsonl")
FAMILIES = fleets("families.jsonl")
ALLOWED = {"allow": {True}, "deny": {False}, "either": {True, False}}


@pytest.fixture
def review(run, write):
    """Review some pods against some nodes."""

    def review(fleet: dict[str, Any], nodes: list[Any], pods: list[Any], *options: str) -> Ran:
        return run(
            "review",
            "-o",
            "json",
            *options,
            "--policy",
            write("policy.yaml", POLICY),
            "--device-config",
            write("config.yaml", fleet["deviceConfig"]),
            "--fleet",
            write("fleet.yaml", {"apiVersion": "v1", "kind": "List", "items": nodes}),
            write("pods.yaml", {"apiVersion": "v1", "kind": "List", "items": pods}),
        )

    return review


# No single change makes one of their pods fit.
WITHOUT_OFFERS = {"gpushare21-13", "gpushare21-16", "gpushare21-17"}

LINES: dict[int, list[Any]] = {}  # by the fleet's identity: what its pods are told, which several tests look at


@pytest.fixture
def explained(review):
    """The lines about a fleet's pods, with explanations."""

    def explained(fleet: dict[str, Any]) -> list[Any]:
        if id(fleet) not in LINES:
            pods = [case["pod"] for case in fleet["cases"]]
            LINES[id(fleet)] = review(fleet, fleet["nodes"], pods, "--explain").lines
        return LINES[id(fleet)]

    return explained


def test_the_oracle_is_all_there():
    cases = [case for fleet in FLEETS for case in fleet["cases"]]
    assert len(cases) == 2000
    assert {"allow", "deny"} <= {case["expect"] for case in cases} <= set(ALLOWED)
    others = [case for fleet in FAMILIES for case in fleet["cases"]]
    assert len(others) == 1000
    assert {case["expect"] for case in others} == {"allow", "deny"}


@pytest.mark.parametrize("fleet", FLEETS, ids=lambda fleet: fleet["id"])
def test_verdicts_are_the_schedulers(fleet, explained):
    cases = fleet["cases"]
    told = explained(fleet)
    assert len(told) == len(cases)
    for case, line in zip(cases, told, strict=True):
        assert line["allowed"] in ALLOWED[case["expect"]], (case, line["findings"])
        placements = {shape["placement"] for pod in line["explain"] for shape in pod["shapes"]}
        if line["explain"] and line["explain"][0]["placeable"]:
            assert ("fits" in placements) == (case["expect"] == "allow"), (case, line["explain"])
        _check_slices(case, line)


@pytest.mark.parametrize("fleet", FAMILIES, ids=lambda fleet: fleet["id"])
def test_verdicts_on_other_families_are_the_schedulers(fleet, explained):
    cases = fleet["cases"]
    told = explained(fleet)
    assert [line["allowed"] for line in told] == [case["expect"] == "allow" for case in cases]
    for case, line in zip(cases, told, strict=True):
        placements = [[shape["placement"] for shape in pod["shapes"]] for pod in line["explain"]]
        assert line["explain"]
        assert {placement for some in placements for placement in some} <= {"fits", "never"}
        assert all("fits" in some for some in placements) == line["allowed"], (case, line["explain"])


def _check_slices(case: dict[str, Any], line: dict[str, Any]) -> None:
    """They lie on different cards of the node."""
    counts = [_number(container) for container in case["pod"]["spec"]["containers"]]
    for shape in (shape for pod in line["explain"] for shape in pod["shapes"] if shape["slices"]):
        cards = sum(kind["count"] for kind in shape["cards"])
        taken = [container["cards"] for container in shape["slices"]["containers"]]
        assert [len(set(one)) for one in taken] == [count for count in counts if count]
        assert all(0 <= card < cards for one in taken for card in one)


@pytest.mark.parametrize("fleet", FLEETS[::3], ids=lambda fleet: fleet["id"])
def test_offered_changes_help(fleet, review, explained):
    """Make each change, and for a number also the one that gives up a little less."""
    nodes = {node["metadata"]["name"]: node for node in fleet["nodes"]}
    offers = 0
    for case, line in zip(fleet["cases"], explained(fleet), strict=True):
        for shape in (shape for pod in line["explain"] for shape in pod["shapes"] if shape["change"]):
            alone = [nodes[name] for name in shape["names"]]
            changed, less = _apply(case["pod"], shape["change"], 0), _apply(case["pod"], shape["change"], 1)
            told = review(fleet, alone, [changed, less]).lines
            assert told[0]["allowed"], (case["pod"], shape, told[0]["findings"])
            if "most" in shape["change"]:
                tight = any(finding["rule"] == "fits-tightly" for finding in told[1]["findings"])
                assert tight or not told[1]["allowed"], (case["pod"], shape)
            offers += 1
            if offers == 12:
                return
    assert offers


@pytest.mark.parametrize("fleet", FAMILIES, ids=lambda fleet: fleet["id"])
def test_offered_changes_help_in_other_families(fleet, review, explained):
    """Make each change, and for a number also the one that gives up a little less."""
    nodes = {node["metadata"]["name"]: node for node in fleet["nodes"]}
    offers: dict[tuple[str, ...], list[Any]] = {}
    for case, line in zip(fleet["cases"], explained(fleet), strict=True):
        for shape in line["explain"][0]["shapes"] if len(line["explain"]) == 1 else ():  # several chips need several
            if shape["change"]:
                offers.setdefault(tuple(shape["names"]), []).append((case["pod"], shape["change"]))
    assert bool(offers) == (fleet["id"] not in WITHOUT_OFFERS)
    for alone, offered in offers.items():
        pods = [_apply(pod, change, more) for pod, change in offered for more in (0, 1)]
        told = review(fleet, [nodes[name] for name in alone], pods).lines
        for (pod, change), made, less in zip(offered, told[::2], told[1::2], strict=True):
            assert made["allowed"], (alone, pod, change, made["findings"])
            assert not less["allowed"] or "remove" in change or _is_whole(change, less), (alone, pod, change)


def _is_whole(change: dict[str, Any], line: dict[str, Any]) -> bool:
    """Whether memory that nobody offers was rounded down to a whole NPU."""
    return any(
        f"{change['most'] + 1} becomes {change['most']}, the whole NPU" in warning for warning in line["warnings"]
    )


def _number(container: dict[str, Any]) -> int:
    limits = container.get("resources", {}).get("limits", {})
    number, memory = limits.get("volcano.sh/vgpu-number"), limits.get("volcano.sh/vgpu-memory")
    return int(number) if number is not None else int(memory is not None)


def _apply(pod: dict[str, Any], change: dict[str, Any], more: int) -> dict[str, Any]:
    pod = copy.deepcopy(pod)
    if "remove" in change:
        del pod["metadata"]["annotations"][change["remove"]]
        return pod
    container = next(c for c in pod["spec"]["containers"] if c["name"] == change["container"])
    for part in container["resources"].values():
        part[change["resource"]] = str(change["most"] + more)
    return pod
