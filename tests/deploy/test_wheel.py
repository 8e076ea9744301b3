"""The wheel, installed where nothing of the checkout is: what `pipx install` gives people."""

import shutil
import subprocess
import sys
import venv
from importlib.metadata import version
from pathlib import Path
from zipfile import ZipFile

import pytest

from tests.deploy.files import ROOT
from tests.questions import needs
from tests.server.program import free_port

POD = "webhook/samples/pod-refused.yaml"

if int(version("setuptools").partition(".")[0]) < 77:
    pytest.skip("make installs the setuptools that builds the wheel", allow_module_level=True)


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    source, directory = tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("dist")
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source)
    for name in ("certs", "webhook"):
        shutil.copytree(ROOT / name, source / name, ignore=shutil.ignore_patterns("__pycache__"))
    pip("wheel", "--no-deps", "--no-build-isolation", "--wheel-dir", str(directory), str(source))
    (made,) = directory.iterdir()
    return made


@pytest.fixture(scope="module")
def home(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment of its own. It borrows this one's libraries, but not its editable installation of the project."""
    directory = tmp_path_factory.mktemp("pipx")
    venv.create(directory, symlinks=True)
    (site,) = directory.glob("lib/python*/site-packages")
    (borrowed,) = Path(sys.prefix).glob("lib/python*/site-packages")
    pip("--python", str(directory / "bin" / "python"), "install", "--no-deps", "--no-index", str(wheel))
    (site / "borrowed.pth").write_text(f"{borrowed}\n")
    return directory


def pip(*arguments: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "pip", "--quiet", *arguments], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def run(home: Path, command: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    shutil.copy(ROOT / POD, home / "pod.yaml")
    return subprocess.run(
        [home / "bin" / command, *arguments],
        cwd=home,
        env={"PATH": f"{home / 'bin'}:/usr/bin:/bin", "HOME": str(home)},
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_wheel_holds_every_file_of_the_packages_and_nothing_else(wheel: Path):
    held = {name for name in ZipFile(wheel).namelist() if ".dist-info/" not in name}
    tracked = subprocess.run(
        ["git", "ls-files", "webhook", "certs"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    if tracked.returncode:
        pytest.skip("this is no checkout")
    assert held == {name for name in tracked.stdout.splitlines() if (ROOT / name).exists()}


def test_it_is_the_wheel_that_runs(home: Path):
    program = (
        "import certs, webhook, webhook.product as p; print(certs.__file__, webhook.__file__, p.product_version())"
    )
    done = run(home, "python", "-c", program)
    *files, shown = done.stdout.split()
    assert ([file.startswith(str(home)) for file in files], shown) == ([True] * 2, version("volcano-vgpu-webhook")), (
        done
    )


@needs("review")
def test_it_reviews_a_manifest(home: Path):
    done = run(home, "kubectl-vgpu", "review", "--sample", "-f", "pod.yaml")
    assert (done.returncode, "cores-range" in done.stdout, done.stderr) == (1, True, ""), done


def test_it_shows_a_demonstration(home: Path):
    ports = [f"--{name}={free_port()}" for name in ("port", "console-port")]
    demo = run(home, "vgpu-webhook", "demo", "--once", *ports)
    assert (demo.returncode, "Traceback" in demo.stderr) == (0, False), demo
