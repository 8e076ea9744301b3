"""No test of `make test` decides by elapsed time, and none sleeps long: on a busy machine everything takes longer.

What is about time uses a clock that the test moves, or counts (calls, bytes, requests). What hangs is ended by pytest's own
limit (pyproject.toml), or by that of `until`. Bounds on speed are in tests/bench.
"""

import re
from collections.abc import Iterator
from pathlib import Path

from tests.cases import each_case

HERE = Path(__file__).parent
ELSEWHERE = ("bench", "e2e", "gpuless", "releases")  # `make test` does not run them
CLOCK = re.compile(r"\btime\.(?:monotonic|perf_counter|time)(?:_ns)?\(")
PAUSE = re.compile(r"\b(?:time|asyncio)\.sleep\(([^()]*)")
LIMIT = re.compile(r"(\btimeout=|\b(?:wait|settimeout)\(|[^\"']\.join\()([\d._]+|[A-Z_]+)[,)]")
CONSTANT = re.compile(r"^([A-Z_]+) = ([\d._]+)", re.MULTILINE)
LONGEST_SLEEP = 0.2  # seconds
SHORTEST_LIMIT = 120.0  # seconds; less could end what is only slow

ALLOWED = {
    "audit/test_tail.py": ("time.time()", "where a clock begins that the test moves"),
    "cluster/apihttp.py": ("time.monotonic()", "when a request came, in their order"),
    "cluster/apiserver.py": (
        "time.monotonic() time.sleep(min)",
        "the fake API server delays a response, and ends a watch as it is asked to",
    ),
    "cluster/test_reflector.py": ("time.monotonic()", "two instants in their order"),
    "parts/compiled.py": ("time.monotonic()", "`make parts` prints how long it took"),
    "properties/run.py": ("time.monotonic()", "of `make fuzz`, which says how long to search"),
    "server/program.py": ("time.monotonic()", "ends what hangs"),
    "server/test_hostile.py": ("wait(1)", "the pause of a client that sends slowly"),
}


def uses(text: str) -> Iterator[str]:
    """What reads a clock, sleeps long, or ends what is only slow."""
    constants = dict(CONSTANT.findall(text))
    yield from (found[0] + ")" for found in CLOCK.finditer(text))
    for found in PAUSE.finditer(text):
        if not _seconds(found[1], constants) <= LONGEST_SLEEP:
            yield f"{found[0]})"
    for found in LIMIT.finditer(text):
        least = 0.0 if "timeout" in found[1] and "set" not in found[1] else LONGEST_SLEEP
        if least <= _seconds(found[2], constants) < SHORTEST_LIMIT:
            yield found[0]


def _seconds(text: str, constants: dict[str, str]) -> float:
    """The value of a number, or of a constant of the same module; infinite for anything else."""
    try:
        return float(constants.get(text, text))
    except ValueError:
        return float("inf")


def test_no_test_bounds_wall_time():
    paths = [path for path in sorted(HERE.rglob("*.py")) if path.relative_to(HERE).parts[0] not in ELSEWHERE]
    found = {str(path.relative_to(HERE)): {*uses(path.read_text())} for path in paths if path != Path(__file__)}
    allowed = {file: {*used.split()} for file, (used, _) in ALLOWED.items()}
    assert {file: used for file, used in found.items() if used} == allowed, "use a clock that the test moves, or count"


FOUND = [
    "time.time_ns()",
    "time.sleep(0.3)",
    "asyncio.sleep(PAUSE)",
    "run(timeout=60)",
    "p.wait(PAUSE)",
    "settimeout(5)",
]
QUIET = ["time.sleep(0.03)", "time.sleep(SOON)", "run(timeout=240)", "p.wait()", "stop.wait(SOON)", '",".join(PARTS)']


@each_case("line,is_found", [*((line, True) for line in FOUND), *((line, False) for line in QUIET)])
def test_what_depends_on_the_speed_of_the_machine_is_found(line: str, *, is_found: bool):
    assert bool([*uses(f"PAUSE = 2.5\nSOON = 0.02\n{line}")]) is is_found
