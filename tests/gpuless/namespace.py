"""Linux namespaces for one node: its mounts, processes and network end with them, whatever happens to the test."""

import contextlib
import functools
import os
import subprocess
from collections.abc import Mapping
from pathlib import Path

from tests.e2e.process import Daemon
from tests.server.program import until

CGROUPS = Path("/sys/fs/cgroup")
API_ADDRESS = "10.96.0.1"  # of the Service `kubernetes`

# What containerd, kubelet and the device plugin write to fixed places lands in $1. Process 1 collects orphans.
_INIT = """
set -e
mkdir -p "$1/lib/kubelet" "$1/log"
mount --bind "$1/lib" /var/lib
mount --bind "$1/log" /var/log
mount -t tmpfs none /run
mount -t tmpfs none /tmp
ip link set lo up
: > "$1/ready"
while :; do sleep 3600 & wait; done
"""


class NodeNamespace:
    """The namespaces of one node, with a network that reaches this machine and nothing else.

    `interface` is the file of the interface of this machine that leads to the node, `pods` the range of its pods' addresses.
    """

    def __init__(self, directory: Path, api_port: int) -> None:
        """Create them in an empty directory that can be the upper layer of an overlay; `API_ADDRESS` leads to the port."""
        self.directory = directory
        self.cgroup = f"{directory.parent.name}-{directory.name}"
        number = next(number for number in range(1, 255) if not _interface(number).exists())
        self.interface = _interface(number)
        self.pods = f"10.244.{number}.0/24"
        self._host, self.address = f"10.245.{number}.1", f"10.245.{number}.2"
        command = ["unshare", "--mount", "--pid", "--net", "--fork", "--kill-child", "--mount-proc"]
        self._init = Daemon(["/usr/bin/env", *command, "sh", "-c", _INIT, "init", directory], directory / "init.log")
        self._daemons = [self._init]
        try:
            for hierarchy in _hierarchies():
                (hierarchy / self.cgroup).mkdir()
            self._init.wait((directory / "ready").exists, 10.0)
            process = self._init.process.pid
            self._pid = Path(f"/proc/{process}/task/{process}/children").read_text().strip()
            self._connect(api_port)
        except BaseException:
            self.close()
            raise

    def start(self, name: str, *command: str | Path, environment: Mapping[str, str] | None = None) -> Daemon:
        """Start a program in the node; its log is `NAME.log`."""
        variables = [f"{key}={value}" for key, value in (environment or {}).items()]
        inside = ["/usr/bin/env", *self._enter(), "/usr/bin/env", *variables, *command]
        daemon = Daemon(inside, self.directory / f"{name}.log")
        daemon.name = name
        self._daemons.append(daemon)
        return daemon

    def run(self, *command: str | Path, stdin: bytes | None = None) -> str:
        """Run a command in the node, and return its output; an error contains what it wrote."""
        return _run(*self._enter(), *command, stdin=stdin)

    def kill(self, program: str, signal: str = "KILL") -> None:
        """End the processes of the node that run a program."""
        name = program[:15]  # the kernel knows no more of it
        self.run("pkill", f"-{signal}", "-x", name)
        until(lambda: self.run("sh", "-c", f"pgrep -x {name} || true") == "")

    def close(self) -> None:
        """Kill all processes of the node, and remove what does not end with them."""
        self._init.process.kill()
        for daemon in self._daemons:
            daemon.close()
        for hierarchy in _hierarchies():
            until(functools.partial(_removed, hierarchy / self.cgroup))

    def _connect(self, api_port: int) -> None:
        """Join this machine and the node, and lead `API_ADDRESS` to the API server."""
        interface = self.interface.name
        _run("ip", "link", "add", interface, "type", "veth", "peer", "name", "eth0", "netns", self._pid)
        _run("ip", "address", "add", f"{self._host}/24", "dev", interface)
        _run("ip", "link", "set", interface, "up")
        _run("ip", "route", "add", self.pods, "via", self.address)
        self.run("ip", "address", "add", f"{self.address}/24", "dev", "eth0")
        self.run("ip", "link", "set", "eth0", "up")
        self.run("ip", "route", "add", "default", "via", self._host)
        target = ["-d", API_ADDRESS, "-p", "tcp", "--dport", "443", "-j", "DNAT", "--to", f"{self._host}:{api_port}"]
        for chain in ("PREROUTING", "OUTPUT"):
            self.run("iptables", "-t", "nat", "-A", chain, *target)

    def _enter(self) -> list[str]:
        return ["nsenter", "--target", self._pid, "--mount", "--pid", "--net"]


def _interface(number: int) -> Path:
    """The interface of this machine that leads to a node; the node's addresses have the same number."""
    return Path(f"/sys/class/net/vgpu-node-{number}")


def _hierarchies() -> list[Path]:
    """The roots of the cgroups: one with version 2, one for each controller with version 1."""
    if (CGROUPS / "cgroup.controllers").exists():
        return [CGROUPS]
    return [path for path in CGROUPS.iterdir() if path.is_dir() and not path.is_symlink() and os.path.ismount(path)]


def _removed(cgroup: Path) -> bool:
    """Remove a cgroup and all below it; False while a process of one has not ended."""
    with contextlib.suppress(OSError):
        for folder, _, _ in os.walk(cgroup, topdown=False):
            Path(folder).rmdir()
    return not cgroup.exists()


def _run(*command: str | Path, stdin: bytes | None = None) -> str:
    result = subprocess.run(command, input=stdin, capture_output=True, timeout=300, check=False)
    assert result.returncode == 0, f"{' '.join(map(str, command))}: {result.stderr.decode()}{result.stdout.decode()}"
    return result.stdout.decode()
