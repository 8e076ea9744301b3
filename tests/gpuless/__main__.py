"""Run a cluster until Ctrl-C: `make cluster`."""

import argparse
import re
import signal

from tests.gpuless.assets import find_assets, profiles
from tests.gpuless.cluster import in_own_directory


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.gpuless", description=__doc__)
    parser.add_argument("profiles", nargs="*", default=["a100"], help="the cards of each node: a100, t4:2 …")
    parser.add_argument("--without-webhook", action="store_true", help="do not build and install the webhook")
    options = parser.parse_args()
    known = profiles(find_assets())
    if unknown := [each for each in options.profiles if not re.fullmatch(rf"({'|'.join(known)})(:[1-8])?", each)]:
        parser.error(f"unknown cards {', '.join(unknown)}: write {', '.join(known)}, and :1 to :8 for that many")
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, stop)
    try:
        run(options.profiles, webhook=not options.without_webhook)
    except KeyboardInterrupt:
        print("\nstopped")


def stop(*_: object) -> None:
    """End the cluster; a second signal would interrupt the end."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    raise KeyboardInterrupt


def run(chosen: list[str], *, webhook: bool) -> None:
    with in_own_directory(*chosen) as (_, running):
        for node in running.nodes:
            offered = node.allocatable()
            print(f"{node.name} offers", ", ".join(f"{offered[name]} {name}" for name in offered if "vgpu" in name))
        if webhook:
            print("building the webhook's image, and installing its chart", flush=True)
            running.install_webhook(console={"enabled": True})
            print("console:", running.forward_console())
        print(f"export KUBECONFIG={running.cluster.kubeconfig} PATH={find_assets()}:$PATH")
        print("Ctrl-C stops the cluster and removes everything", flush=True)
        signal.pause()


if __name__ == "__main__":
    main()
