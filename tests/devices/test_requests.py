"""What a pod requests of each family, and which quantities are valid."""

from typing import Any

import pytest
from hypothesis import given

from tests.cases import each_case
from tests.strategies import pods
from webhook.devices.config_file import parse_device_config
from webhook.devices.families import Family, Role
from webhook.devices.requests import DevicePod, requested_families, requests_native_gpu
from webhook.pod.view import PodView

CONFIG = parse_device_config({"vnpus": [{"resourceName": "huawei.com/Ascend910A"}]}, "test")
NUMBER, MEMORY, CORES = "volcano.sh/vgpu-number", "volcano.sh/vgpu-memory", "volcano.sh/vgpu-cores"
PERCENTAGE = "volcano.sh/vgpu-memory-percentage"


def pod(*containers, **others):
    kinds = {"containers": containers, **others}
    spec = {kind: [{"name": f"{kind}{i}", "resources": each} for i, each in enumerate(kinds[kind])] for kind in kinds}
    return PodView({"spec": spec})


def request_of(limits=None, requests=None):
    (vgpu_request,) = DevicePod(pod({"limits": limits, "requests": requests}), CONFIG).slices
    return vgpu_request


@each_case(
    "written, value",
    [
        ("3000", 3000), ("3k", 3000), (3000, 3000), ("3Ki", 3072), ("0", 0), ("1Mi", 2**20),
        ("1048577", None), ("512Mi", None), ("2Gi", None), ("-1", None), ("1500m", None), ("2000m", 2), ("x", None), ("", None),
        (None, None), (True, None), (1.5, None), ([], None),
    ],
)  # fmt: skip
def test_a_valid_quantity_is_read(written, value):
    request = request_of({MEMORY: written})
    assert request.memory == value
    assert request.usable is (value is not None)
    assert set(request.written) == {Role.MEMORY}


def test_a_count_is_read_as_far_as_the_scheduler_counts():
    assert [request_of({NUMBER: written}).number for written in ("2147483647", "2147483648")] == [2**31 - 1, None]


@pytest.mark.parametrize("amounts", [(1, 2, 3, 4), (1, None, None, None)])
def test_each_name_has_its_role_and_what_is_absent_is_none(amounts):
    request = request_of(dict(zip((NUMBER, MEMORY, CORES, PERCENTAGE), amounts, strict=True)))
    assert (request.number, request.memory, request.cores, request.percentage) == amounts
    roles = (Role.NUMBER, Role.MEMORY, Role.CORES, Role.PERCENTAGE)
    assert [request.amount(role) for role in roles] == [amount or 0 for amount in amounts]


def test_families_and_the_containers_that_request_them():
    device_pod = DevicePod(
        pod(
            {"limits": {NUMBER: 1, "volcano.sh/gpu-memory": 1}},
            {"requests": {"huawei.com/Ascend910A": 1}},
            {"limits": {"cpu": 1, "nvidia.com/gpu": 1}},
            initContainers=[{"limits": {NUMBER: 1}}],
            ephemeralContainers=[{"limits": {MEMORY: 1}}],
        ),
        CONFIG,
    )
    assert {family: [each.name for each in group] for family, group in device_pod.requested.items()} == {
        Family.VGPU: ["initContainers0", "containers0", "ephemeralContainers0"],
        Family.GPUSHARE: ["containers0"],
        Family.ASCEND: ["containers1"],
    }
    assert [request.container.name for request in device_pod.slices] == ["containers0"]  # regular containers only
    assert device_pod.requests_family(Family.ASCEND)
    assert not DevicePod(pod({}), CONFIG).requests_family(Family.VGPU)


def test_the_configured_count_is_not_a_native_gpu():
    (container,) = pod({"limits": {"nvidia.com/gpu": 1}}).containers
    renamed = parse_device_config({"nvidia": {"resourceCountName": "nvidia.com/gpu"}}, "test")
    assert requests_native_gpu(container, CONFIG.roles)
    assert not requests_native_gpu(container, renamed.roles)
    assert requested_families(container, renamed.roles) == {Family.VGPU}
    assert not requested_families(container, CONFIG.roles)


@pytest.mark.parametrize(
    ("limits", "requested"),
    [
        ({NUMBER: "0", MEMORY: "3k", "cpu": "1"}, set()),
        ({NUMBER: "1", MEMORY: "0"}, {Family.VGPU}),
        ({MEMORY: "0"}, set()),
        ({MEMORY: "3k"}, {Family.VGPU}),
        ({MEMORY: "unreadable"}, {Family.VGPU}),
        ({"volcano.sh/gpu-memory": "0", "huawei.com/Ascend910A": "1"}, {Family.ASCEND}),
        ({"huawei.com/Ascend910A": "0", "huawei.com/Ascend910A-memory": "2184"}, set()),
    ],
)
def test_an_amount_of_0_requests_nothing(limits: dict[str, str], requested: set[Family]):
    (container,) = pod({"limits": limits}).containers
    assert requested_families(container, CONFIG.roles) == requested


def test_what_limits_and_requests_share_counts_once():
    """A manifest of YAML can have one map for both, with an alias."""
    shared = {NUMBER: "1", MEMORY: "3000"}
    assert [one.resource for one in DevicePod(pod({"limits": shared, "requests": shared}), CONFIG).amounts] == [*shared]


@pytest.mark.parametrize(("amount", "requested"), [("0", False), ("0k", False), (0, False), ("1", True), ("x", True)])
def test_a_native_gpu_is_requested_by_more_than_0(amount: Any, *, requested: bool):
    for part in ("limits", "requests"):
        (container,) = pod({part: {"nvidia.com/gpu": amount}}).containers
        assert requests_native_gpu(container, CONFIG.roles) is requested


def test_only_new_ephemeral_containers_of_an_old_pod_are_judged():
    old, new = (pod({}, ephemeralContainers=[{}] * number) for number in (1, 2))
    assert [each.name for each in DevicePod(new, CONFIG, old).judged] == ["ephemeralContainers1"]
    assert [each.name for each in DevicePod(new, CONFIG).judged] == [
        "containers0", "ephemeralContainers0", "ephemeralContainers1",
    ]  # fmt: skip


@given(pods())
def test_any_pod_can_be_read(raw):
    device_pod = DevicePod(PodView(raw), CONFIG)
    names = [container.name for container in device_pod.view.containers]
    assert len(device_pod.slices) <= len(names)
    for request in device_pod.slices:
        assert request.usable == all(getattr(request, role) is not None for role in request.written)
        assert request.written
