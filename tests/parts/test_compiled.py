"""With a `go` that writes an empty program and a line in a log; the real one takes minutes."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.deploy.files import ROOT
from tests.parts import compiled
from tests.parts.compiled import ALL, API_SERVER, HERE

MODULES = [module for parts in ALL.values() for module in parts.modules]
GO = """\
#!/bin/sh
echo "$@" >> {log}
case $1 in
env) echo {version} ;;
list) echo {crds} ;;
build) case "$*" in *"{fails}"*) echo 'dial tcp: no route to host' >&2; exit 1 ;; esac
    sleep 0.1; touch "$5"; chmod +x "$5" ;;
esac
"""


class Machine:
    """A machine with a cache and a Go."""

    def __init__(self, directory: Path) -> None:
        self.log, self.go = directory / "log", directory / "bin" / "go"
        self.go.parent.mkdir()
        self._crds = directory / "source"
        (self._crds / "config/crd/volcano/bases").mkdir(parents=True)
        (self._crds / "config/crd/volcano/bases/jobs.yaml").write_text("kind: CustomResourceDefinition\n")
        self.environment = {
            **{name: value for name, value in os.environ.items() if not name.endswith("_ASSETS")},
            "PATH": f"{self.go.parent}:/usr/bin:/bin",
            "XDG_CACHE_HOME": str(directory / "cache"),
        }
        self.cache = directory / "cache" / "vgpu-webhook" / "parts"
        self.install()

    def install(self, version: str = "go1.26.8", fails: str = "no program") -> None:
        self.go.write_text(GO.format(log=self.log, version=version, fails=fails, crds=self._crds))
        self.go.chmod(0o755)

    def run(self, *names: str, times: int = 1, **variables: str) -> tuple[int, str, str]:
        """Run it, at the same time if several times; returns the last exit code, and what all print, also about errors."""
        command, pipes = (
            [sys.executable, "-m", "tests.parts.compiled", *names],
            {"stdout": -1, "stderr": -1, "text": True},
        )
        environment = self.environment | variables
        runs = [subprocess.Popen(command, cwd=ROOT, env=environment, **pipes) for _ in range(times)]
        outputs, errors = map("".join, zip(*[run.communicate() for run in runs], strict=True))
        return runs[-1].returncode, outputs, errors

    def compiled(self) -> list[str]:
        """The names of the programs that were compiled since the last call."""
        lines = self.log.read_text().splitlines() if self.log.exists() else []
        self.log.unlink(missing_ok=True)
        return [Path(line.split(" -o ")[1].split()[0]).name for line in lines if line.startswith("build")]

    def sets(self) -> list[str]:
        return sorted(path.name for path in self.cache.glob("*-[0-9]*"))


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def test_each_module_requires_its_project_and_names_the_programs_as_tools():
    assert {module.folder for module in MODULES} == {path.parent.name for path in HERE.glob("*/go.mod")}
    for module in MODULES:
        text = (HERE / module.folder / "go.mod").read_text()
        tools = re.findall(r"^(?:tool |\t)(\S+/\S+)$", text, re.MULTILINE)
        assert sorted(module.programs.values()) == sorted(tools)
        assert re.fullmatch(r"\d+\.\d+\.\d+", module.version)


def test_programs_are_compiled_once(machine: Machine):
    """Also by two at the same time."""
    code, output, error = machine.run(times=2)
    assert (code, error) == (0, "")
    assert sorted(machine.compiled()) == sorted(name for parts in ALL.values() for name in parts.programs)
    assert re.search(r"compiling kube-apiserver of k8s.io/kubernetes [\d.]+ … \d+ s\n", output)
    api_server, volcano = machine.sets()
    assert (machine.cache / volcano / "crd" / "jobs.yaml").exists()
    found = [f"api-server: {machine.cache / api_server}", f"volcano: {machine.cache / volcano}"]
    assert (machine.run()[1].splitlines(), machine.compiled()) == (found, [])


def test_another_go_or_module_compiles_anew(machine: Machine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    for name in ("PATH", "XDG_CACHE_HOME"):
        monkeypatch.setenv(name, machine.environment[name])
    monkeypatch.delenv(API_SERVER.variable, raising=False)
    folders = [API_SERVER.compile()]
    assert folders == [API_SERVER.find()]
    machine.install("go1.27.0")
    compiled._go_version.cache_clear()
    assert API_SERVER.find() is None
    folders.append(API_SERVER.compile())
    for path in HERE.rglob("go.*"):
        copy = tmp_path / path.relative_to(HERE)
        copy.parent.mkdir(exist_ok=True)
        copy.write_text(path.read_text() + "\n" * (path.name == "go.sum"))
    monkeypatch.setattr(compiled, "HERE", tmp_path)
    folders.append(API_SERVER.compile())
    compiled._go_version.cache_clear()
    assert len(set(folders)) == 3


def test_what_fails_leaves_nothing_that_counts_as_complete(machine: Machine):
    machine.install(fails="cmd/kubectl")
    own = f"set KUBEBUILDER_ASSETS to a folder with {API_SERVER.elsewhere}\n"
    code, _, error = machine.run("api-server")
    assert (code, error) == (
        1,
        "\napi-server: Go cannot compile it here (dial tcp: no route to host): see that Go reaches its module proxy, or "
        + own,
    )
    assert machine.sets() == []
    machine.install()
    machine.compiled()
    assert machine.run("api-server")[0] == 0
    assert machine.compiled() == API_SERVER.programs
    machine.go.unlink()
    missing = f"\napi-server: Go is not installed (https://go.dev/dl): install it, or {own}"
    assert machine.run(PATH=str(machine.go.parent)) == (1, "", missing)


@pytest.mark.parametrize("complete", [True, False])
def test_a_folder_of_ones_own_is_used(
    complete: bool, machine: Machine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    for name in API_SERVER.programs[not complete :]:
        (tmp_path / name).touch(0o755)
    monkeypatch.setenv(API_SERVER.variable, str(tmp_path))
    assert API_SERVER.find() == (tmp_path if complete else None)
    code, output, _ = machine.run("api-server", KUBEBUILDER_ASSETS=str(tmp_path))
    assert (code, output) == (0, f"api-server: {tmp_path}, as KUBEBUILDER_ASSETS says\n")
    assert machine.compiled() == []
