"""`make bench`: engine, throughput and latency against a minimal server, growth with the fleet, memory, start, a live cluster.

Every ratio compares figures of the same run, measured in turn, so that it does not depend on the machine. Three parts run
only on request, and take minutes: `--only memory` (memory after many connections, and stalled clients), `--only decisions` (a
million decisions in the store of the console) and `--only growth` (questions about clusters of three sizes).
"""

import argparse
import platform
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from tests.bench import conditions, decisions, engine, growth, live, memory, peers, siege, throughput
from tests.ledger import record

Part = Callable[[Path, int, int], int | None]  # returns 1 if something is missing, or beyond its bounds
PARTS: dict[str, Part] = {
    "engine": lambda *_: engine.report(),
    "server": throughput.report,
    "peers": peers.report,
    "live": lambda directory, seconds, _: live.report(directory, 10 * seconds),
    "conditions": lambda directory, *_: conditions.report(directory),
}
ON_REQUEST: dict[str, Part] = {
    "memory": lambda directory, *_: _memory(directory),
    "decisions": lambda directory, *_: decisions.report(directory),
    "growth": lambda directory, *_: growth.report(directory),
}


def _memory(directory: Path) -> int:
    missing = siege.report(directory) | memory.report(directory)
    record("siege", "NOT within its bounds" if missing else "within its bounds")
    return missing


def main() -> int:
    parser = argparse.ArgumentParser(prog="make bench", description=__doc__)
    parser.add_argument("--seconds", type=int, default=3, help="of load for each server, connection count and round")
    parser.add_argument(
        "--rounds", type=int, default=3, help="of load, in which the minimal server and the webhook take turns"
    )
    parser.add_argument("--only", choices=(*PARTS, *ON_REQUEST), help="one part alone")
    chosen = parser.parse_args()
    print(f"Python {platform.python_version()}, {platform.machine()}, review: tests/data/reviews/gpu-pod1.json\n")
    missing = 0
    with tempfile.TemporaryDirectory(prefix="vgpu-webhook-bench-") as directory:
        for name, part in (PARTS | ON_REQUEST).items():
            if chosen.only == name or (chosen.only is None and name in PARTS):
                missing |= part(Path(directory), chosen.seconds, chosen.rounds) or 0
    return missing


if __name__ == "__main__":
    sys.exit(main())
