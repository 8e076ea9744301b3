"""What each release does with some pods, as recorded in `tests/data/oracle/releases.jsonl`: `make test` has no release at hand.

One line a fleet: its fields, the family as the oracle calls it, and by release what it does with each pod, in order.
"""

import dataclasses
import json
import random
from collections.abc import Iterator, Sequence
from pathlib import Path

from tests.releases.compare import FLEETS, ask, question
from tests.releases.fleets import RandomFleet
from tests.reviewing import DATA
from webhook.volcano.target import Version, format_version

RECORDED = DATA / "oracle" / "releases.jsonl"
SIZES = {"gpushare-memory": 4, "gpushare-number": 4, "ascend": 16, "mindcluster": 6}  # fleets of each family
PODS = 8  # of a fleet


def record(programs: Sequence[tuple[Version, Path]], seed: int) -> str:
    """The lines of random fleets, as programs answer."""
    rng = random.Random(seed)
    return "".join(line for family, size in SIZES.items() for line in _record(programs, rng, family, size))


def _record(programs: Sequence[tuple[Version, Path]], rng: random.Random, family: str, size: int) -> Iterator[str]:
    fleets = [FLEETS[family](rng, PODS) for _ in range(size)]
    does: list[dict[str, list[str]]] = [{} for _ in fleets]
    for version, program in programs:
        asked = [question(fleet, family, format_version(version))[1] for fleet in fleets]
        for each, answer in zip(does, ask(program, asked), strict=True):
            each[program.name.removeprefix("v")] = answer
    for fleet, each in zip(fleets, does, strict=True):
        yield json.dumps({"family": family, "does": each, **dataclasses.asdict(fleet)}) + "\n"


def recorded() -> Iterator[tuple[str, RandomFleet, dict[str, list[str]]]]:
    """The family, the fleet, and what each release does with its pods."""
    for line in RECORDED.read_text().splitlines():
        fleet = json.loads(line)
        family, does = fleet.pop("family"), fleet.pop("does")
        yield family, RandomFleet(**fleet), does
