"""The file `device-config.yaml`: what stands in it, read into values.

Read as Volcano reads the ConfigMap `volcano-vgpu-device-config`: unknown keys are ignored, a wrong type refuses the whole.
Source: volcano `pkg/scheduler/api/devices/config/vgpu.go`, `vnpu.go`.
"""

import re
from collections.abc import Iterable
from dataclasses import replace
from types import MappingProxyType
from typing import Annotated, Any

from pydantic import AliasChoices, BaseModel, BeforeValidator, ConfigDict, Field, StrictBool, ValidationError
from pydantic.alias_generators import to_camel
from pydantic_core import ErrorDetails

from webhook import names
from webhook.devices import registry
from webhook.devices.config import (
    AscendConfig,
    Chip,
    DeviceConfig,
    Geometry,
    Instance,
    MigModels,
    ResourceNames,
    VgpuConfig,
)
from webhook.devices.families import Family, Role
from webhook.devices.target import Target
from webhook.errors import ConfigError, Mistakes, json_type
from webhook.mistakes import mistake_in_value


class _Section(BaseModel):
    model_config = ConfigDict(alias_generator=to_camel, extra="ignore", frozen=True)


def _none_is_empty(value: Any) -> Any:
    return [] if value is None else value


_Count = Annotated[int, Field(strict=True, ge=0, le=2**31 - 1)]  # quoted digits and booleans are no numbers to Go


class _Instance(_Section):
    name: str = ""
    memory: _Count = 0
    count: _Count = 0


class _Geometry(_Section):
    group: str = ""
    geometries: Annotated[list[_Instance], BeforeValidator(_none_is_empty)] = []


class _MigModels(_Section):
    models: Annotated[list[str], BeforeValidator(_none_is_empty)] = []
    allowed_geometries: Annotated[list[_Geometry], BeforeValidator(_none_is_empty)] = []


class _Nvidia(_Section):
    resource_count_name: str = ""
    resource_memory_name: str = ""
    resource_core_name: str = ""
    resource_memory_percentage_name: str = ""
    overwrite_env: StrictBool = False
    default_memory: _Count = 0
    default_cores: _Count = 0
    default_number: _Count = Field(0, validation_alias=AliasChoices("defaultGPUNum"))
    memory_factor: _Count = Field(1, validation_alias=AliasChoices("gpuMemoryFactor"))
    known_mig_geometries: Annotated[list[_MigModels], BeforeValidator(_none_is_empty)] = []


class _Template(_Section):
    memory: _Count = 0


class _Vnpu(_Section):
    common_word: str = ""
    resource_name: str = ""
    resource_memory_name: str = ""
    memory_allocatable: _Count = 0
    memory_capacity: _Count = 0
    templates: Annotated[list[_Template], BeforeValidator(_none_is_empty)] = []


class _Vnpus(_Section):
    hami_vnpu_core: StrictBool = False
    configs: Annotated[list[_Vnpu], BeforeValidator(_none_is_empty)] = []


def _both_forms(value: Any) -> Any:
    """The section is an object with `configs`, or the older plain list of them."""
    if value is None:
        return {}
    return {"configs": value} if isinstance(value, list) else value


class _Model(_Section):
    nvidia: Annotated[_Nvidia, BeforeValidator(lambda value: {} if value is None else value)] = _Nvidia()
    vnpus: Annotated[_Vnpus, BeforeValidator(_both_forms)] = _Vnpus()


def parse_device_config(document: object, source: str) -> DeviceConfig:
    """Read the content of `device-config.yaml`, already parsed from YAML.

    Args:
        document: the YAML document.
        source: where it came from, for messages.

    Raises:
        ConfigError: a value has the wrong type; the message names its place.
    """
    if not isinstance(document, dict):
        raise ConfigError(f"{source}: a device config is a mapping with the key nvidia:, not {json_type(document)}")
    if document and not document.keys() & {"nvidia", "vnpus"}:
        raise ConfigError(f"{source}: neither nvidia: nor vnpus: stands in it, so it is no device config")
    try:
        model = _Model.model_validate(document)
    except ValidationError as error:
        found = [_explain(each) for each in error.errors(include_url=False)]
        raise Mistakes(source, [*found, "Volcano would fall back to its built-in defaults"]) from error
    return device_config(_vgpu(model.nvidia), _ascend(model.vnpus))


