"""The Dockerfile installs the locked versions and names existing files; the tests need no container engine."""

import importlib.metadata
import re
import shutil
import subprocess
import sys
import tomllib
from fnmatch import fnmatch
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.cases import each_case
from tests.deploy.files import DEPLOY, ROOT
from tests.deploy.test_workflows import ACTION

FILE = DEPLOY / "Dockerfile"
TEXT = FILE.read_text()
SETTINGS = tomllib.loads((ROOT / "pyproject.toml").read_text())
PROJECT = SETTINGS["project"]
BASES = dict(re.findall(r"(?m)^ARG (\w*BASE)=(.*)$", TEXT))
STAGES = ("dependencies", "project", "")  # the last has no name


def steps(stage: str) -> list[tuple[str, str]]:
    """The instructions of a stage with their arguments, each joined to one line."""
    lines = re.sub(r"\\\n\s*", "", re.sub(r"^#.*\n", "", TEXT, flags=re.MULTILINE)).splitlines()
    found: dict[str, list[tuple[str, str]]] = {}
    current: list[tuple[str, str]] = []  # before the first stage
    for name, _, rest in (line.partition(" ") for line in lines if line):
        if name == "FROM":
            current = found.setdefault(rest.partition(" AS ")[2], [])
        current.append((name, rest))
    assert tuple(found) == STAGES
    return found[stage]


def arguments(instruction: str, stage: str) -> list[str]:
    return [rest for name, rest in steps(stage) if name == instruction]


def copied() -> list[str]:
    copies = [rest for stage in STAGES for rest in arguments("COPY", stage) if "--from" not in rest]
    return [source for rest in copies for source in rest.split()[:-1]]


def pins(file: Path) -> dict[str, str]:
    """The version of each distribution that a file pins."""
    lines = re.findall(r"(?m)^([\w.-]+)==([^\s;]+)", file.read_text())
    return {canonicalize_name(name): version for name, version in lines}


def locked() -> dict[str, str]:
    return pins(DEPLOY / "requirements.txt")


def test_hadolint_finds_nothing():
    hadolint = shutil.which("hadolint", path=str(Path(sys.executable).parent))
    if hadolint is None:
        pytest.skip("hadolint has no wheel for this platform")
    done = subprocess.run([hadolint, str(FILE)], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "")


def test_copied_files_exist_and_no_other_file_is_in_the_build_context():
    ignored = [line for line in (ROOT / ".dockerignore").read_text().splitlines() if line and not line.startswith("#")]
    assert all((ROOT / source).exists() for source in copied())
    assert ignored[0] == "*"
    assert {line[1:] for line in ignored if line.startswith("!")} == set(copied())


def test_the_files_that_the_build_needs_are_copied():
    needed = {PROJECT["readme"], *PROJECT["license-files"], "pyproject.toml"}
    packages = SETTINGS["tool"]["setuptools"]["packages"]["find"]["include"]
    assert needed <= set(copied())
    assert all(any(fnmatch(source, pattern) for source in copied()) for pattern in packages)


def test_the_lock_has_the_dependencies_at_the_constrained_versions():
    never = {Requirement(text).name for text in SETTINGS["tool"]["uv"]["override-dependencies"]}
    found: dict[str, None] = {}

    def walk(requirements: list[str], extras: set[str]) -> None:
        for requirement in map(Requirement, requirements):
            name = canonicalize_name(requirement.name)
            if name not in found and name not in never and applies(requirement, extras):
                found[name] = None
                walk(importlib.metadata.requires(name) or [], requirement.extras)

    def applies(requirement: Requirement, extras: set[str]) -> bool:
        image = {"python_version": "3.13", "python_full_version": "3.13.14", "sys_platform": "linux"}
        return requirement.marker is None or any(
            requirement.marker.evaluate(image | {"extra": extra}) for extra in ["", *extras]
        )

    walk(PROJECT["dependencies"], set())
    constrained = pins(ROOT / "constraints.txt")
    assert locked() == {name: constrained.get(name) for name in found}, "make image-lock writes it"


def test_every_distribution_is_checked_by_its_hash():
    (install,) = [rest for rest in arguments("RUN", "dependencies") if "pip install" in rest]
    assert {"--require-hashes", "--no-deps"} <= set(install.split())
    for file in ("requirements.txt", "build-requirements.txt"):
        blocks = re.split(r"(?m)^(?=\w)", (DEPLOY / file).read_text())[1:]
        assert [block for block in blocks if "--hash=sha256:" not in block] == []


@each_case("file", [FILE, ACTION, ROOT / ".github" / "workflows" / "release.yml"])
def test_what_builds_the_project_is_checked_by_its_hash(file: Path):
    """Else pip fetches the setuptools of the day."""
    pinned = pins(DEPLOY / "build-requirements.txt")
    required = [Requirement(text) for text in SETTINGS["build-system"]["requires"]]
    assert {one.name for one in required} == pinned.keys(), "make image-lock writes it"
    assert all(pinned[one.name] in one.specifier for one in required)
    commands = re.findall(r"(?:pip\S* install|pip wheel) .*", file.read_text().replace("&&", "\n"))
    build = [one for one in commands if "--require-hashes" not in one]
    assert [one for one in build if "--no-build-isolation" not in one] == []
    assert len(build) == 1
    assert re.search(r"--require-hashes (?:-r|--requirement) \S*build-requirements\.txt", file.read_text())


def test_all_stages_have_the_same_pinned_python_and_the_last_has_no_compiler_and_no_privileges():
    assert [arguments("FROM", stage)[0].partition(" AS ")[0] for stage in STAGES] == [
        "$BUILD_BASE",
        "dependencies",
        "$BASE",
    ]
    version = re.fullmatch(r"python:(3\.\d+\.\d+)-bookworm@sha256:[0-9a-f]{64}", BASES["BUILD_BASE"])[1]
    assert re.fullmatch(rf"python:{re.escape(version)}-slim-bookworm@sha256:[0-9a-f]{{64}}", BASES["BASE"])
    minor = version.rpartition(".")[0]
    assert f"Programming Language :: Python :: {minor}" in PROJECT["classifiers"]
    last = dict(steps(""))
    assert last["RUN"] == f"pip uninstall --yes pip && rm -rf /usr/local/lib/python{minor}/ensurepip"
    assert (last["ENTRYPOINT"], last["USER"]) == ('["vgpu-webhook"]', "65532:65532")
    assert "apt-get" not in TEXT


def test_dependencies_have_a_separate_layer_before_the_project():
    assert arguments("COPY", "") == ["--from=dependencies /install /usr/local", "--from=project /project /usr/local"]
    for stage, prefix in (("dependencies", "/install"), ("project", "/project")):
        (install,) = [rest for rest in arguments("RUN", stage) if "pip install" in rest]
        assert f"--prefix={prefix}" in install.split()


def test_the_image_has_labels():
    found = dict(re.findall(r'org\.opencontainers\.image\.(\w+)="(.*?)"', dict(steps(""))["LABEL"]))
    assert found.pop("licenses") == PROJECT["license"]
    assert found.keys() == {"title", "description", "version", "revision", "source"}
    for name in ("version", "revision", "source"):
        assert (found[name], f"{name.upper()}=unknown" in arguments("ARG", "")) == (f"${name.upper()}", True)
