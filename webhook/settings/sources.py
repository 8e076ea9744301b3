"""Where settings come from: files, or places in a cluster; and the status of each source.

Imports no client of the API server, which takes some MiB.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from importlib.resources import files
from pathlib import Path
from typing import Any

from webhook.settings.table import DEVICE_CONFIG, DOCUMENTS, FLEET, QUEUES, QUOTAS, SETTINGS, Place

SAMPLES = Path(str(files("webhook"))) / "samples"
SAMPLE_FLEET, SAMPLE_PODS = SAMPLES / "fleet.yaml", SAMPLES / "pods.yaml"
SAMPLE_CLUSTER = SAMPLES / "cluster"  # it has some faults

Paths = Mapping[str, Path]  # of files, by the part of the setting that each holds


def or_samples(paths: Paths) -> Paths:
    """The same files, and the package's samples where none is given."""
    return {each.part: SAMPLES / f"{each.option}.yaml" for each in (DEVICE_CONFIG, FLEET, QUEUES, QUOTAS)} | {**paths}


def is_sample(origin: str) -> bool:
    """Whether a file, or a directory, is one of the package's samples."""
    return Path(origin).absolute().is_relative_to(SAMPLES)


def load(paths: Paths, begin: Callable[[str, Path], None] = lambda _, __: None) -> dict[str, Any]:
    """Read the files; returns their settings by part.

    Args:
        paths: the files.
        begin: called before each file is read, with its part and path.

    Raises:
        ConfigError: one of them cannot be used.
    """
    found = {}
    for setting in SETTINGS:
        if setting.part in paths:
            begin(setting.part, paths[setting.part])
            found[setting.part] = setting.load(paths[setting.part])
    return found


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
