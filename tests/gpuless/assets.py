"""What the cluster consists of: the files of CLUSTER_ASSETS, and the programs of the machine."""

import os
import shutil
from collections.abc import Iterable, Sequence
from math import ceil
from pathlib import Path

import yaml

GUIDE = "docs/try-without-gpu.md"
FILES = {  # with the section of the guide that says where they come from
    "etcd": "Packages",
    "kube-apiserver": "Kubernetes",
    "kube-controller-manager": "Kubernetes",
    "kube-scheduler": "Kubernetes",
    "kubectl": "Kubernetes",
    "kubelet": "Kubernetes",
    "vc-scheduler": "Volcano",
    "vc-controller-manager": "Volcano",
    "crd": "Volcano",
    "volcano-vgpu-device-plugin": "The device plugin",
    "mocknvml/libnvidia-ml.so.1": "Cards without a GPU",
    "mocknvml/configs": "Cards without a GPU",
    "base.tar": "Bases for the image",
    "build-base.tar": "Bases for the image",
}
PROGRAMS = {  # with their Debian packages
    "buildah": "buildah",
    "busybox": "busybox-static",
    "containerd": "containerd",
    "ip": "iproute2",
    "iptables": "iptables",
    "nsenter": "util-linux",
    "pkill": "procps",
    "runc": "runc",
}
OWN_PLACES = [
    Path(place) for place in ("/tmp", "/run", "/var/lib", "/var/log")
]  # tests/gpuless/namespace.py mounts them
MEMORY_FACTOR = 10  # MiB for each unit of vGPU memory, and the step to the next
MAX_UNITS = 60_000  # of one node that a kubelet takes; the device plugin offers no memory above
CNI = Path("/usr/lib/cni")  # of Debian's containernetworking-plugins


class MissingError(SystemExit):
    """The cluster cannot start; the message, with which a program ends, says what is missing and how to get it."""


def find_assets(cni: Path = CNI, own_places: Sequence[Path] = OWN_PLACES) -> Path:
    """The folder CLUSTER_ASSETS.

    Raises:
        MissingError: a part is missing, also of the plugins for networks, or the nodes have places of their own there.
    """
    folder = Path(os.environ.get("CLUSTER_ASSETS") or "/nonexistent")
    packages = {package for program, package in PROGRAMS.items() if shutil.which(program) is None}
    packages |= set() if (cni / "bridge").exists() else {"containernetworking-plugins"}
    missing = [f"{name}: see {section!r} in {GUIDE}" for name, section in FILES.items() if not (folder / name).exists()]
    if not folder.is_dir():
        missing = [f"CLUSTER_ASSETS, the folder of the binaries: {GUIDE} says where to get them"]
    if any(folder.resolve().is_relative_to(place.resolve()) for place in own_places):
        places = ", ".join(map(str, own_places))
        missing = [f"CLUSTER_ASSETS at another place: each node has its own {places}, so it cannot see {folder}"]
    if packages:
        missing.append(f"packages: apt-get install {' '.join(sorted(packages))}")
    if os.geteuid() != 0:
        missing.append("root, to make namespaces and cgroups")
    if missing:
        raise MissingError("The cluster needs:\n" + "\n".join(f"- {each}" for each in missing))
    return folder


def profiles(assets: Path) -> list[str]:
    """The kinds of cards that the mock of NVML can show."""
    files = (assets / "mocknvml" / "configs").glob("mock-nvml-config-*.yaml")
    return sorted(file.stem.removeprefix("mock-nvml-config-") for file in files)


def config_of(assets: Path, cards: str) -> Path:
    """The mock's configuration with these cards."""
    return assets / "mocknvml" / "configs" / f"mock-nvml-config-{cards}.yaml"


def memory_units(assets: Path, profiles: Iterable[str]) -> int:
    """The MiB of one unit of vGPU memory with which a kubelet takes the memory of each node: `a100`, `t4:2` …"""
    largest = 0
    for profile in profiles:
        cards, _, number = profile.partition(":")
        mock = yaml.safe_load(config_of(assets, cards).read_text())
        each = mock["device_defaults"]["memory"]["total_bytes"] // 2**20
        largest = max(largest, each * int(number or len(mock["devices"])))
    return max(1, ceil(largest / MAX_UNITS / MEMORY_FACTOR)) * MEMORY_FACTOR
