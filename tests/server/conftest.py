"""A server for each test module, and a way to start others."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests import fork_server
from tests.server.client import Connection
from tests.server.program import DATA, PATIENT, Authority, Program

Start = Callable[..., Program]

SETTINGS = [
    *("--device-config", str(DATA / "config" / "device-config.yaml")),
    *("--fleet", str(DATA / "fleets" / "mixed.yaml")),
]


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("tls"))


@pytest.fixture(scope="module")
def start(tmp_path_factory: pytest.TempPathFactory, authority: Authority) -> Iterator[Start]:
    """Start `vgpu-webhook serve` with more options, patient with its clients; all are ended with the module."""
    programs: list[Program] = []

    def run(*options: str, ready: bool = True, tls: Authority = authority, **popen: Any) -> Program:
        log = tmp_path_factory.mktemp("log") / "stderr"
        ca = tls.directory / "ca.crt"
        given = {"limits": PATIENT, "starts": fork_server.Popen} | popen
        programs.append(Program([*tls.options, *options], log, ca, **given))
        if ready:
            programs[-1].wait_ready()
        return programs[-1]

    run.programs = programs  # type: ignore[attr-defined]
    yield run
    end(programs)


@pytest.fixture(autouse=True)
def _ended_with_its_test(request: pytest.FixtureRequest) -> Iterator[None]:
    """What a test starts ends with it: a server that looks for a stopped API server again and again keeps a core busy."""
    programs = request.getfixturevalue("start").programs if "start" in request.fixturenames else []
    before = len(programs)
    yield
    end(programs[before:])
    del programs[before:]


def end(programs: list[Program]) -> None:
    for program in programs:
        if program.process.poll() is None:
            program.process.terminate()  # all at once; close waits
    for program in programs:
        program.close()


@pytest.fixture(scope="module")
def audit_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("audit") / "audit.jsonl"


@pytest.fixture(scope="module")
def program(start: Start, audit_file: Path) -> Program:
    """One server with the recorded settings, for the tests of a module that only talk to it."""
    return start(*SETTINGS, "--audit-log", str(audit_file))


@pytest.fixture
def connection(program: Program) -> Iterator[Connection]:
    with program.connect() as made:
        yield made
