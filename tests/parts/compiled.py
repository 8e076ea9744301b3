"""`make parts` compiles what is missing of these programs, once a machine.

Each folder here is a Go module that requires one project and names its programs as tools. A set of programs is a folder in
the cache of the user. The name of the folder has a digest of its modules and of Go, so a new version is compiled anew.
"""

import argparse
import fcntl
import hashlib
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

HERE = Path(__file__).parent
GO = {"CGO_ENABLED": "0", "GOWORK": "off"}
CRDS = "crd"  # a folder of Volcano's set


class PartsError(Exception):
    """The programs cannot be had; the message says why, and what to do."""


@dataclass(frozen=True)
class Module:
    """A Go module of this folder.

    Attributes:
        folder: its name here.
        project: the module that it requires.
        programs: the packages of the programs, by the names of their files.
        stamps: the variables of the project that hold its version, and what of it.
        crds: the files of the project that define custom resources, as a pattern.
    """

    folder: str
    project: str
    programs: Mapping[str, str]
    stamps: Mapping[str, str]
    crds: str = ""

    @property
    def version(self) -> str:
        """The version of the project: `1.37.2`."""
        text = (HERE / self.folder / "go.mod").read_text()
        found = re.search(rf"{re.escape(self.project)} v(\S+)", text)
        assert found, f"{self.folder}/go.mod requires {self.project}"
        return found[1]

    def compile(self, target: Path) -> None:
        """Write the programs and the CRDs into a folder, and print how long each takes.

        Raises:
            subprocess.CalledProcessError: Go cannot compile one.
        """
        major, minor, _ = self.version.split(".", 2)
        values = {
            name: text.format(version=self.version, major=major, minor=minor) for name, text in self.stamps.items()
        }
        linker = " ".join(["-s -w", *(f"-X {name}={value}" for name, value in values.items())])
        for name, package in self.programs.items():
            print(f"compiling {name} of {self.project} {self.version} … ", end="", flush=True)
            began = time.monotonic()
            _go("build", "-trimpath", f"-ldflags={linker}", "-o", str(target / name), package, cwd=HERE / self.folder)
            print(f"{time.monotonic() - began:.0f} s", flush=True)
        if self.crds:
            (target / CRDS).mkdir()
            source = Path(_go("list", "-m", "-f", "{{.Dir}}", self.project, cwd=HERE / self.folder))
            for file in sorted(source.glob(self.crds)):
                (target / CRDS / file.name).write_bytes(file.read_bytes())


@dataclass(frozen=True)
class Parts:
    """A set of programs, in one folder.

    Attributes:
        name: of the set.
        variable: the variable of the environment that names a folder to use instead.
        elsewhere: what such a folder has, and where to get it.
        modules: where they come from; the set has the version of the first.
    """

    name: str
    variable: str
    elsewhere: str
    modules: tuple[Module, ...]

    @property
    def help(self) -> str:
        """What to do where the programs are missing."""
        return f"run `make parts`, or set {self.variable} to a folder with {self.elsewhere}"

    @property
    def programs(self) -> list[str]:
        return [name for module in self.modules for name in module.programs]

    def find(self) -> Path | None:
        """The folder of the programs; None if one is missing."""
        try:
            folder = Path(os.environ.get(self.variable) or self.compiled())
        except PartsError:
            return None
        return folder if all(os.access(folder / name, os.X_OK) for name in self.programs) else None

    def compiled(self) -> Path:
        """The folder in the cache, which may not be there yet.

        Raises:
            PartsError: Go is not installed, or too old.
        """
        digest = hashlib.sha256()
        for module in self.modules:
            digest.update(repr(module).encode())
            for name in ("go.mod", "go.sum"):
                digest.update((HERE / module.folder / name).read_bytes())
            digest.update(self._go_version(module.folder).encode())
        return _cache() / f"{self.name}-{self.modules[0].version}-{digest.hexdigest()[:12]}"

    def compile(self) -> Path:
        """Compile them, unless they are there; a set is complete, or not there at all.

        Returns:
            the folder.

        Raises:
            PartsError: they cannot be compiled here.
        """
        folder = self.compiled()
        folder.parent.mkdir(parents=True, exist_ok=True)
        with folder.with_name(f"{self.name}.lock").open("w") as lock:
            _wait_for(lock.fileno())
            if folder.exists():
                return folder
            partial = folder.with_name(f"{self.name}.partial")  # left by a run that was interrupted, if it exists
            shutil.rmtree(partial, ignore_errors=True)
            partial.mkdir()
            print(f"{self.name}: compiled once on this machine, into {folder}", flush=True)
            for module in self.modules:
                try:
                    module.compile(partial)
                except subprocess.CalledProcessError as error:
                    raise self._error(error) from error
            partial.rename(folder)
        return folder

    def _go_version(self, folder: str) -> str:
        try:
            return _go_version(folder)
        except FileNotFoundError:
            raise PartsError(f"Go is not installed (https://go.dev/dl): install it, or {self._own}") from None
        except subprocess.CalledProcessError as error:
            raise self._error(error) from error

    def _error(self, error: subprocess.CalledProcessError) -> PartsError:
        said = " ".join(error.stderr.split("\n")[-3:]).strip()
        return PartsError(f"Go cannot compile it here ({said}): see that Go reaches its module proxy, or {self._own}")

    @property
    def _own(self) -> str:
        return f"set {self.variable} to a folder with {self.elsewhere}"


