"""The options of the settings, as a command reads them."""

import argparse
from pathlib import Path

import pytest

from webhook.cli.settings_options import add_sample, add_settings, read_settings
from webhook.settings.files import SettingsFiles
from webhook.settings.sources import ClusterOptions
from webhook.settings.watcher import SettingsWatcher


def read(*argv: str):
    parser = argparse.ArgumentParser("a-command")
    add_settings(parser)
    add_sample(parser)
    arguments = parser.parse_args(argv)
    return read_settings(parser, arguments, sample=arguments.sample)


def test_nothing_is_asked_for():
    assert read() == (SettingsFiles(), None)


def test_files():
    files, cluster = read("--fleet", "f", "--policy", "p", "--device-config", "c")
    assert files == SettingsFiles(device_config=Path("c"), policy=Path("p"), fleet=Path("f"))
    assert files.paths == (Path("c"), Path("p"), Path("f"))
    assert cluster is None


def test_the_cluster_with_its_defaults():
    assert read("--cluster", "--policy", "p") == (SettingsFiles(policy=Path("p")), ClusterOptions())


def test_the_cluster_with_everything():
    places = ("--device-config-namespace", "a", "--device-config-namespace", "b", "--policy-map", "c/d")
    _, cluster = read("--cluster", "--kubeconfig", "k", "--context", "x", "--device-config-map", "m", *places)
    assert cluster == ClusterOptions(Path("k"), "x", "m", ("a", "b"), ("c", "d"))


def test_samples_stand_where_no_file_is_given_and_can_be_used():
    files, _ = read("--sample", "--policy", "p")
    assert files.policy == Path("p")
    files, _ = read("--sample")
    assert SettingsWatcher(files, None).snapshot.fleet.nodes > 0
    files, _ = read("--sample", "--fleet", "f")
    assert files.fleet == Path("f")
    assert files.device_config.is_file()


def test_a_cluster_goes_over_samples():
    assert read("--sample", "--cluster") == (SettingsFiles(), ClusterOptions())


@pytest.mark.parametrize("options", [["--kubeconfig", "k"], ["--context", "x"]])
def test_options_that_do_not_go_together(options: list[str], capsys: pytest.CaptureFixture[str]):
    with pytest.raises(SystemExit, match="2"):
        read(*options)
    assert "--kubeconfig and --context go with --cluster" in capsys.readouterr().err
