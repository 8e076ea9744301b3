"""What the image installs, taken from this environment: the locked distributions, cut as the Dockerfile cuts them."""

import importlib.metadata
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cluster.apiserver import NODES, ApiServer
from tests.deploy.files import ROOT
from tests.deploy.test_dockerfile import locked, steps
from tests.server.live import gpu_node
from tests.server.program import Authority, Program, until
from webhook.questions import QUESTIONS

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


EVERYTHING = """
import certs, importlib, importlib.util, io, json, pkgutil, sys, webhook
from contextlib import redirect_stdout
for package in (webhook, certs):
    for module in pkgutil.walk_packages(package.__path__, package.__name__ + "."):
        importlib.import_module(module.name)
for cut in ("kubernetes.aio", "kubernetes.client.api", "aiohttp"):
    assert importlib.util.find_spec(cut) is None, cut
from webhook.cli.main import main
for name, *arguments in json.loads(sys.argv[1]):
    with redirect_stdout(io.TextIOWrapper(io.BytesIO(), write_through=True)) as out:
        code = main([name, *arguments])
    print(json.dumps([name, code, out.buffer.getvalue().decode()]))
"""


def test_every_module_can_be_imported_and_commands_run_without_what_is_cut(environment: dict[str, str], tmp_path: Path):
    with ApiServer(Authority(tmp_path)) as api:
        with_cluster = ["--kubeconfig", str(api.kubeconfig(tmp_path / "kubeconfig"))]
        commands = [["review", "--sample", "webhook/samples/pod-repaired.yaml"], ["rules"], ["doctor", *with_cluster]]
        commands = [each for each in commands if each[0] in QUESTIONS] + [["certs", "show", *with_cluster]]
        program = [*PYTHON, "-c", EVERYTHING, json.dumps(commands)]
        done = subprocess.run(program, env=environment, cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, ""), done
    shown = {name: (code, text) for name, code, text in map(json.loads, done.stdout.splitlines())}
    assert {name: code for name, (code, _) in shown.items()} == {
        name: int(name in ("certs", "doctor")) for name, *_ in commands
    }
    assert "vgpu-webhook-tls" in shown["certs"][1]
    assert all(text.count("\n") > 5 for name, (_, text) in shown.items() if name != "certs"), shown


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
