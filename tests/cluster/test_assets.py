"""What is missing is named at once, with what to do about it."""

from pathlib import Path

import pytest

from tests.cluster import assets
from tests.deploy.files import ROOT
from tests.docs.markdown import headings


@pytest.fixture(autouse=True)
def complete(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A machine that has everything."""
    monkeypatch.setenv("CLUSTER_ASSETS", str(tmp_path))
    monkeypatch.setattr("os.geteuid", lambda: 0)
    monkeypatch.setattr("shutil.which", lambda program: f"/usr/bin/{program}")
    monkeypatch.setattr(assets, "CNI", tmp_path)
    for name in (*assets.FILES, "bridge"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()


def message() -> str:
    with pytest.raises(assets.MissingError) as raised:
        assets.find_assets()
    return str(raised.value)


def test_nothing_is_missing(tmp_path: Path):
    assert assets.find_assets() == tmp_path


@pytest.mark.parametrize("name", assets.FILES)
def test_a_binary_is_missing(name: str, tmp_path: Path):
    (tmp_path / name).unlink()
    assert message() == f"The cluster needs:\n- {name}: see {assets.FILES[name]!r} in {assets.GUIDE}"


def test_the_folder_is_missing(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv("CLUSTER_ASSETS")
    assert message().splitlines()[1:] == [
        f"- CLUSTER_ASSETS, the folder of the binaries: {assets.GUIDE} says how to build them"
    ]


def test_packages_and_root_are_missing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    monkeypatch.setattr("shutil.which", lambda program: None if program in {"runc", "ip"} else program)
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    (tmp_path / "bridge").unlink()
    packages, root = message().splitlines()[1:]
    assert packages == "- packages: apt-get install containernetworking-plugins iproute2 runc"
    assert root == "- root, to make namespaces and cgroups"


def test_the_guide_has_the_sections_and_installs_the_packages():
    text = (ROOT / assets.GUIDE).read_text()
    assert set(assets.FILES.values()) <= {words for _, words in headings(text)}
    (install,) = [block for block in text.split("```") if "apt-get install" in block]
    assert set(assets.PROGRAMS.values()) <= set(install.split())
