"""Files that are looked at: what is loaded when, and what is told of it."""

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


class Seen:
    """A file, what was applied of it, and what was told."""

    def __init__(self, path: Path, load: Callable[[], str] | None = None) -> None:
        path.write_text("first")
        self.path, self.applied, self.told = path, [], []
        self.load = load or path.read_text
        watched = WatchedFiles("it", [path], self._loaded, self.applied.append, signature([path]))
        self.watcher = FileWatcher([watched], lambda *told: self.told.append(told))

    def write(self, text: str) -> None:
        """All of it at once, so that no look sees half a file."""
        replace(self.path, text.encode(), 0o644)

    def _loaded(self) -> str:
        return self.load()

    def run(self, during: Callable[[], object]) -> None:
        """Look, and do something meanwhile in another thread."""

        async def both() -> None:
            looking = asyncio.create_task(self.watcher.run())
            await asyncio.to_thread(during)
            looking.cancel()

        asyncio.run(both())


@pytest.fixture
def seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Seen:
    monkeypatch.setattr(file_watcher, "POLL_SECONDS", 0.02)
    return Seen(tmp_path / "file")


def fails(error: Exception, cause: BaseException | None = None) -> Callable[[], str]:
    def load() -> str:
        raise error from cause

    return load


def test_a_file_that_does_not_change_is_not_loaded(seen: Seen):
    seen.run(lambda: asyncio.run(asyncio.sleep(0.2)))
    assert (seen.applied, seen.told) == ([], [])


def test_each_change_is_loaded_once(seen: Seen):
    def change() -> None:
        seen.write("second, longer")
        until(lambda: seen.told)
        os.utime(seen.path, ns=(1, 1))
        until(lambda: len(seen.told) == 2)

    seen.run(change)
    assert seen.applied[-1] == "second, longer"
    assert seen.told == [("it", True)] * 2


@pytest.mark.parametrize(
    ("error", "problem"), [(ConfigError("not good"), "not good"), (ValueError("a bug"), "ValueError('a bug')")]
)
def test_a_problem_is_reported_once_and_ends_with_the_next_good_version(seen: Seen, error: Exception, problem: str):
    def change() -> None:
        seen.load = fails(error)
        seen.write("bad, and longer")
        until(lambda: seen.watcher.problems)
        assert seen.watcher.problems == {"it": problem}
        seen.load = seen.path.read_text
        seen.write("good")
        until(lambda: not seen.watcher.problems)

    seen.run(change)
    assert seen.applied == ["good"]
    assert seen.told == [("it", False), ("it", True)]


def test_what_could_not_be_read_is_tried_again_without_a_change(seen: Seen):
    """Rights come back without a trace in the signature."""

    def change() -> None:
        seen.load = fails(ConfigError("no rights"), PermissionError())
        seen.write("other text")
        until(lambda: seen.watcher.problems)
        seen.load = seen.path.read_text
        until(lambda: not seen.watcher.problems)

    seen.run(change)
    assert seen.applied == ["other text"]
    assert seen.told == [("it", False), ("it", True)]


def test_a_link_counts_as_what_it_points_to(tmp_path: Path):
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
