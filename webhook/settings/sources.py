"""Where settings come from: the places in a cluster, and the status of each source.

Imports no client of the API server, which takes some MiB.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

from webhook.settings.table import DOCUMENTS, Place

PROBLEM = "; problem: "  # in `SourceStatus.text`; the doctor looks for it in what /readyz responds


@dataclass(frozen=True, slots=True)
class ClusterOptions:
    """How to reach the API server, and where the settings are.

    Attributes:
        kubeconfig, context: as in webhook.cluster.credentials.
        places: of the ConfigMaps of documents, by part; as `DocumentSetting.places`.
        required: the parts of documents that have no default, since the operator named their ConfigMap.
    """

    kubeconfig: Path | None = None
    context: str | None = None
    places: Mapping[str, Sequence[Place]] = field(
        default_factory=lambda: {each.part: each.places for each in DOCUMENTS}
    )
    required: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class SourceStatus:
    """The state of the source of a setting.

    Attributes:
        origin: a file, a ConfigMap, the API server, or the default; for people.
        problem: why the newest version is not in use, or could not be read; None if it is in use.
        age: seconds since it was last confirmed to be up to date; None where nothing can become stale.
    """

    origin: str
    problem: str | None = None
    age: float | None = None

    @property
    def text(self) -> str:
        """All of it in one line, for people."""
        if self.problem is not None:
            return f"{self.origin}{PROBLEM}{self.problem}"
        return self.origin if self.age is None else f"{self.origin}, last news {self.age:.0f} s ago"


@dataclass(frozen=True, slots=True)
class SettingStatus:
    """One of the settings in use.

    Attributes:
        name: as `Setting.name`.
        source: where it comes from.
        since: when this version came into use, in UTC.
        digest: as in decisions and reports; `unknown` for what is not known.
    """

    name: str
    source: SourceStatus
    since: datetime
    digest: str
