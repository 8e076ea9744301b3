"""Versions are parsed; tests/volcano/test_facts.py has what follows from them."""

import pytest

from webhook.volcano.target import Target, parse_version


@pytest.mark.parametrize(
    "text, version",
    [
        ("1.15.1", (1, 15, 1)), ("v1.16", (1, 16, 0)), ("v1.16.0-alpha.0", (1, 16, 0)), (" 1.9.0 ", (1, 9, 0)),
        ("1.15.1+build.7", (1, 15, 1)), ("1.15-rc1", (1, 15, 0)), ("0.0.0", (0, 0, 0)),
    ],
)  # fmt: skip
def test_a_version_is_parsed(text, version):
    assert parse_version(text) == version


@pytest.mark.parametrize(
    "text", ["", "1", "latest", "1.x", "1.15.1.2", "v", "vv1.1", "-1.2", "1,15", "1.2.3x", "1.15.", "9" * 9 + ".1"]
)
def test_an_invalid_version_is_refused(text):
    with pytest.raises(ValueError, match="write it like"):
        parse_version(text)


def test_the_default_versions():
    assert Target() == Target(volcano=(1, 15, 1), device_plugin=(1, 12, 0))
