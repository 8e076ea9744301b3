"""Reviews follow changes of the files of the policy, the device config and the fleet; a broken file is not used."""

from pathlib import Path

import pytest

from certs.pki import replace
from tests.server.conftest import Start
from tests.server.program import DATA, Program, until
from tests.server.reviews import DENIED, admission_response, denying_rules, patch, review


def write(path: Path, text: str) -> None:
    """Replace a file at once, so that the server never reads half of it."""
    replace(path, text.encode(), 0o644)


class Served:
    """A program and its three files."""

    def __init__(self, start: Start, directory: Path) -> None:
        self.policy, self.config, self.fleet = (directory / name for name in ("policy", "config", "fleet"))
        self.restore()
        options = ("--policy", self.policy, "--device-config", self.config, "--fleet", self.fleet, "--audit-log", "")
        self.program: Program = start(*map(str, options), constants={"settings.file_watcher.POLL_SECONDS": 0.1})

    def restore(self) -> None:
        write(self.policy, "{}")
        write(self.config, (DATA / "config" / "device-config.yaml").read_text())
        write(self.fleet, (DATA / "fleets" / "mixed.yaml").read_text())

    def denied(self) -> list[str]:
        """The rules that refuse a pod with too many cores."""
        return denying_rules(admission_response(self.program.post("/validate", review(spec=DENIED))))

    def healthy(self) -> bool:
        return "last good" not in self.program.readyz()


@pytest.fixture(scope="module")
def served(start: Start, tmp_path_factory: pytest.TempPathFactory) -> Served:
    return Served(start, tmp_path_factory.mktemp("settings"))


@pytest.fixture(autouse=True)
def restored(served: Served) -> None:
    served.restore()
    until(lambda: served.healthy() and "cores-range" in served.denied())
    until(lambda: served.program.metric("fleet_nodes") > 0 and _scheduler(served) == "volcano")


def test_reviews_follow_the_policy(served: Served):
    write(served.policy, "rules: {cores-range: off}")
    until(lambda: "cores-range" not in served.denied())
    write(served.policy, "schedulerName: other\nschedulerNames: [other]")
    until(lambda: _scheduler(served) == "other")


BROKEN_FILES = [
    ("policy", "rules: {no-such-rule: deny}"),
    ("config", "nvidia: ["),
    ("fleet", "kind: Secret"),
]


@pytest.mark.parametrize(("name", "broken"), BROKEN_FILES)
def test_a_broken_file_is_reported_and_not_used(served: Served, name: str, broken: str):
    program = served.program
    failures = program.metric("config_reloads_total", source="settings", result="failure")
    path: Path = getattr(served, name)
    good = path.read_text()
    write(path, broken)
    page = until(lambda: not served.healthy() and program.readyz())
    assert page.startswith("ready\n")
    assert str(path) in page
    assert program.metric("config_reloads_total", source="settings", result="failure") == failures + 1
    assert program.metric("fleet_nodes") > 0
    assert "cores-range" in served.denied()
    assert f"ERROR settings changed, but cannot be used: {path}" in program.log()
    write(path, good)
    until(served.healthy)
    assert "Traceback" not in program.log()


def _scheduler(served: Served) -> str:
    operations = patch(admission_response(served.program.post("/mutate", review())))
    return next((op["value"] for op in operations if op["path"] == "/spec/schedulerName"), "")
