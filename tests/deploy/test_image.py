"""What the image installs, taken from this environment: the locked distributions, cut as the Dockerfile cuts them."""

import importlib.metadata
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cluster.apiserver import NODES, ApiServer
from tests.deploy.files import ROOT
from tests.deploy.test_dockerfile import locked, steps
from tests.questions import needs
from tests.server.live import gpu_node
from tests.server.program import Authority, Program, until

PYTHON = [sys.executable, "-S"]  # without this environment's own site-packages


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """An environment in which Python finds what the image holds, and nothing else."""
    site = tmp_path_factory.mktemp("install") / "lib" / "python3.13" / "site-packages"
    for name in [*locked(), "volcano-vgpu-webhook"]:
        for file in importlib.metadata.distribution(name).files or ():
            if ".." not in file.parts:
                (site / file).parent.mkdir(parents=True, exist_ok=True)
                (site / file).symlink_to(file.locate())
    (cut,) = [rest for name, rest in steps("dependencies") if name == "RUN" and "pip" not in rest]
    (directory,) = [rest for name, rest in steps("dependencies") if name == "WORKDIR"]
    there = site.parents[2] / Path(directory).relative_to("/install")
    subprocess.run(cut.replace("-type f", "-type l"), shell=True, cwd=there, check=True)
    return {"PATH": os.environ["PATH"], "PYTHONPATH": f"{site}:{ROOT}"}


def run(environment: dict[str, str], *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*PYTHON, *arguments], env=environment, cwd=ROOT, capture_output=True, text=True, check=False)


def test_every_module_can_be_imported_without_what_is_cut(environment: dict[str, str]):
    program = """
import certs, importlib, importlib.util, pkgutil, webhook
for package in (webhook, certs):
    for module in pkgutil.walk_packages(package.__path__, package.__name__ + "."):
        importlib.import_module(module.name)
for cut in ("kubernetes.aio", "kubernetes.client.api", "aiohttp"):
    assert importlib.util.find_spec(cut) is None, cut
"""
    done = run(environment, "-c", program)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize(
    "command",
    [
        pytest.param("review --sample webhook/samples/pod-repaired.yaml", marks=needs("review")),
        pytest.param("rules", marks=needs("rules")),
    ],
)
def test_commands_without_a_cluster(command: str, environment: dict[str, str]):
    done = run(environment, "-m", "webhook.cli.main", *command.split())
    assert (done.returncode in (0, 1), done.stderr) == (True, ""), done


@needs("doctor")
def test_commands_with_a_cluster(environment: dict[str, str], tmp_path: Path):
    with ApiServer(Authority(tmp_path)) as api:
        kubeconfig = str(api.kubeconfig(tmp_path / "kubeconfig"))
        show = run(environment, "-m", "certs", "show", "--kubeconfig", kubeconfig)
        assert (show.returncode, "vgpu-webhook-tls" in show.stdout) == (1, True), show
        doctor = run(environment, "-m", "webhook.cli.main", "doctor", "--kubeconfig", kubeconfig)
        assert (doctor.returncode, doctor.stdout.count("\n") > 5) == (1, True), doctor
        assert "Traceback" not in show.stderr + doctor.stderr


def test_the_server_follows_a_cluster(environment: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    wrapper = tmp_path / "vgpu-webhook"
    wrapper.write_text(f'#!/bin/sh\nexec {" ".join(PYTHON)} -m webhook.cli.main "$@"\n')
    wrapper.chmod(0o755)
    monkeypatch.setattr("tests.server.program.COMMAND", wrapper)
    authority = Authority(tmp_path)
    with ApiServer(authority) as api:
        api.put(NODES, gpu_node("base", 4))
        options = [*authority.options, "--cluster", "--kubeconfig", str(api.kubeconfig(tmp_path / "kubeconfig"))]
        program = Program(options, tmp_path / "log", authority.directory / "ca.crt", env=environment)
        try:
            program.wait_ready()
            until(lambda: "fleet: 1 nodes" in program.readyz())
        finally:
            program.close()
