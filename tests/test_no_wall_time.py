"""No test of `make test` decides by elapsed time, and none sleeps long: on a busy machine everything takes longer.

What is about time uses a clock that the test moves, or counts (calls, bytes, requests). What hangs is ended by pytest's own
limit (pyproject.toml), or by that of `until`. Bounds on speed are in tests/bench.
"""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

HERE = Path(__file__).parent
ELSEWHERE = ("bench", "e2e", "gpuless", "releases")  # `make test` does not run them
CLOCKS = ("monotonic", "perf_counter", "time", "monotonic_ns", "perf_counter_ns", "time_ns")
WORDS = re.compile(r"\btime\.|sleep|timeout|\.wait\(|[^\"']\.join\(")  # of which a module must have some
WAITS = ("wait", "join", "settimeout")  # methods whose argument is a limit; a short one is a pause
LONGEST_SLEEP = 0.2  # seconds
SHORTEST_LIMIT = 120.0  # seconds; less could end what is only slow

ALLOWED = {
    "browser/console.py: Console.close": "a console that has not ended by then is killed, and nothing is checked",
    "server/test_hostile.py: HeldConnections.slow.send_slowly": "the pause of a client that sends slowly",
    "cluster/apiserver.py: ApiServer.sleep": "the fake API server delays a response, and ends at once when it stops",
    "cluster/apiserver.py: ApiServer.events": "the fake API server ends a watch after the time that its client asks for",
    "cluster/apiserver.py: ApiServer._await_change": "likewise",
    "cluster/test_reflector.py: test_a_jump_of_the_wall_clock_has_no_effect": "two instants in their order",
    "properties/run.py: search": "of `make fuzz`, which says how long to search",
    "server/program.py: until": "ends what hangs",
}


def uses(text: str) -> Iterator[str]:
    """The functions of a module that compare elapsed time, sleep long, or end what is only slow."""
    if not WORDS.search(text):
        return
    tree = ast.parse(text)
    constants = {
        target.id: node.value
        for node in tree.body
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    for name, function in _functions(tree, ""):
        nodes = list(_own(function))
        instants = {target for node in nodes for target in _instants(node)}
        if any(_compares(node, instants) or _sleeps(node, constants) or _limits(node, constants) for node in nodes):
            yield name


def _functions(node: ast.AST, prefix: str) -> Iterator[tuple[str, ast.AST]]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
            yield f"{prefix}{child.name}", child
        inner = f"{prefix}{child.name}." if isinstance(child, ast.ClassDef | ast.FunctionDef) else prefix
        yield from _functions(child, inner)


def _own(function: ast.AST) -> Iterator[ast.AST]:
    """The nodes of a function without those of functions in it."""
    left = [*ast.iter_child_nodes(function)]
    while left:
        node = left.pop()
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node
            left += ast.iter_child_nodes(node)


def _instants(node: ast.AST) -> Iterator[str]:
    """The variables that an assignment gives a value of a clock."""
    if isinstance(node, ast.Assign) and any(_is_clock(part) for part in ast.walk(node.value)):
        for target in node.targets:
            yield from (each.id for each in ast.walk(target) if isinstance(each, ast.Name))


def _is_clock(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and _called(node) in {f"time.{clock}" for clock in CLOCKS}


def _called(node: ast.Call) -> str:
    match node.func:
        case ast.Attribute(value=ast.Name(id=module), attr=name):
            return f"{module}.{name}"
    return ""


def _compares(node: ast.AST, instants: set[str]) -> bool:
    return isinstance(node, ast.Compare) and any(
        _is_clock(part) or (isinstance(part, ast.Name) and part.id in instants) for part in ast.walk(node)
    )


def _sleeps(node: ast.AST, constants: dict[str, ast.expr]) -> bool:
    return (
        isinstance(node, ast.Call)
        and _called(node) in ("time.sleep", "asyncio.sleep")
        and not _seconds(node.args[0], constants, above=0) <= LONGEST_SLEEP
    )


def _limits(node: ast.AST, constants: dict[str, ast.expr]) -> bool:
    if not isinstance(node, ast.Call):
        return False
    limits = [keyword.value for keyword in node.keywords if keyword.arg == "timeout"]
    if any(_seconds(limit, constants, above=SHORTEST_LIMIT) < SHORTEST_LIMIT for limit in limits):
        return True
    positional = node.args if isinstance(node.func, ast.Attribute) and node.func.attr in WAITS else []
    return any(
        LONGEST_SLEEP < _seconds(limit, constants, above=SHORTEST_LIMIT) < SHORTEST_LIMIT for limit in positional
    )


def _seconds(node: ast.expr, constants: dict[str, ast.expr], above: float) -> float:
    """The value of an expression; one that is no number counts as infinite, or as `above` if it is passed on."""
    node = constants.get(node.id, node) if isinstance(node, ast.Name) else node
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, int | float) else float("inf")
    return above or float("inf")


def found() -> list[str]:
    """What the tests have, by file and function."""
    paths = [path for path in sorted(HERE.rglob("*.py")) if path.relative_to(HERE).parts[0] not in ELSEWHERE]
    return [f"{path.relative_to(HERE)}: {name}" for path in paths for name in uses(path.read_text())]


def test_no_test_bounds_wall_time():
    assert sorted(found()) == sorted(ALLOWED), (
        "use a clock that the test moves, or count; see the docstring of this module"
    )


@pytest.mark.parametrize(
    "line",
    [
        "assert time.monotonic() - begin < 4",
        "took = time.perf_counter() - begin; assert took < 4",
        "while time.time() < end: pass",
        "time.sleep(0.3)",
        "time.sleep(PAUSE)",
        "time.sleep(random())",
        "asyncio.sleep(1)",
        "subprocess.run(command, timeout=60)",
        "process.communicate(timeout=PAUSE)",
        "process.wait(20)",
        "thread.join(PAUSE)",
        "connection.settimeout(5)",
    ],
)
def test_what_depends_on_the_speed_of_the_machine_is_found(line: str):
    assert list(uses(f"PAUSE = 2.5\nclass Some:\n    def test(self):\n        {line}")) == ["Some.test"]


@pytest.mark.parametrize(
    "line",
    [
        "time.sleep(0.03)",
        "time.sleep(PAUSE)",
        "assert begin < 4",
        "run(timeout=None)",
        "run(timeout=240)",
        "process.wait()",
        "stop.wait(0.02)",
        "process.wait(240)",
        '",".join("a")',
        "settimeout(None)",
    ],
)
def test_what_does_not_is_not(line: str):
    assert not list(uses(f"PAUSE = 0.1\ndef test():\n    {line}"))
