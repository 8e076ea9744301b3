"""Every rule, with what its file and its example say of it."""

import re
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

from webhook.devices.config_file import parse_device_config
from webhook.offline.documents import Document, to_review
from webhook.outcome import Outcome
from webhook.policy.policy import parse_policy
from webhook.review import Snapshot, review
from webhook.rules.base import Level, Mutation, Validation
from webhook.rules.registry import MUTATIONS, VALIDATIONS
from webhook.settings.documents import parse_documents
from webhook.settings.files import MAX_SETTINGS_BYTES, SAMPLES, load_nodes, read_bytes
from webhook.settings.snapshot import build_snapshot
from webhook.wire.models import Request

SETTINGS = ("deviceConfig", "policy", "fleet")
ALSO = "also"

_ROOT = Path(str(files("webhook"))).parent
_END_OF_DOCUMENT = "---\n"


@dataclass(frozen=True, slots=True)
class Example:
    """A pod about which a rule speaks, and what the engine answers.

    Attributes:
        settings: the document before the pod; empty where the samples do.
        manifest: the pod as it is written.
        request, outcome: its review.
    """

    settings: Mapping[str, Any]
    manifest: str
    request: Request
    outcome: Outcome

    @property
    def conditions(self) -> dict[str, Any]:
        """What differs from the samples, by dotted path: `policy.memoryAboveCard`."""
        return dict(_paths({key: self.settings[key] for key in SETTINGS if key in self.settings}))

    @property
    def messages(self) -> list[tuple[Level, str]]:
        """What the pod's author is told."""
        denials = [(Level.DENY, f"{denial.rule}: {denial.message}") for denial in self.outcome.denials]
        return denials + [(Level.WARN, warning) for warning in self.outcome.warnings]


def load_example(file: str) -> Example:
    """Read an example and review it.

    Args:
        file: from the root of the source tree.

    Raises:
        ConfigError: it is missing or cannot be read.
    """
    head, _, manifest = read_bytes(_ROOT / file, MAX_SETTINGS_BYTES).decode().rpartition(_END_OF_DOCUMENT)
    (pod,) = parse_documents(manifest.encode(), file)
    request = to_review(Document(file, pod))
    return Example(_settings(head), manifest, request, review(request, _snapshot(head)))


@cache
def _snapshot(head: str) -> Snapshot:
    """The samples under the settings of an example. Most have none, so that one snapshot serves them all."""
    settings = _settings(head)
    source = "the example's settings"
    (document,) = parse_documents(read_bytes(SAMPLES / "device-config.yaml", MAX_SETTINGS_BYTES), source)
    for section, keys in settings.get("deviceConfig", {}).items():
        document[section] |= keys
    config = parse_device_config(document, source)
    nodes = None if settings.get("fleet") == "unknown" else load_nodes(SAMPLES / "fleet.yaml", config)
    return build_snapshot(config, parse_policy(settings.get("policy"), source), nodes)


def _settings(head: str) -> dict[str, Any]:
    documents = parse_documents(head.encode(), "the example's settings")
    return documents[0] if documents else {}


def _paths(value: Mapping[str, Any], path: str = "") -> Iterator[tuple[str, Any]]:
    for key, inner in value.items():
        if isinstance(inner, dict):
            yield from _paths(inner, f"{path}{key}.")
        else:
            yield f"{path}{key}", inner


REPAIR = "repair"

# A word, a colon, and text that may go on in indented lines.
_PART = re.compile(r"^(\w+):[ ]+(\S.*(?:\n[ ]+\S.*)*)", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Row:
    """A rule as the table tells it.

    Attributes:
        id: the rule's.
        kind: `mutation` or `validation`.
        level: the default level of a validation; `repair` for a mutation.
        what: its summary.
        module: where it is written.
    """

    id: str
    kind: str
    level: str
    what: str
    module: str

    @property
    def file(self) -> str:
        """The rule's file, from the root of the source tree."""
        return self.module.replace(".", "/") + ".py"

    @property
    def example_file(self) -> str:
        """The file of its example, likewise."""
        room = self.module.split(".")[-2]
        return f"webhook/rules/examples/{room}/{self.id}.yaml"

    @property
    def text(self) -> str:
        """What the rule's file says of itself: what it reads, refuses or writes, and why."""
        return (sys.modules[self.module].__doc__ or self.what).strip()

    @property
    def parts(self) -> Mapping[str, str]:
        """The parts of the text by their word, each on one line: Reads, Refuses or Writes, Why."""
        return {word: " ".join(part.split()) for word, part in _PART.findall(self.text)}

    @property
    def why(self) -> str:
        """Why the rule is there, as the cell of a table."""
        return self.parts.get("Why", "").removesuffix(".")

    def example(self) -> Example:
        """The rule's example, reviewed.

        Raises:
            ConfigError: it is missing or cannot be read.
        """
        return load_example(self.example_file)


def rows() -> list[Row]:
    """Every rule: mutations in the order they run, then validations in the order they are told."""
    return [_mutation(rule) for rule in MUTATIONS] + [_validation(rule) for rule in VALIDATIONS]


def _mutation(rule: Mutation) -> Row:
    return Row(rule.id, "mutation", REPAIR, rule.summary, rule.propose.__module__)


def _validation(rule: Validation) -> Row:
    return Row(rule.id, "validation", rule.level, rule.summary, rule.check.__module__)
