"""`make bench`: engine, throughput and latency against a floor, growth with the fleet, memory, start. One run, one table.

Every ratio compares figures of this run, taken in turn: the machine's own speed then cancels out.
"""

import argparse
import platform
import sys
import tempfile
from pathlib import Path

from tests.bench import engine, throughput


def main() -> int:
    """Run the chosen parts and print the table."""
    parser = argparse.ArgumentParser(prog="make bench", description=__doc__)
    parser.add_argument("--seconds", type=int, default=3, help="of load for each server, connection count and round")
    parser.add_argument("--rounds", type=int, default=3, help="in which floor and webhook take turns")
    parser.add_argument("--only", choices=("engine", "server"), help="one part alone")
    chosen = parser.parse_args()
    print(f"Python {platform.python_version()}, {platform.machine()}, review: tests/data/reviews/gpu-pod1.json\n")
    if chosen.only != "server":
        engine.report()
    if chosen.only != "engine":
        with tempfile.TemporaryDirectory(prefix="vgpu-webhook-bench-") as directory:
            return throughput.report(Path(directory), chosen.seconds, chosen.rounds)
    return 0


if __name__ == "__main__":
    sys.exit(main())
