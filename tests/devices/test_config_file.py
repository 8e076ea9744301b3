"""The device config is read as Volcano reads it."""

from dataclasses import replace
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from tests.strategies import json_values, mangled
from webhook import names
from webhook.devices.config import Geometry, Instance, VgpuConfig
from webhook.devices.config_file import parse_device_config
from webhook.devices.families import Family, Role
from webhook.errors import ConfigError
from webhook.settings.snapshot import default_device_config

CONFIGS = Path(__file__).parent.parent / "data" / "config"


def parse(document):
    return parse_device_config(document, "the file")


def recorded(name):
    return parse(yaml.safe_load((CONFIGS / name).read_text()))


def test_the_recorded_config_is_read():
    config = recorded("device-config.yaml")
    assert config.vgpu.default_number == 1
    assert [entry.models[0] for entry in config.vgpu.mig_models] == ["A30", "A100-SXM4-40GB", "A100-SXM4-80GB"]
    instances = (Instance("2g.20gb", 19968, 3), Instance("1g.10gb", 9728, 1))
    assert config.vgpu.mig_models[2].geometries[1] == Geometry("group2", instances)


def test_absent_names_get_their_defaults():
    config = parse({})
    vgpu = config.vgpu
    assert (vgpu.default_number, vgpu.default_memory, vgpu.default_cores, vgpu.memory_factor) == (0, 0, 0, 1)
    assert config.roles == {
        "volcano.sh/vgpu-number": (Family.VGPU, Role.NUMBER),
        "volcano.sh/vgpu-memory": (Family.VGPU, Role.MEMORY),
        "volcano.sh/vgpu-cores": (Family.VGPU, Role.CORES),
        "volcano.sh/vgpu-memory-percentage": (Family.VGPU, Role.PERCENTAGE),
        "volcano.sh/gpu-number": (Family.GPUSHARE, Role.NUMBER),
        "volcano.sh/gpu-memory": (Family.GPUSHARE, Role.MEMORY),
        "huawei.com/npu-core": (Family.MINDCLUSTER, Role.CORES),
    }


@pytest.mark.parametrize(
    "document",
    [
        {"nvidia": None},
        {"nvidia": {"resourceCountName": ""}},
        {"nvidia": {"deviceSplitCount": 10, "new": {}}, "more": 1},
        {"vnpus": None},
        {"vnpus": {"hamiVnpuCore": False, "configs": None}},
        {"vnpus": [{"chipName": "x"}, {"resourceName": "", "resourceMemoryName": ""}]},
    ],
)
def test_what_is_empty_or_unknown_and_npus_without_names_are_ignored(document):
    assert parse(document) == parse({} if "nvidia" in document else {"vnpus": {}})


def test_names_and_defaults_are_configurable():
    section = {"resourceCountName": "nvidia.com/gpu", "resourceMemoryName": "x/mem", "resourceCoreName": "x/cores"}
    section |= {"resourceMemoryPercentageName": "x/percent", "overwriteEnv": True, "gpuMemoryFactor": 10}
    config = parse({"nvidia": section | {"defaultMemory": 1000, "defaultCores": 10, "defaultGPUNum": 2}})
    vgpu = VgpuConfig("nvidia.com/gpu", "x/mem", "x/cores", "x/percent", overwrite_env=True, memory_factor=10)
    assert config.vgpu == replace(vgpu, default_memory=1000, default_cores=10, default_number=2)
    assert config.roles["nvidia.com/gpu"] == (Family.VGPU, Role.NUMBER)
    assert names.VGPU_NUMBER not in config.roles


@pytest.mark.parametrize("factor, used", [(0, 1), (1, 1), (10, 10)])
def test_a_memory_factor_below_one_counts_as_one(factor, used):
    assert parse({"nvidia": {"gpuMemoryFactor": factor}}).vgpu.memory_factor == used


CHIP = {
    "commonWord": "Ascend310P",
    "resourceName": "huawei.com/Ascend310P",
    "resourceMemoryName": "huawei.com/Ascend310P-memory",
    "memoryAllocatable": 21527,
    "memoryCapacity": 24576,
    "templates": [{"name": "vir04", "memory": 12288}, {"memory": 3072}, {"memory": 6144}],
}


