"""The example of a rule: a short pod about which it speaks, kept in webhook/rules/examples, and what the engine answers.

A file holds the pod's manifest. A document before it, where there is one, says what has to differ from the samples:

    deviceConfig    keys over those of a section: {nvidia: {overwriteEnv: true}}
    policy          a policy file
    fleet           `unknown`
    also            other rules that cannot help speaking too: {rule id: the reason}
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

from webhook.cluster.documents import parse_documents
from webhook.cluster.files import MAX_SETTINGS_BYTES, SAMPLES, load_nodes, read_bytes
from webhook.cluster.snapshot import build_snapshot
from webhook.devices.config_file import parse_device_config
from webhook.offline.documents import Document, to_review
from webhook.outcome import Outcome
from webhook.policy import parse_policy
from webhook.review import Snapshot, review
from webhook.rules.base import Level
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
