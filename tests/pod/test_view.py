"""Reading a pod: strict for fields that rules read, lenient for all others."""

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.cases import each_case
from tests.strategies import json_values
from webhook.errors import Malformed
from webhook.pod.view import Container, PodView


def container(**fields):
    return Container("containers", 0, fields)


def read_all(view):
    """Read every field that rules read."""
    values = [view.name, view.scheduler, view.node_name, view.annotation("a"), list(view.tolerations())]
    values += [*view.volumes(), *view.host_paths()]
    for each in view.every_container():
        values += [each.name, each.path, each.quantity("cpu"), each.has("cpu"), each.security_context()]
        values += [list(each.entries(field)) for field in ("env", "envFrom", "volumeMounts", "volumeDevices")]
    return values


def test_a_pod_without_a_name_has_its_generate_name():
    assert PodView({"metadata": {"generateName": "web-"}}).name == "web-"
    assert PodView({"metadata": {"name": "web-1", "generateName": "web-"}}).name == "web-1"


def test_containers_come_in_the_order_init_regular_ephemeral():
    spec = {
        "ephemeralContainers": [{"name": "e"}],
        "containers": [{"name": "a"}, {"name": "b"}],
        "initContainers": [{"name": "i"}],
    }
    view = PodView({"spec": spec})
    containers = [(each.name, each.kind, each.index, each.where) for each in view.every_container()]
    assert containers == [
        ("i", "initContainers", 0, "spec.initContainers[0]"),
        ("a", "containers", 0, "spec.containers[0]"),
        ("b", "containers", 1, "spec.containers[1]"),
        ("e", "ephemeralContainers", 0, "spec.ephemeralContainers[0]"),
    ]
    assert view.containers[1].path == ("spec", "containers", 1)


@pytest.mark.parametrize(
    "limits, requests, value, has",
    [
        (None, None, None, False), ({"n": 1}, {"n": 2}, 1, True), ({}, {"n": 2}, 2, True),
        ({"n": None}, {"n": 2}, 2, True), ({"n": 0}, {"n": 2}, 0, True), ({"m": 1}, {}, None, False),
    ],
)  # fmt: skip
def test_limits_come_before_requests(limits, requests, value, has):
    subject = container(resources={"limits": limits, "requests": requests})
    assert subject.quantity("n") == value
    assert subject.has("n") is has


@each_case(
    "pod, path, expected",
    [
        ({"metadata": []}, "metadata", "an object"),
        ({"spec": False}, "spec", "an object"),
        ({"metadata": {"annotations": []}}, "metadata.annotations", "an object"),
        ({"metadata": {"annotations": {"a": 1}}}, "metadata.annotations[a]", "a string in quotes"),
        ({"spec": {"containers": {}}}, "spec.containers", "a list"),
        ({"spec": {"containers": [{}, "c"]}}, "spec.containers[1]", "an object"),
        ({"spec": {"containers": [None]}}, "spec.containers[0]", "an object"),
        ({"spec": {"initContainers": [1]}}, "spec.initContainers[0]", "an object"),
        ({"spec": {"ephemeralContainers": 0}}, "spec.ephemeralContainers", "a list"),
        ({"spec": {"containers": [{"resources": []}]}}, "spec.containers[0].resources", "an object"),
        ({"spec": {"containers": [{"resources": {"limits": []}}]}}, "spec.containers[0].resources.limits", "an object"),
        (
            {"spec": {"containers": [{"resources": {"requests": ""}}]}},
            "spec.containers[0].resources.requests",
            "an object",
        ),
        ({"spec": {"containers": [{"env": {}}]}}, "spec.containers[0].env", "a list"),
        ({"spec": {"containers": [{"env": [{}, 1]}]}}, "spec.containers[0].env[1]", "an object"),
        ({"spec": {"containers": [{"envFrom": ["x"]}]}}, "spec.containers[0].envFrom[0]", "an object"),
        ({"spec": {"containers": [{"volumeMounts": 1}]}}, "spec.containers[0].volumeMounts", "a list"),
        ({"spec": {"containers": [{"volumeDevices": [0]}]}}, "spec.containers[0].volumeDevices[0]", "an object"),
        ({"spec": {"containers": [{"securityContext": []}]}}, "spec.containers[0].securityContext", "an object"),
        ({"spec": {"schedulerName": 1}}, "spec.schedulerName", "a string"),
        ({"spec": {"nodeName": []}}, "spec.nodeName", "a string"),
        ({"spec": {"tolerations": [[]]}}, "spec.tolerations[0]", "an object"),
        ({"spec": {"volumes": {}}}, "spec.volumes", "a list"),
    ],
)
def test_a_malformed_field_is_reported_with_its_path_and_type(pod, path, expected):
    with pytest.raises(Malformed) as caught:
        read_all(PodView(pod))
    assert caught.value.path == path
    assert str(caught.value).startswith(f"{path} must be {expected}, not ")


@pytest.mark.parametrize(
    "value, word", [("s", "a string"), (True, "a boolean"), (1, "a number"), (1.5, "a number"), ([], "a list")]
)
def test_a_malformed_field_is_reported_with_its_json_type(value, word):
    with pytest.raises(Malformed, match=f"spec must be an object, not {word}"):
        PodView({"spec": value})


def test_fields_that_no_rule_reads_can_have_any_value():
    pod = {"spec": {"containers": [{"name": 7, "ports": "x", "image": []}], "volumes": None, "hostPID": "yes"}}
    assert PodView(pod).containers[0].name == ""
    assert read_all(PodView(pod))


@given(st.dictionaries(st.sampled_from(["metadata", "spec"]), json_values))
def test_any_json_is_read_or_refused(raw):
    with contextlib.suppress(Malformed):
        assert read_all(PodView(raw))


def test_an_annotation_above_the_limit_of_kubernetes_is_malformed():
    assert PodView({"metadata": {"annotations": {"a": "x" * (256 << 10)}}}).annotation("a")
    with pytest.raises(Malformed, match="must be a string of at most 256 KiB, not a longer one"):
        PodView({"metadata": {"annotations": {"a": "x" * ((256 << 10) + 1)}}}).annotation("a")
