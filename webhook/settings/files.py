"""The settings of files."""

from collections.abc import Callable, Mapping
from importlib.resources import files
from pathlib import Path
from typing import Any

from webhook.settings.table import DEVICE_CONFIG, FLEET, QUEUES, QUOTAS, SETTINGS

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
