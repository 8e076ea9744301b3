"""The options that commands share, as a command parses them."""

from pathlib import Path
from typing import Any

import click
import pytest

from tests.cases import each_case
from webhook.cli.settings_options import settings_option
from webhook.cluster.watcher import SettingsWatcher
from webhook.settings.sources import ClusterOptions
from webhook.settings.table import SETTING_NAMES


def read(*argv: str) -> Any:
    @click.command("a-command")
    @settings_option("Read the cluster.")
    def command(settings: Any) -> Any:
        return settings

    return command.main(list(argv), standalone_mode=False)


@each_case(
    "line, files, cluster",
    [
        ("", {}, None),
        ("--cluster --policy p", {"policy": Path("p")}, ClusterOptions()),
        ("--sample --cluster", {}, ClusterOptions()),
        ("--kubeconfig k", {}, ClusterOptions(kubeconfig=Path("k"))),
        ("--context x", {}, ClusterOptions(context="x")),
    ],
)
def test_files_and_a_cluster(line: str, files: Any, cluster: Any):
    assert read(*line.split()) == (files, cluster)


def test_file_options():
    line = "--fleet f --policy p --device-config c --scheduler-conf s --queues q --quotas r --device-classes d"
    files, cluster = read(*line.split())
    assert files == dict(zip(SETTING_NAMES, map(Path, "cpfsqrd"), strict=True))
    assert cluster is None


def test_all_cluster_options():
    options = ("--device-config-namespace", "a", "--device-config-namespace", "b", "--policy-map", "c/d")
    _, cluster = read("--cluster", "--kubeconfig", "k", "--context", "x", "--device-config-map", "m", *options)
    places = ClusterOptions().places | {"config": (("a", "m"), ("b", "m")), "policy": (("c", "d"),)}
    assert cluster == ClusterOptions(Path("k"), "x", places, required=frozenset({"config", "policy"}))


@pytest.mark.parametrize("value", ["", "/", "a/", "/a", "a/b/c"])
def test_a_malformed_policy_map(value: str):
    with pytest.raises(click.BadParameter, match="is neither NAME nor NAMESPACE/NAME"):
        read("--policy-map", value)


def test_samples_replace_only_missing_files():
    files, _ = read("--sample", "--policy", "p")
    assert files["policy"] == Path("p")
    files, _ = read("--sample")
    assert SettingsWatcher(files, None).snapshot.fleet.nodes > 0
    files, _ = read("--sample", "--fleet", "f")
    assert files["fleet"] == Path("f")
    assert files["config"].is_file()
