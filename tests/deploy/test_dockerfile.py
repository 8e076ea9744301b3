"""The Dockerfile names what is there; no container engine is needed to see it."""

import re
import tomllib
from fnmatch import fnmatch

from tests.deploy.files import DEPLOY, ROOT

TEXT = (DEPLOY / "Dockerfile").read_text()
LINES = re.sub(r"\\\n\s*", "", re.sub(r"^#.*\n", "", TEXT, flags=re.MULTILINE)).splitlines()
STEPS = [tuple(line.split(maxsplit=1)) for line in LINES if line]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def arguments(instruction: str) -> list[str]:
    return [rest for name, rest in STEPS if name == instruction]


def copied() -> list[str]:
    return [source for rest in arguments("COPY") if "--from" not in rest for source in rest.split()[:-1]]


def test_what_is_copied_is_there_and_nothing_else_is_sent_to_the_builder():
    ignored = [line for line in (ROOT / ".dockerignore").read_text().splitlines() if line and not line.startswith("#")]
    assert all((ROOT / source).exists() for source in copied())
    assert ignored[0] == "*"
    assert {line[1:] for line in ignored if line.startswith("!")} == set(copied())


def test_what_the_project_needs_to_be_built_is_copied():
    needed = {PROJECT["readme"], *PROJECT["license-files"], "pyproject.toml"}
    packages = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]["packages"]["find"]["include"]
    assert needed <= set(copied())
    assert all(any(fnmatch(source, pattern) for source in copied()) for pattern in packages)


def test_it_installs_the_constrained_versions_with_the_fast_parser():
    (install,) = [rest for rest in arguments("RUN") if "pip install" in rest]
    assert "-c constraints.txt" in install
    (extra,) = re.findall(r"'\.\[(\w+)\]'", install)
    assert extra in PROJECT["optional-dependencies"]
    pinned = {line.partition("==")[0].lower().replace("_", "-") for line in _constraints()}
    wanted = [*PROJECT["dependencies"], *PROJECT["optional-dependencies"][extra]]
    assert {re.match(r"[\w-]+", name)[0].lower().replace("_", "-") for name in wanted} <= pinned


def _constraints() -> list[str]:
    return (ROOT / "constraints.txt").read_text().splitlines()


def test_both_stages_have_the_same_pinned_python_and_the_last_no_compiler():
    first, last = (rest.split()[0] for rest in arguments("FROM"))
    assert re.fullmatch(r"python:3\.\d+\.\d+-bookworm", first)
    assert last == first.replace("-bookworm", "-slim-bookworm")
    minor = last.split(":")[1].split(".")[1]
    assert f"Programming Language :: Python :: 3.{minor}" in PROJECT["classifiers"]
    after = TEXT[TEXT.rindex("FROM ") :]
    assert "RUN" not in after
    assert "apt-get" not in TEXT


def test_it_runs_our_command_as_nobody():
    (command,) = arguments("ENTRYPOINT")
    assert command == '["vgpu-webhook"]'
    assert "vgpu-webhook" in PROJECT["scripts"]
    (user,) = arguments("USER")
    assert user == "65532:65532"
    (environment,) = arguments("COPY")[-1:]
    source, target = environment.removeprefix("--from=build ").split()
    assert source == target, "a virtual environment cannot be moved"
    assert f"PATH={target}/bin:" in arguments("ENV")[0]
