"""`make bench`: engine, throughput and latency against a minimal server, growth with the fleet, memory, start, a live cluster.

Every ratio compares figures of the same run, measured in turn, so that it does not depend on the machine. Four parts run
only on request: `--only memory` (memory after many connections, and stalled clients) and `--only decisions` (a million
decisions in the store of the console) take minutes; `--only fallback` needs an API server, and
`--only growth` puts questions about clusters of three sizes, in two minutes.
"""

import argparse
import platform
import sys
import tempfile
from pathlib import Path

from tests.bench import conditions, decisions, engine, fallback, growth, hostile, live, memory, peers, siege, throughput
from tests.ledger import record

ON_REQUEST = {"decisions": decisions.report, "growth": growth.report}


def main() -> int:
    """Run the chosen parts and print the table."""
    parser = argparse.ArgumentParser(prog="make bench", description=__doc__)
    parser.add_argument("--seconds", type=int, default=3, help="of load for each server, connection count and round")
    parser.add_argument(
        "--rounds", type=int, default=3, help="of load, in which the minimal server and the webhook take turns"
    )
    parser.add_argument(
        "--only",
        choices=(
            "engine",
            "hostile",
            "server",
            "peers",
            "live",
            "memory",
            "decisions",
            "conditions",
            "fallback",
            "growth",
        ),
        help="one part alone",
    )
    chosen = parser.parse_args()
    print(f"Python {platform.python_version()}, {platform.machine()}, review: tests/data/reviews/gpu-pod1.json\n")
    missing = 0
    with tempfile.TemporaryDirectory(prefix="vgpu-webhook-bench-") as directory:
        if chosen.only in (None, "engine"):
            engine.report()
        if chosen.only in (None, "hostile"):
            hostile.report()
        if chosen.only in (None, "server"):
            missing = throughput.report(Path(directory), chosen.seconds, chosen.rounds)
        if chosen.only in (None, "peers"):
            missing |= peers.report(Path(directory) / "peers", chosen.seconds, chosen.rounds)
        if chosen.only in (None, "live"):
            live.report(Path(directory), 10 * chosen.seconds)
        if chosen.only in (None, "conditions"):
            missing |= conditions.report(Path(directory))
        if chosen.only == "memory":
            missing = siege.report(Path(directory)) | memory.report(Path(directory))
            record("siege", "NOT within its bounds" if missing else "within its bounds")
        if chosen.only in ON_REQUEST:
            ON_REQUEST[chosen.only](Path(directory))
        if chosen.only == "fallback":
            missing = fallback.report(Path(directory))
    return missing


if __name__ == "__main__":
    sys.exit(main())
