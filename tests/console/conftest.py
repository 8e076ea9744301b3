"""A console on the sample fleet, and a browser that is not one."""

from dataclasses import dataclass, replace
from datetime import UTC, datetime

import pytest

from webhook.cluster.files import SettingsFiles
from webhook.cluster.snapshot import Parts
from webhook.cluster.sources import SourceState
from webhook.console.app import create_app
from webhook.console.state import State
from webhook.decisions.journal import Journal
from webhook.policy import Policy

OPEN: list[Journal] = []  # logs of a test, closed behind it
READ = datetime(2026, 7, 1, 8, 30, tzinfo=UTC)  # when the settings are said to have been read


@dataclass
class Fixed:
    """Settings that do not change by themselves."""

    parts: Parts

    @property
    def snapshot(self):
        return self.parts.snapshot()

    def sources(self):
        names = {"config": "device config", "policy": "policy", "fleet": "fleet"}
        digests = self.snapshot.digests
        return tuple(SourceState(name, f"{name}.yaml", READ, digests[part], None, None) for part, name in names.items())


def sample_parts(policy: Policy | None = None) -> Parts:
    parts = SettingsFiles().or_samples().load().parts()
    return replace(parts, policy=policy) if policy else parts


@pytest.fixture(autouse=True)
def _closed():
    yield
    while OPEN:
        OPEN.pop().stop()


@pytest.fixture
def state():
    """What the console under test shows; a test may ask for another."""
    return State(Fixed(sample_parts()))


@pytest.fixture
def client(state):
    """Asks as a browser on this machine would."""
    return create_app(state).test_client()
