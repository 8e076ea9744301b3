"""Tries the laws on random scenarios, each made of a seed, so that a failure can be repeated."""

import math
import random
import time
import zlib

from tests.properties import laws
from tests.properties.laws import Law
from tests.properties.scenarios import scenario
from tests.questions import is_removed

OF_ANSWERS: dict[str, Law] = {}  # each takes a tenth of a second
if not is_removed("what-if"):
    from tests.properties import answers

    OF_ANSWERS = answers.LAWS
LAWS = laws.LAWS | OF_ANSWERS


def check(law: str, seed: int) -> None:
    """Try one law on the scenario of a seed.

    Raises:
        AssertionError: it does not hold, with the scenario as a note.
    """
    chance = random.Random(zlib.crc32(f"{law} {seed}".encode()))
    tried = scenario(chance)
    try:
        LAWS[law](tried, chance)
    except Exception as error:
        error.add_note(f"law {law}, seed {seed}:\n{tried}")
        raise


def search(seconds: float, first: int) -> int:
    """Try all laws on new seeds until the time is over, beginning at a seed.

    Returns:
        How many scenarios were tried.

    Raises:
        AssertionError: one breaks a law; its notes name the seed.
    """
    ends, seed = time.monotonic() + (seconds or math.inf), first
    while time.monotonic() < ends:
        for law in LAWS:
            check(law, seed)
        seed += 1
    return (seed - first) * len(LAWS)
