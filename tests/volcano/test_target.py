"""Versions are parsed, and each has the behavior that the version matrix lists."""

import pytest

from webhook.volcano.target import Target, parse_version


@pytest.mark.parametrize(
    "text, version",
    [
        ("1.15.1", (1, 15, 1)),
        ("v1.16", (1, 16, 0)),
        ("v1.16.0-alpha.0", (1, 16, 0)),
        (" 1.9.0 ", (1, 9, 0)),
        ("1.15.1+build.7", (1, 15, 1)),
        ("1.15-rc1", (1, 15, 0)),
        ("0.0.0", (0, 0, 0)),
    ],
)
def test_a_version_is_parsed(text, version):
    assert parse_version(text) == version


@pytest.mark.parametrize(
    "text", ["", "1", "latest", "1.x", "1.15.1.2", "v", "vv1.1", "-1.2", "1,15", "1.2.3x", "1.15.", "9" * 9 + ".1"]
)
def test_an_invalid_version_is_refused(text):
    with pytest.raises(ValueError, match="write it like"):
        parse_version(text)


GATES, HANDSHAKE, FIRST, POLICY, UUIDS, UNSEEN = FACTS = (
    *("gates_nodes", "reads_handshake", "first_card_memory", "follows_policy", "reads_uuids", "binds_unseen"),
)


@pytest.mark.parametrize(
    "volcano, facts",
    [
        ((1, 13, 0), {HANDSHAKE, FIRST}),
        ((1, 13, 3), {HANDSHAKE, FIRST}),
        ((1, 13, 4), {GATES, FIRST}),
        ((1, 14, 2), {HANDSHAKE, UNSEEN}),
        ((1, 14, 3), {GATES, UNSEEN}),
        ((1, 14, 9), {GATES, UNSEEN}),
        ((1, 15, 0), {HANDSHAKE, POLICY, UNSEEN}),
        ((1, 15, 1), {GATES, POLICY, UNSEEN}),
        ((1, 16, 0), {GATES, POLICY, UUIDS, UNSEEN}),
        ((2, 0, 0), {GATES, POLICY, UUIDS, UNSEEN}),
    ],
)
def test_each_version_has_its_behavior(volcano, facts):
    target = Target(volcano=volcano)
    assert {fact for fact in FACTS if getattr(target, fact)} == facts


@pytest.mark.parametrize(
    "plugin, one, writes",
    [
        ((1, 11, 0), False, True),
        ((1, 11, 9), False, True),
        ((1, 12, 0), True, True),
        ((1, 12, 1), True, False),
        ((2, 0, 0), True, False),
    ],
)
def test_the_device_plugin_serves_one_container_from_1_12_and_writes_the_handshake_up_to_1_12_0(plugin, one, writes):
    target = Target(device_plugin=plugin)
    assert (target.one_container, target.writes_handshake) == (one, writes)


def test_the_default_versions():
    assert Target() == Target(volcano=(1, 15, 1), device_plugin=(1, 12, 0))
