"""Versions, and the facts of the version matrix."""

import pytest

from webhook.devices.target import Target, parse_version


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
def test_reads_versions(text, version):
    assert parse_version(text) == version


@pytest.mark.parametrize(
    "text", ["", "1", "latest", "1.x", "1.15.1.2", "v", "vv1.1", "-1.2", "1,15", "1.2.3x", "1.15.", "9" * 9 + ".1"]
)
def test_refuses_what_is_no_version(text):
    with pytest.raises(ValueError, match="write it like"):
        parse_version(text)


@pytest.mark.parametrize(
    "volcano, gates_nodes, reads_uuids, fits_every_name",
    [
        ((1, 12, 9), False, False, False),
        ((1, 13, 0), False, False, True),
        ((1, 14, 3), False, False, True),
        ((1, 14, 4), True, False, True),
        ((1, 14, 9), True, False, True),
        ((1, 15, 0), False, False, True),
        ((1, 15, 1), True, False, True),
        ((1, 16, 0), True, True, True),
        ((2, 0, 0), True, True, True),
    ],
)
def test_what_each_scheduler_does(volcano, gates_nodes, reads_uuids, fits_every_name):
    target = Target(volcano=volcano)
    assert (target.gates_nodes, target.reads_uuids, target.fits_every_name) == (
        gates_nodes,
        reads_uuids,
        fits_every_name,
    )


@pytest.mark.parametrize(
    "plugin, one", [((1, 11, 0), False), ((1, 11, 9), False), ((1, 12, 0), True), ((2, 0, 0), True)]
)
def test_the_device_plugin_serves_one_container_from_1_12(plugin, one):
    assert Target(device_plugin=plugin).one_container is one


def test_the_default_is_the_contracts():
    assert Target() == Target(volcano=(1, 15, 1), device_plugin=(1, 12, 0))
