"""Paths are cleaned as the kernel resolves them."""

import posixpath

from hypothesis import given
from hypothesis import strategies as st

from tests.cases import each_case
from webhook.rules.isolation import MAX_SLASHES, clean_path


@each_case(
    ("path", "cleaned"),
    [
        ("", "/"), ("/", "/"), ("..", "/"), ("../etc/x", "/etc/x/"), ("/../etc/x", "/etc/x/"), ("//etc/.//x/", "/etc/x/"),
        ("/a/../b", "/b/"), ("/var/run", "/run/"), ("/var/run/../etc", "/etc/"), ("/var/./x/../run/y", "/run/y/"),
        ("/x/var/run/../y", "/x/var/y/"), ("/proc/1/root", "/"), ("/proc/self/root/etc", "/etc/"),
        ("/proc/self/task/1/root/../proc/1/root/etc", "/etc/"), ("/proc/1/cwd", "/proc/1/cwd/"),
        ("/proc/root", "/proc/root/"), ("/root/proc/1/root", "/root/proc/1/root/"), (" /etc", "/ /etc/"),
        ("/..." + "/etc", "/.../etc/"),
    ],
)  # fmt: skip
def test_paths_are_made_absolute_and_then_cleaned(path: str, cleaned: str):
    assert clean_path(path) == cleaned


@given(st.lists(st.sampled_from(["", ".", "..", "a", "b", "..."]), max_size=12).map("/".join))
def test_a_path_without_links_is_cleaned_as_posix_does(path: str):
    assert clean_path(path) == posixpath.normpath("/./" + path).rstrip("/") + "/"


def test_a_path_that_is_too_long_is_not_cleaned():
    assert clean_path("/x" * MAX_SLASHES) == "/x" * MAX_SLASHES + "/"
    assert clean_path("/x" * (MAX_SLASHES + 1)) is None
    assert clean_path("/" * 1_000_000) is None
