"""A console on the sample fleet, and a browser that is not one."""

from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cached_property
from threading import TIMEOUT_MAX
from typing import Any

import pytest
from flask import Flask
from flask.testing import FlaskClient
from jinja2 import BytecodeCache
from jinja2.bccache import Bucket

from tests.cli.conftest import only_rules
from webhook.audit.follower import LogFollower
from webhook.console.app import create_app, pages, sections
from webhook.console.state import ConsoleState, Sources
from webhook.live.reader import FileReader, Reports, read_statuses
from webhook.policy.policy import Policy, parse_policy
from webhook.settings.snapshot import SnapshotInputs
from webhook.settings.sources import SAMPLE_FLEET, SAMPLE_PODS, SettingStatus, SourceStatus, load, or_samples
from webhook.settings.table import FLEET

# Pages of whichever questions there are: those that are forms, those that are shown as they are, and the last one of these.
FORMS = [page.path for page in pages() if page.template and "POST" in page.methods]
PLAIN = [page.path for page in pages() if page.template and "<" not in page.path and page.path not in FORMS]
FORM, PAGE = FORMS[0], PLAIN[-1]
OPEN: list[LogFollower] = []  # logs of a test, closed behind it
READ = datetime(2026, 7, 1, 8, 30, tzinfo=UTC)  # when the settings were read, for the page


class CompiledTemplates(BytecodeCache):
    """The code of templates, compiled once for all applications of a process: nearly every test makes one."""

    def __init__(self):
        self._codes = {}

    def load_bytecode(self, bucket: Bucket):
        bucket.code = self._codes.get((bucket.key, bucket.checksum))

    def dump_bytecode(self, bucket: Bucket):
        self._codes[bucket.key, bucket.checksum] = bucket.code


Flask.jinja_options = {"bytecode_cache": CompiledTemplates()}


@dataclass
class Fixed:
    """Settings that do not change by themselves."""

    inputs: SnapshotInputs

    @cached_property
    def snapshot(self):
        return self.inputs.snapshot()

    @property
    def current(self):
        return self.inputs, self.snapshot

    def statuses(self):
        names = {"config": "device config", "policy": "policy", "fleet": "fleet"}
        digests = self.snapshot.digests
        return tuple(
            SettingStatus(name, SourceStatus(f"{name}.yaml"), READ, digests[part]) for part, name in names.items()
        )


def sample_parts(policy: Policy | None = None) -> SnapshotInputs:
    inputs = SnapshotInputs.of(load(or_samples({})))
    return replace(inputs, policy=policy) if policy else inputs


def sample_sources(settings: Fixed) -> Sources:
    statuses = read_statuses(FLEET.load(SAMPLE_FLEET))
    reader = FileReader([SAMPLE_PODS], lambda: settings.current, lambda: statuses, Reports(print))
    return Sources(settings, reader, (SAMPLE_PODS,))


def followed(sources: Sources) -> dict[str, Any]:
    found = {question: section.follow(sources) for question, section in sections().items()}
    if usage := found.get("usage"):
        usage.current(TIMEOUT_MAX)  # a page waits for the first result for some seconds only
    return found


def sample_state() -> ConsoleState:
    settings = Fixed(sample_parts())
    return ConsoleState(settings, followed=followed(sample_sources(settings)))


def client_of(settings: Any = None, log: Any = None, policy: Policy | None = None, **work: Any) -> FlaskClient:
    """Asks a console with these settings, or the sample's with a policy; a log, and what is followed, by question."""
    return create_app(ConsoleState(settings or Fixed(sample_parts(policy)), log, work)).test_client()


def judging(*rules: str) -> FlaskClient:
    """A browser, and a console that makes these checks alone."""
    return client_of(policy=parse_policy(only_rules(*rules), "the test's policy"))


@pytest.fixture(autouse=True)
def _closed():
    yield
    while OPEN:
        OPEN.pop().stop()


@pytest.fixture
def state():
    """What the console under test shows; a test may request another."""
    return ConsoleState(Fixed(sample_parts()))


@pytest.fixture(scope="module")
def client():
    """Asks as a browser on this machine would; no request changes the console."""
    return client_of()
