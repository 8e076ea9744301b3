"""The file watcher: when it loads a file, and what it reports."""

import asyncio
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from certs.pki import replace
from tests.server.program import until
from webhook.errors import ConfigError
from webhook.settings import file_watcher
from webhook.settings.file_watcher import FileWatcher, WatchedFiles, signature


class Watched:
    """A watched file, its versions that were applied, and the reports of the watcher."""

    def __init__(self, path: Path, load: Callable[[], str] | None = None) -> None:
        path.write_text("first")
        self.path, self.applied, self.reports = path, [], []
        self.load = load or path.read_text
        watched = WatchedFiles("file", [path], self._loaded, self.applied.append, signature([path]))
        self.watcher = FileWatcher([watched], lambda *report: self.reports.append(report))

    def write(self, text: str) -> None:
        """Replace the file atomically, so that the watcher never reads half of it."""
        replace(self.path, text.encode(), 0o644)

    def _loaded(self) -> str:
        return self.load()

    def run(self, during: Callable[[], object]) -> None:
        """Run the watcher, and `during` in another thread."""

        async def both() -> None:
            watching = asyncio.create_task(self.watcher.run())
            await asyncio.to_thread(during)
            watching.cancel()

        asyncio.run(both())


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Watched:
    monkeypatch.setattr(file_watcher, "POLL_SECONDS", 0.02)
    return Watched(tmp_path / "file")


def fails(error: Exception, cause: BaseException | None = None) -> Callable[[], str]:
    def load() -> str:
        raise error from cause

    return load


def test_a_file_that_does_not_change_is_not_loaded(file: Watched):
    file.run(lambda: asyncio.run(asyncio.sleep(0.2)))
    assert (file.applied, file.reports) == ([], [])


def test_each_change_is_loaded_once(file: Watched):
    def change() -> None:
        file.write("second, longer")
        until(lambda: file.reports)
        os.utime(file.path, ns=(1, 1))
        until(lambda: len(file.reports) == 2)

    file.run(change)
    assert file.applied[-1] == "second, longer"
    assert file.reports == [("file", True)] * 2


@pytest.mark.parametrize(
    ("error", "problem"), [(ConfigError("not good"), "not good"), (ValueError("a bug"), "ValueError('a bug')")]
)
def test_a_problem_is_reported_once_and_ends_with_the_next_good_version(file: Watched, error: Exception, problem: str):
    def change() -> None:
        file.load = fails(error)
        file.write("bad, and longer")
        until(lambda: file.watcher.problems)
        assert file.watcher.problems == {"file": problem}
        file.load = file.path.read_text
        file.write("good")
        until(lambda: not file.watcher.problems)

    file.run(change)
    assert file.applied == ["good"]
    assert file.reports == [("file", False), ("file", True)]


def test_an_unreadable_file_is_read_again_without_a_change(file: Watched):
    """A change of permissions does not change the signature."""

    def change() -> None:
        file.load = fails(ConfigError("no rights"), PermissionError())
        file.write("other text")
        until(lambda: file.watcher.problems)
        file.load = file.path.read_text
        until(lambda: not file.watcher.problems)

    file.run(change)
    assert file.applied == ["other text"]
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
