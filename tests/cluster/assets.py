"""What the cluster consists of: the files of CLUSTER_ASSETS, and the programs of the machine."""

import os
import shutil
from pathlib import Path

GUIDE = "docs/try-without-gpu.md"
FILES = {  # with the section of the guide that says how to build them
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
CNI = Path("/usr/lib/cni")  # of Debian's containernetworking-plugins


class MissingError(Exception):
    """The cluster cannot start; the message says what is missing and how to get it."""


def find_assets() -> Path:
    """The folder CLUSTER_ASSETS.

    Raises:
        MissingError: a part is missing.
    """
    folder = Path(os.environ.get("CLUSTER_ASSETS") or "/nonexistent")
    packages = {package for program, package in PROGRAMS.items() if shutil.which(program) is None}
    packages |= set() if (CNI / "bridge").exists() else {"containernetworking-plugins"}
    missing = [f"{name}: see {section!r} in {GUIDE}" for name, section in FILES.items() if not (folder / name).exists()]
    if not folder.is_dir():
        missing = [f"CLUSTER_ASSETS, the folder of the binaries: {GUIDE} says how to build them"]
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