def _explain(error: ErrorDetails) -> str:
    place = ".".join(str(part) for part in error["loc"])
    return f"{place}: {mistake_in_value(error)}"


def _vgpu(section: _Nvidia) -> VgpuConfig:
    return VgpuConfig(
        number_name=section.resource_count_name or names.VGPU_NUMBER,
        memory_name=section.resource_memory_name or names.VGPU_MEMORY,
        cores_name=section.resource_core_name or names.VGPU_CORES,
        percentage_name=section.resource_memory_percentage_name or names.VGPU_MEMORY_PERCENTAGE,
        overwrite_env=section.overwrite_env,
        default_number=section.default_number,
        default_memory=section.default_memory,
        default_cores=section.default_cores,
        memory_factor=max(section.memory_factor, 1),  # the scheduler, too, applies only factors above 1
        mig_models=tuple(_mig_models(entry) for entry in section.known_mig_geometries),
    )


def _mig_models(entry: _MigModels) -> MigModels:
    return MigModels(
        models=tuple(entry.models),
        geometries=tuple(
            Geometry(geometry.group, tuple(Instance(i.name, i.memory, i.count) for i in geometry.geometries))
            for geometry in entry.allowed_geometries
        ),
    )


def _ascend(section: _Vnpus) -> AscendConfig:
    chips = tuple(_chip(entry) for entry in section.configs if entry.resource_name)
    known = {name: chip for chip in chips for name in (chip.number_name, chip.memory_name, chip.cores_name) if name}
    return AscendConfig(chips, section.hami_vnpu_core, MappingProxyType(known))


def _chip(entry: _Vnpu) -> Chip:
    return Chip(
        word=entry.common_word,
        number_name=entry.resource_name,
        memory_name=entry.resource_memory_name,
        cores_name=f"{entry.resource_name}-core",
        allocatable=entry.memory_allocatable,
        capacity=entry.memory_capacity,
        templates=tuple(sorted(template.memory for template in entry.templates)),
    )


# --- the whole of it ------------------------------------------------------------------------------------------------


def device_config(vgpu: VgpuConfig, ascend: AscendConfig) -> DeviceConfig:
    """The whole device config of two sections."""
    roles = _roles(vgpu, ascend)
    unlabelled = {name: meaning for name, meaning in roles.items() if meaning[0] != Family.MINDCLUSTER}
    return DeviceConfig(
        vgpu=vgpu,
        ascend=ascend,
        roles=MappingProxyType(roles),
        resources=ResourceNames(frozenset({*roles, names.NVIDIA_GPU}), _prefixes(roles)),
        node_annotations=frozenset(key for family in registry.FAMILIES for key in family.annotations(ascend)),
        _unlabelled=MappingProxyType(unlabelled),
    )


def as_read_by(config: DeviceConfig, target: Target) -> DeviceConfig:
    """What a version of the scheduler makes of a device config: before 1.13 it knew the well-known vGPU names only."""
    if target.reads_names:
        return config
    known = VgpuConfig()
    vgpu = replace(
        config.vgpu,
        number_name=known.number_name,
        memory_name=known.memory_name,
        cores_name=known.cores_name,
        percentage_name=known.percentage_name,
    )
    return device_config(vgpu, config.ascend)


def _roles(vgpu: VgpuConfig, ascend: AscendConfig) -> dict[str, tuple[str, Role]]:
    """Every resource name. Of equal names, a configured one wins over a fixed one, an earlier family over a later one."""
    fixed = [family for family in registry.FAMILIES if not family.configured]
    configured = [family for family in reversed(registry.FAMILIES) if family.configured]
    return {
        name: (family.id, role) for family in (*fixed, *configured) for name, role in family.roles(vgpu, ascend).items()
    }


def _prefixes(roles: Iterable[str]) -> tuple[str, ...]:
    """The usual prefixes; of a name that has none of them, the domain and the first word."""
    found = set(names.RESOURCE_PREFIXES)
    for name in roles:
        if not name.startswith(names.RESOURCE_PREFIXES):
            first = _FIRST_WORD.match(name)
            found.add(first[0] if first else name)
    return tuple(sorted(found))


_FIRST_WORD = re.compile(r"[^/]+/[A-Za-z]+")
