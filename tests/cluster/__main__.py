"""Run a cluster until Ctrl-C: `make cluster`."""

import argparse
import signal
import sys
import tempfile
from pathlib import Path

from tests.cluster.assets import MissingError, find_assets, profiles
from tests.cluster.cluster import GpuCluster


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.cluster", description=__doc__)
    parser.add_argument("profiles", nargs="*", default=["a100"], help="the cards of each node: a100, t4 …")
    chosen = parser.parse_args().profiles
    try:
        known = profiles(find_assets())
    except MissingError as missing:
        sys.exit(str(missing))
    if unknown := sorted(set(chosen) - set(known)):
        parser.error(f"unknown profile {', '.join(unknown)}: choose from {', '.join(known)}")
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    with tempfile.TemporaryDirectory(prefix="vgpu-cluster-", dir="/var/tmp") as directory:
        try:
            run(Path(directory), chosen)
        except KeyboardInterrupt:
            print("\nstopped")


def run(directory: Path, chosen: list[str]) -> None:
    print(f"starting; the logs are in {directory}", flush=True)
    with GpuCluster(directory, chosen) as running:
        for node in running.nodes:
            offered = node.allocatable()
            print(f"{node.name} offers", ", ".join(f"{offered[name]} {name}" for name in offered if "vgpu" in name))
        print(f"export KUBECONFIG={running.cluster.kubeconfig}")
        print("Ctrl-C stops the cluster and removes everything", flush=True)
        signal.pause()


if __name__ == "__main__":
    main()
