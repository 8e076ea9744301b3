"""A short budget of the laws; `make fuzz KIND=properties` tries more."""

import random
from pathlib import Path

import pytest
import yaml

from tests.cases import check_each, each_case
from tests.properties import run
from tests.properties.laws import refused
from tests.properties.scenarios import written

SEEDS = 150
FOUND = yaml.safe_load((Path(__file__).parent / "found.yaml").read_text())


@pytest.mark.parametrize("law", run.LAWS)
def test_the_law_holds(law: str):
    seeds = range(SEEDS // 3 if law in run.OF_ANSWERS else SEEDS)
    check_each(lambda seed: run.check(law, seed), [(f"seed {seed}", (seed,)) for seed in seeds])


@each_case("case", FOUND, ids=lambda case: case["name"])
def test_what_broke_a_law_stays_mended(case):
    scenario = written(case)
    assert sorted(refused(scenario.review())) == case["refused"]
    for law in run.LAWS.values():
        law(scenario, random.Random(case["name"]))
