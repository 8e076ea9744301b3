"""Misspelt resource names are found, and the most similar known name is suggested."""

from tests.cases import each_case
from tests.devices.explaining import requesting
from tests.reviewing import CONFIG, snapshot
from tests.timing import within
from webhook.devices.config import MAX_NAME
from webhook.devices.unknown import MAX_UNKNOWN, unknown_names
from webhook.pod.view import PodView

SNAPSHOT = snapshot("every-family")


def found(*resources: str):
    pod = requesting(resources, ["1"] * len(resources))
    return unknown_names(PodView(pod), CONFIG, SNAPSHOT.fleet)


@each_case(
    ("written", "meant"),
    [
        ("volcano.sh/vgpu-num", "volcano.sh/vgpu-number"),
        ("volcano.sh/vgpu-count", "volcano.sh/vgpu-number"),
        ("volcano.sh/vgpu", "volcano.sh/vgpu-number"),
        ("volcano.sh/vGPU-Number", "volcano.sh/vgpu-number"),
        ("volcano.sh/vgup-number", "volcano.sh/vgpu-number"),
        ("volcano.sh/vgpu_memory", "volcano.sh/vgpu-memory"),
        ("volcano.sh/vgpu-memery", "volcano.sh/vgpu-memory"),
        ("volcano.sh/vgpu.mem", "volcano.sh/vgpu-memory"),
        ("volcano.sh/vgpu-core", "volcano.sh/vgpu-cores"),
        ("volcano.sh/vgpu-percentage", "volcano.sh/vgpu-memory-percentage"),
        ("volcano.sh/gpu-mem", "volcano.sh/gpu-memory"),
        ("huawei.com/ascend310p", "huawei.com/Ascend310P"),
        ("huawei.com/Ascend310p-mem", "huawei.com/Ascend310P-memory"),
        ("huawei.com/Ascend910B3-cores", "huawei.com/Ascend910B3-core"),
        ("huawei.com/Ascend910B", "huawei.com/Ascend910B3"),  # not Ascend910C, which no node of the fleet offers
        ("huawei.com/npu-cores", None),  # no node of the fleet offers any
        ("huawei.com/Ascend310P-2c", None),  # other digits name another resource
        ("volcano.sh/slots", None),
        ("volcano.sh/", None),
        ("volcano.sh/" + "vgpu-number" * 5, None),
    ],
)
def test_the_most_similar_name_is_suggested(written: str, meant: str | None):
    (unknown,) = found(written)
    assert (unknown.resource, unknown.meant) == (written, meant)


def test_a_name_that_the_api_server_refuses_is_not_reported():
    assert not found("volcano.sh/" + "x" * MAX_NAME)


def test_thousands_of_names_take_little_time():
    hostile = PodView(requesting([f"volcano.sh/vgpu-numb{i}" for i in range(20_000)], ["1"] * 20_000))
    assert len(within(0.1, lambda: unknown_names(hostile, CONFIG, SNAPSHOT.fleet))) == MAX_UNKNOWN
