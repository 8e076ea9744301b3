"""CPU time and memory of questions about clusters of 100, 300 and 1,000 nodes with ten times as many pods.

An exponent of 1 means that the cost grows as the cluster does, 2 that it grows with its square. Start-up is left out of it.
"""

import json
import math
import subprocess
import sys
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from tests.bench.fleets import CARDS, COUNTS, fleet
from tests.ledger import record
from tests.questions.why.clusters import group, written
from webhook import names

SIZES = (100, 300, 1_000)  # nodes
SHAPES = len(CARDS) * len(COUNTS)
WAITING = 20  # every so manieth pod waits
GANG = 6
QUESTIONS = {
    "usage": ("usage",),
    "why POD": ("why", "pod-0", "-n", "default"),
    "why": ("why",),
    "what-if --add": ("what-if", "--add", "gpu-1 x 5"),
    "what-if --drain": ("what-if", "--drain", "gpu-1"),
    "what-if --split": ("what-if", "--split", "5"),
}
RECORDED = ("why", "what-if --add")  # in the ledger


class Cost(NamedTuple):
    seconds: float
    memory: float


def report(directory: Path) -> None:
    """Measure, print the table, and write the ledger's row."""
    start = _run(["--version"]).seconds
    found: dict[str, list[Cost]] = {name: [] for name in QUESTIONS}
    for size in SIZES:
        files = _write(directory / str(size), size)
        for name, question in QUESTIONS.items():
            found[name].append(_run([*question, *files]))
    print(f"\nCPU seconds and MiB by nodes (pods: ten times as many), and exponents; start-up {start:.1f} s")
    print(f"{'':16}" + "".join(f"{size:>17,}" for size in SIZES) + "   exponents")
    for name, costs in found.items():
        cells = "".join(f"{cost.seconds:>9.1f} s {cost.memory:>4.0f} M" for cost in costs)
        print(f"{name:16}{cells}   " + ", ".join(f"{one:.2f}" for one in _exponents(costs, start)))
    figures = [
        f"{name} {found[name][-1].seconds:.1f} s, exponent {_exponents(found[name], start)[-1]:.1f}"
        for name in RECORDED
    ]
    record("growth", f"{SIZES[-1]:,} nodes: {'; '.join(figures)}")


def _exponents(costs: Sequence[Cost], start: float) -> list[float]:
    work = [max(cost.seconds - start, 0.01) for cost in costs]
    return [math.log(work[at + 1] / work[at]) / math.log(SIZES[at + 1] / SIZES[at]) for at in range(len(SIZES) - 1)]


def _run(arguments: Sequence[str]) -> Cost:
    """A command of its own, started by a small process whose memory does not count; that it finds something is no failure."""
    command = [sys.executable, "-c", _LAUNCHER, sys.executable, "-m", "webhook", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode not in (0, 1):
        raise SystemExit(f"{' '.join(arguments)}: {done.stderr}")
    seconds, memory = done.stdout.split()
    return Cost(float(seconds), int(memory) / 1024)


_LAUNCHER = """\
import resource, subprocess, sys
code = subprocess.call(sys.argv[1:], stdout=subprocess.DEVNULL)
used = resource.getrusage(resource.RUSAGE_CHILDREN)
print(used.ru_utime, used.ru_maxrss)
sys.exit(code)
"""


def _write(directory: Path, size: int) -> list[str]:
    directory.mkdir()
    objects = list(_objects(size))
    for name, content in (("nodes", fleet(size, SHAPES)), ("pods", {"kind": "List", "items": objects})):
        (directory / f"{name}.json").write_text(json.dumps(content, indent=4))
    return ["--fleet", f"{directory}/nodes.json", "--pods", f"{directory}/pods.json", "-o", "json"]


def _objects(size: int) -> Iterator[dict[str, Any]]:
    """Pods, of which some wait, half of these in gangs, and their PodGroups."""
    waiting = 0
    for number in range(10 * size):
        owner = {"apiVersion": "batch/v1", "kind": "Job", "name": f"job-{number // 20}", "controller": True}
        created = f"2026-01-01T{number // 3600 % 24:02}:{number // 60 % 60:02}:{number % 60:02}Z"
        pod = partial(written, name=f"pod-{number}", owner=owner, created=created)
        if number % WAITING:
            node = number % size
            card = number // size % COUNTS[node % SHAPES // len(CARDS)]
            amount = 500 * (1 + number * 7 % 5)
            ids = f"GPU-{node:06d}-{card},NVIDIA,{amount},5:"
            annotations = {names.VGPU_IDS: ids, names.VGPU_NODE: f"gpu-{node}"}
            place = {"namespace": f"team-{number // 200}", "node": f"gpu-{node}", "annotations": annotations}
            yield pod(number=1, memory=amount, cores=5, **place)
            continue
        waiting += 1
        gang, member = divmod(waiting, GANG)
        whole = {"number": 8, "memory": 20_000 + gang % 30 * 1_000, "cores": 50}
        small = {"number": 1, "memory": 1_000 + gang % 20 * 1_000, "cores": gang % 4 * 10}
        if gang % 2 and not member:
            yield group(f"gang-{gang}", minMember=GANG)
        yield pod(group=f"gang-{gang}" if gang % 2 else "", **(whole if gang % 6 == 0 else small))
