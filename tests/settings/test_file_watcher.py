"""The file watcher: when it loads a file, and what it reports."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from certs.pki import replace
from webhook.cluster.file_watcher import FileWatcher, WatchedFiles, signature
from webhook.errors import ConfigError


class Watched:
    """A watched file, its versions that were loaded, and the reports of the watcher."""

    def __init__(self, path: Path) -> None:
        path.write_text("first")
        self.path, self.loaded, self.reports = path, [], []
        self.read: Callable[[], str] = path.read_text
        watched = WatchedFiles("file", [path], lambda: self.loaded.append(self.read()), signature([path]))
        self.watcher = FileWatcher([watched], lambda *report: self.reports.append(report))

    def write(self, text: str) -> None:
        """Replace the file atomically, as an operator does."""
        replace(self.path, text.encode(), 0o644)


@pytest.fixture
def file(tmp_path: Path) -> Watched:
    return Watched(tmp_path / "file")


def fails(error: Exception) -> Callable[[], str]:
    def load() -> str:
        raise error

    return load


def test_a_file_is_loaded_once_for_each_change(file: Watched):
    file.watcher.look()
    assert (file.loaded, file.reports) == ([], []), "it has not changed"
    file.write("second, longer")
    for _ in range(2):
        file.watcher.look()
    assert (file.loaded, file.reports) == (["second, longer"], [("file", True)])
    os.utime(file.path, ns=(1, 1))
    file.watcher.look()
    assert file.reports == [("file", True)] * 2


@pytest.mark.parametrize(
    ("error", "problem"), [(ConfigError("not good"), "not good"), (ValueError("a bug"), "ValueError('a bug')")]
)
def test_a_problem_is_reported_once_and_ends_with_the_next_good_version(file: Watched, error: Exception, problem: str):
    file.read = fails(error)
    file.write("bad, and longer")
    for _ in range(2):
        file.watcher.look()
        assert file.watcher.problems == {"file": problem}
    file.read = file.path.read_text
    file.write("good")
    file.watcher.look()
    assert not file.watcher.problems
    assert file.loaded == ["good"]
    assert file.reports == [("file", False), ("file", True)]


def test_an_unreadable_file_is_read_again_and_stays_reported(file: Watched):
    """A change of permissions does not change the signature."""
    problems: list[dict[str, str]] = []

    def read() -> str:
        problems.append(file.watcher.problems)
        raise ConfigError("no rights") from PermissionError()

    file.read = read
    file.write("other text")
    for _ in range(2):
        file.watcher.look()
    assert problems == [{}, {"file": "no rights"}], "also while it is read"
    file.read = file.path.read_text
    file.watcher.look()
    assert not file.watcher.problems
    assert file.loaded == ["other text"]
    assert file.reports == [("file", False), ("file", True)]


def test_a_change_of_a_links_target_changes_the_signature(tmp_path: Path):
    for name in ("one", "two"):
        (tmp_path / name).write_text(name)
        os.utime(tmp_path / name, ns=(1, 1))
    link = tmp_path / "link"
    link.symlink_to("one")
    before = signature([link])
    link.unlink()
    link.symlink_to("two")
    assert signature([link]) != before
    link.unlink()
    assert signature([link]) == (None,)
