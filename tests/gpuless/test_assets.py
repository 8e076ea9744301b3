"""What is missing is named at once, with what to do about it."""

import re
from collections.abc import Sequence
from pathlib import Path

import pytest
import yaml

from tests.deploy.files import ROOT
from tests.docs.markdown import headings
from tests.gpuless import assets, namespace


@pytest.fixture(autouse=True)
def complete(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A machine that has everything."""
    monkeypatch.setenv("CLUSTER_ASSETS", str(tmp_path))
    monkeypatch.setattr("os.geteuid", lambda: 0)
    monkeypatch.setattr("shutil.which", lambda program: f"/usr/bin/{program}")
    for name in (*assets.FILES, "bridge"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()


def message(tmp_path: Path, own_places: Sequence[Path] = ()) -> str:  # the usual ones have the folder in one of them
    with pytest.raises(assets.MissingError) as raised:
        assets.find_assets(tmp_path, own_places)
    return str(raised.value)


def test_all_that_is_missing_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    assert assets.find_assets(tmp_path, []) == tmp_path
    monkeypatch.setattr("shutil.which", lambda program: None if program in {"runc", "ip"} else program)
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    for name in ("etcd", "bridge"):
        (tmp_path / name).unlink()
    assert message(tmp_path).splitlines()[1:] == [
        f"- etcd: see 'Packages' in {assets.GUIDE}",
        "- packages: apt-get install containernetworking-plugins iproute2 runc",
        "- root, to make namespaces and cgroups",
    ]


@pytest.mark.parametrize("place", ["", "/tmp/a", "/var/lib/a", "/var/log/a/b", "/var/run/a"])
def test_a_folder_that_is_missing_or_that_the_nodes_do_not_see_is_refused(
    place: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    monkeypatch.setenv("CLUSTER_ASSETS", place)
    (line,) = message(tmp_path, assets.OWN_PLACES).splitlines()[1:]
    hidden = "at another place: each node has its own /tmp, /run, /var/lib, /var/log, so it cannot see"
    missing = f", the folder of the binaries: {assets.GUIDE} says where to get them"
    assert line == f"- CLUSTER_ASSETS{f' {hidden} {place}' if place else missing}"


def test_the_places_of_a_node_are_those_that_it_mounts():
    script = Path(namespace.__file__).read_text()
    for place in assets.OWN_PLACES:
        assert re.search(rf"(?m)^mount .* {place}$", script), place


@pytest.mark.parametrize(
    ("profiles", "factor"),
    [(["a100"], 10), (["h100"], 20), (["h100:7"], 10), (["t4", "gb200"], 30), (["gb300"], 40), (["gb300:1"], 10)],
)
def test_a_kubelet_takes_the_memory_of_each_node(profiles: list[str], factor: int, tmp_path: Path):
    (tmp_path / "mocknvml" / "configs").unlink()
    (tmp_path / "mocknvml" / "configs").mkdir()
    for cards, gib in {"a100": 40, "t4": 16, "h100": 80, "gb200": 192, "gb300": 288}.items():
        mock = {"device_defaults": {"memory": {"total_bytes": gib * 2**30}}, "devices": [{}] * 8}
        assets.config_of(tmp_path, cards).write_text(yaml.safe_dump(mock))
    assert assets.memory_units(tmp_path, profiles) == factor


def test_the_guide_has_the_sections_and_installs_the_packages():
    text = (ROOT / assets.GUIDE).read_text()
    assert set(assets.FILES.values()) <= {words for _, words in headings(text)}
    (install,) = [block for block in text.split("```") if "apt-get install" in block]
    assert set(assets.PROGRAMS.values()) <= set(install.split())