@pytest.mark.parametrize("section", [[CHIP], {"configs": [CHIP]}, {"hamiVnpuCore": True, "configs": [CHIP]}])
def test_a_chip_is_read_in_every_form(section):
    config = parse({"vnpus": section})
    (chip,) = config.ascend.chips
    assert (chip.word, chip.allocatable, chip.capacity) == ("Ascend310P", 21527, 24576)
    assert chip.templates == (3072, 6144, 12288)
    assert config.ascend.hami_core is (isinstance(section, dict) and section.get("hamiVnpuCore", False))
    roles = {"": Role.NUMBER, "-memory": Role.MEMORY, "-core": Role.CORES}
    assert config.ascend.chip_of == {f"huawei.com/Ascend310P{end}": chip for end in roles}
    assert {end: config.roles[f"huawei.com/Ascend310P{end}"] for end in roles} == {
        end: (Family.ASCEND, role) for end, role in roles.items()
    }
    assert names.NODE_ASCEND_REGISTER_PREFIX + "Ascend310P" in config.node_annotations


@pytest.mark.parametrize(
    "missing, field, empty",
    [
        ("commonWord", "word", ""),
        ("resourceMemoryName", "memory_name", ""),
        ("memoryAllocatable", "allocatable", 0),
        ("memoryCapacity", "capacity", 0),
        ("templates", "templates", ()),
    ],
)
def test_a_missing_field_of_a_chip_is_empty(missing, field, empty):
    config = parse({"vnpus": [{key: value for key, value in CHIP.items() if key != missing}]})
    (full,) = parse({"vnpus": [CHIP]}).ascend.chips
    assert config.ascend.chips == (replace(full, **{field: empty}),)
    assert "" not in config.roles


def test_without_a_configmap_there_is_one_chip():
    config = default_device_config()
    (chip,) = config.ascend.chips
    assert chip == recorded("device-config.yaml").ascend.chip_of["huawei.com/Ascend310P"]
    assert not config.ascend.hami_core


@pytest.mark.parametrize(
    "document, message",
    [
        ({"nvidia": []}, "nvidia: "),
        ({"nvidia": "x"}, "nvidia: "),
        ({"nvidia": {"resourceCountName": 5}}, "nvidia.resourceCountName: "),
        ({"nvidia": {"defaultGPUNum": "1"}}, "nvidia.defaultGPUNum: "),
        ({"nvidia": {"defaultGPUNum": True}}, "nvidia.defaultGPUNum: "),
        ({"nvidia": {"defaultMemory": -1}}, "nvidia.defaultMemory: "),
        ({"nvidia": {"defaultCores": 1.5}}, "nvidia.defaultCores: "),
        ({"nvidia": {"gpuMemoryFactor": 2**31}}, "nvidia.gpuMemoryFactor: "),
        ({"nvidia": {"overwriteEnv": "true"}}, "nvidia.overwriteEnv: "),
        ({"nvidia": {"knownMigGeometries": {}}}, "nvidia.knownMigGeometries: "),
        ({"nvidia": {"knownMigGeometries": [{"models": "A100"}]}}, "nvidia.knownMigGeometries.0.models: "),
        (
            {"nvidia": {"knownMigGeometries": [{"allowedGeometries": [{"geometries": [{"memory": "x"}]}]}]}},
            "nvidia.knownMigGeometries.0.allowedGeometries.0.geometries.0.memory: ",
        ),
        ({"vnpus": "x"}, "vnpus: "),
        ({"vnpus": [1]}, "vnpus.configs.0: "),
        ({"schedulerName": "volcano"}, "it has neither nvidia: nor vnpus:"),
        *[(document, "a device config is a mapping") for document in (None, [], "nvidia", 1)],
    ],
)
def test_what_is_no_device_config_is_refused(document, message):
    with pytest.raises(ConfigError) as caught:
        parse(document)
    assert str(caught.value).startswith(f"the file: {message}")


npus = mangled(st.just({"vnpus": {"hamiVnpuCore": True, "configs": [CHIP, CHIP]}}) | st.just({"vnpus": [CHIP]}))


@given(npus, json_values)
def test_any_json_is_a_config_or_refused(listed, document):
    sections = ({"nvidia": document}, {"vnpus": document}, {"nvidia": {"knownMigGeometries": document}})
    for whole in (listed, document, *sections):
        try:
            config = parse(whole)
        except ConfigError as error:
            message = str(error)
            assert message.startswith("the file: ")
        else:
            assert config.roles
            assert all(chip.accounted(1) >= 0 for chip in config.ascend.chips)
