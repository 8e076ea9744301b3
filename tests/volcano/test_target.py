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


FOLLOWS_POLICY, GATES_NODES, READS_UUIDS = FACTS = (
    "follows_policy",
    "gates_nodes",
    "reads_uuids",
)


@pytest.mark.parametrize(
    "volcano, facts",
    [
        ((1, 13, 0), set()),
        ((1, 13, 3), set()),
        ((1, 13, 4), {GATES_NODES}),
        ((1, 14, 2), set()),
        ((1, 14, 3), {GATES_NODES}),
        ((1, 14, 9), {GATES_NODES}),
        ((1, 15, 0), {FOLLOWS_POLICY}),
        ((1, 15, 1), {FOLLOWS_POLICY, GATES_NODES}),
        ((1, 16, 0), set(FACTS)),
        ((2, 0, 0), set(FACTS)),
    ],
)
def test_each_version_has_its_behavior(volcano, facts):
    target = Target(volcano=volcano)
    assert {fact for fact in FACTS if getattr(target, fact)} == facts


@pytest.mark.parametrize(
    "volcano, handshake, first",
    [
        ((1, 13, 3), True, True),
        ((1, 13, 4), False, True),
        ((1, 14, 2), True, False),
        ((1, 14, 3), False, False),
        ((1, 15, 0), True, False),
        ((1, 15, 1), False, False),
        ((1, 16, 0), False, False),
    ],
)
def test_what_older_versions_read(volcano, handshake, first):
    target = Target(volcano=volcano)
    assert (target.reads_handshake, target.first_card_memory) == (handshake, first)


@pytest.mark.parametrize(
    "plugin, one", [((1, 11, 0), False), ((1, 11, 9), False), ((1, 12, 0), True), ((2, 0, 0), True)]
)
def test_the_device_plugin_serves_one_container_from_1_12(plugin, one):
    assert Target(device_plugin=plugin).one_container is one


def test_the_default_versions():
    assert Target() == Target(volcano=(1, 15, 1), device_plugin=(1, 12, 0))


@pytest.mark.parametrize(
    "plugin, writes", [((1, 11, 0), True), ((1, 12, 0), True), ((1, 12, 1), False), ((1, 13, 0), False)]
)
def test_the_device_plugin_writes_the_handshake_up_to_1_12_0(plugin, writes):
    assert Target(device_plugin=plugin).writes_handshake is writes
