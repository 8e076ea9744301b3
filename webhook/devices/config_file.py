"""Reads the file `device-config.yaml` into values.

Read as Volcano reads the ConfigMap `volcano-vgpu-device-config`: unknown keys are ignored, a wrong type refuses the whole.
Source: volcano `pkg/scheduler/api/devices/config/vgpu.go`, `vnpu.go`.
"""

import re
from collections.abc import Iterable
from types import MappingProxyType
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, FailFast, StrictBool, ValidationError
from pydantic.alias_generators import to_camel

from webhook import names
from webhook.devices import registry
from webhook.devices.config import NULL_IS_EMPTY, AscendConfig, Chip, Count, DeviceConfig, ResourceNames, VgpuConfig
from webhook.devices.dialects import RESOURCES
from webhook.devices.families import Family, Role
from webhook.errors import ConfigError, Mistakes, json_type
from webhook.mistakes import mistakes_in


class _Section(BaseModel):
    model_config = ConfigDict(alias_generator=to_camel, extra="ignore", frozen=True)


class _Template(_Section):
    memory: Count = 0


class _Vnpu(_Section):
    common_word: str = ""
    resource_name: str = ""
    resource_memory_name: str = ""
    memory_allocatable: Count = 0
    memory_capacity: Count = 0
    templates: Annotated[list[_Template], FailFast(), NULL_IS_EMPTY] = []


class _Vnpus(_Section):
    hami_vnpu_core: StrictBool = False
    configs: Annotated[list[_Vnpu], FailFast(), NULL_IS_EMPTY] = []


def _both_forms(value: Any) -> Any:
    """The section is an object with `configs`, or the older plain list of them."""
    if value is None:
        return {}
    return {"configs": value} if isinstance(value, list) else value


def _without_empty_names(section: Any) -> Any:
    """The section without names that are empty, so that they get their defaults."""
    if not isinstance(section, dict):
        return {} if section is None else section
    return {key: value for key, value in section.items() if value != "" or not str(key).endswith("Name")}


class _Model(_Section):
    nvidia: Annotated[VgpuConfig, BeforeValidator(_without_empty_names)] = VgpuConfig()
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
        raise ConfigError(f"{source}: it has neither nvidia: nor vnpus:, so it is not a device config")
    try:
        model = _Model.model_validate(document)
    except ValidationError as error:
        mistakes = mistakes_in(error, "the device config")
        raise Mistakes(source, [*mistakes, "Volcano would fall back to its built-in defaults"]) from error
    return device_config(model.nvidia, _ascend(model.vnpus), lacks_vgpus=bool(document) and "nvidia" not in document)


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


# --- the whole config -----------------------------------------------------------------------------------------------


def device_config(vgpu: VgpuConfig, ascend: AscendConfig, *, lacks_vgpus: bool = False) -> DeviceConfig:
    """The whole device config of two sections."""
    roles = _roles(vgpu, ascend)
    unlabelled = {name: meaning for name, meaning in roles.items() if meaning[0] != Family.MINDCLUSTER}
    usual = [name for name, (family, _) in unlabelled.items() if not (lacks_vgpus and family == Family.VGPU)]
    return DeviceConfig(
        vgpu=vgpu,
        ascend=ascend,
        roles=MappingProxyType(roles),
        usual=names.NATIVE_RESOURCES.union(usual),
        resources=ResourceNames(frozenset({*roles, *RESOURCES}), _prefixes(roles)),
        node_annotations=frozenset(key for family in registry.FAMILIES for key in family.annotations(ascend)),
        pod_annotations=frozenset(
            key for family in registry.FAMILIES for key in (*family.assignments(ascend), family.node_annotation) if key
        ),
        _unlabelled=MappingProxyType(unlabelled),
        lacks_vgpus=lacks_vgpus,
    )


def _roles(vgpu: VgpuConfig, ascend: AscendConfig) -> dict[str, tuple[str, Role]]:
    """Every resource name. Of equal names, a configured one wins over a fixed one, an earlier family over a later one."""
    fixed = [family for family in registry.FAMILIES if not family.configured]
    configured = [family for family in reversed(registry.FAMILIES) if family.configured]
    return {name: (one.id, role) for one in (*fixed, *configured) for name, role in one.roles(vgpu, ascend).items()}


def _prefixes(roles: Iterable[str]) -> tuple[str, ...]:
    """The usual prefixes; for a name with another prefix, its domain and first word."""
    prefixes = set(names.RESOURCE_PREFIXES)
    for name in roles:
        if not name.startswith(names.RESOURCE_PREFIXES):
            first = _FIRST_WORD.match(name)
            prefixes.add(first[0] if first else name)
    return tuple(sorted(prefixes))


_FIRST_WORD = re.compile(r"[^/]+/[A-Za-z]+")