_KUBERNETES = "k8s.io/component-base/version"

API_SERVER = Parts(
    "api-server",
    "KUBEBUILDER_ASSETS",
    "etcd, kube-apiserver and kubectl, such as `setup-envtest use -p path` prints",
    (
        Module(
            "kubernetes",
            "k8s.io/kubernetes",
            {name: f"k8s.io/kubernetes/cmd/{name}" for name in ("kube-apiserver", "kubectl")},
            {
                f"{_KUBERNETES}.gitVersion": "v{version}",
                f"{_KUBERNETES}.gitMajor": "{major}",
                f"{_KUBERNETES}.gitMinor": "{minor}",
            },
        ),
        Module("etcd", "go.etcd.io/etcd/server/v3", {"etcd": "go.etcd.io/etcd/server/v3"}, {}),
    ),
)
VOLCANO = Parts(
    "volcano",
    "VOLCANO_ASSETS",
    f"vc-scheduler, vc-controller-manager and {CRDS}/*.yaml of a release (docs/try-without-gpu.md), and VOLCANO_VERSION to it",
    (
        Module(
            "volcano",
            "volcano.sh/volcano",
            {f"vc-{name}": f"volcano.sh/volcano/cmd/{name}" for name in ("scheduler", "controller-manager")},
            {"volcano.sh/volcano/pkg/version.Version": "v{version}"},
            "config/crd/*/bases/*.yaml",
        ),
    ),
)
ALL = {parts.name: parts for parts in (API_SERVER, VOLCANO)}


def _cache() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "vgpu-webhook" / "parts"


def _go(*arguments: str, cwd: Path) -> str:
    done = subprocess.run(["go", *arguments], cwd=cwd, env=os.environ | GO, capture_output=True, text=True, check=True)
    return done.stdout.strip()


@cache
def _go_version(folder: str) -> str:
    """The version of Go that compiles a module, and for which machines."""
    return _go("env", "GOVERSION", "GOOS", "GOARCH", cwd=HERE / folder)


def _wait_for(lock: int) -> None:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        print("another process compiles them: waiting for it", flush=True)
        fcntl.flock(lock, fcntl.LOCK_EX)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.parts.compiled", description=__doc__)
    parser.add_argument("only", nargs="?", choices=ALL, help="this set")
    only = parser.parse_args().only
    for name in [only] if only else ALL:
        parts = ALL[name]
        if folder := os.environ.get(parts.variable):
            print(f"{name}: {folder}, as {parts.variable} says")
            continue
        try:
            print(f"{name}: {parts.compile()}", flush=True)
        except PartsError as error:
            sys.exit(f"\n{name}: {error}")


if __name__ == "__main__":
    main()
