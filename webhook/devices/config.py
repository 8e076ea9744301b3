"""The cluster's own device config: names, defaults, MIG geometries, NPU chips.

Read as Volcano reads the ConfigMap `volcano-vgpu-device-config`: unknown keys are ignored, a wrong type refuses the whole.
Source: volcano `pkg/scheduler/api/devices/config/vgpu.go`, `vnpu.go`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Annotated, Any

from pydantic import AliasChoices, BaseModel, BeforeValidator, ConfigDict, Field, StrictBool, ValidationError
from pydantic.alias_generators import to_camel

from webhook import names
from webhook.devices.families import Family, Role
from webhook.devices.target import Target
from webhook.errors import ConfigError

Roles = Mapping[str, tuple[Family, Role]]


@dataclass(frozen=True, slots=True)
class Instance:
    """One kind of MIG instance of a geometry; memory in MiB."""

    name: str
    memory: int
    count: int


@dataclass(frozen=True, slots=True)
class Geometry:
    """One way to cut a card into MIG instances."""

    group: str
    instances: tuple[Instance, ...]


@dataclass(frozen=True, slots=True)
class MigModels:
    """The geometries of some card models, in the order in which the scheduler tries them."""

    models: tuple[str, ...]
    geometries: tuple[Geometry, ...]


@dataclass(frozen=True, slots=True)
class VgpuConfig:
    """The `nvidia:` section. Memory is in units of `memory_factor` MiB, as users write it."""

    number_name: str = names.VGPU_NUMBER
    memory_name: str = names.VGPU_MEMORY
    cores_name: str = names.VGPU_CORES
    percentage_name: str = names.VGPU_MEMORY_PERCENTAGE
    overwrite_env: bool = False
    default_number: int = 0
    default_memory: int = 0
    default_cores: int = 0
    memory_factor: int = 1
    mig_models: tuple[MigModels, ...] = ()

    @property
    def role_names(self) -> dict[Role, str]:
        """What each role is called in this cluster."""
        return {
            Role.NUMBER: self.number_name,
            Role.MEMORY: self.memory_name,
            Role.CORES: self.cores_name,
            Role.PERCENTAGE: self.percentage_name,
        }

    def geometries_of(self, card_type: str) -> tuple[Geometry, ...] | None:
        """The geometries of a card type: the first entry with a model that is a substring; None if there is none."""
        for entry in self.mig_models:
            if any(model in card_type for model in entry.models):
                return entry.geometries
        return None


@dataclass(frozen=True, slots=True)
class Chip:
    """One kind of Ascend NPU of the `vnpus:` section. Memory in MiB.

    Attributes:
        word: the common word, `Ascend910B3`: the NPU's type, and part of its annotations' names.
        number_name, memory_name, cores_name: its resources; the last is fixed by the scheduler, `<number_name>-core`.
        allocatable: what a whole NPU gives.
        capacity: the most that may be asked for.
        templates: the memory of the templates into which an NPU is cut, ascending.
    """

    word: str
    number_name: str
    memory_name: str
    cores_name: str
    allocatable: int
    capacity: int
    templates: tuple[int, ...]

    def booked(self, memory: int) -> int:
        """The memory that the scheduler books for a request: the smallest template that has it, else the whole NPU.

        Above the capacity it books nothing, and the NPU is cut by the smallest template.
        Source: volcano `pkg/scheduler/api/devices/ascend/hami/device_info.go` (trimMemory).
        """
        for template in self.templates:
            if memory <= template:
                return template
        return self.allocatable if memory <= self.capacity else 0


@dataclass(frozen=True, slots=True)
class AscendConfig:
    """The `vnpus:` section.

    Attributes:
        chips: every kind of NPU.
        hami_core: nodes share NPUs in software unless their annotation says otherwise.
        chip_of: resource name to its chip.
    """

    chips: tuple[Chip, ...] = ()
    hami_core: bool = False
    chip_of: Mapping[str, Chip] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class DeviceConfig:
    """The whole device config.

    Attributes:
        vgpu: the `nvidia:` section.
        ascend: the `vnpus:` section.
        roles: every resource name of every family, with its family and role.
        resources: all names that some rule reads: those of the families, and NVIDIA's own.
        node_annotations: those of a node that register devices.
    """

    vgpu: VgpuConfig
    ascend: AscendConfig
    roles: Roles
    resources: frozenset[str]
    node_annotations: frozenset[str]
    _unlabelled: Roles

    def roles_for(self, labels: Mapping[str, Any]) -> Roles:
        """The names that mean something on a pod with such labels: MindCluster serves labelled pods only."""
        served = labels.get(names.RING_CONTROLLER) == names.RING_CONTROLLER_310P
        return self.roles if served else self._unlabelled


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
        raise ConfigError(
            f"{source}: a device config is a mapping with the key nvidia:; this is {type(document).__name__}"
        )
    if document and not document.keys() & {"nvidia", "vnpus"}:
        raise ConfigError(f"{source}: neither nvidia: nor vnpus: stands in it, so it is no device config")
    try:
        model = _Model.model_validate(document)
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(str(part) for part in first["loc"])
        raise ConfigError(
            f"{source}: {place}: {first['msg']}; Volcano would fall back to its built-in defaults"
        ) from error
    return _device_config(_vgpu(model.nvidia), _ascend(model.vnpus))


def _device_config(vgpu: VgpuConfig, ascend: AscendConfig) -> DeviceConfig:
    roles = _roles(vgpu, ascend)
    unlabelled = {name: meaning for name, meaning in roles.items() if meaning[0] is not Family.MINDCLUSTER}
    registers = [names.NODE_ASCEND_REGISTER_PREFIX + chip.word for chip in ascend.chips]
    return DeviceConfig(
        vgpu=vgpu,
        ascend=ascend,
        roles=MappingProxyType(roles),
        resources=frozenset({*roles, names.NVIDIA_GPU}),
        node_annotations=frozenset(
            {names.NODE_VGPU_REGISTER, names.GPU_UNHEALTHY_IDS, names.NODE_VNPU_HAMI_CORE, *registers}
        ),
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
    return _device_config(vgpu, config.ascend)


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


def _roles(vgpu: VgpuConfig, ascend: AscendConfig) -> dict[str, tuple[Family, Role]]:
    roles: dict[str, tuple[Family, Role]] = {
        names.GPUSHARE_NUMBER: (Family.GPUSHARE, Role.NUMBER),
        names.GPUSHARE_MEMORY: (Family.GPUSHARE, Role.MEMORY),
        names.NPU_CORE: (Family.MINDCLUSTER, Role.CORES),
    }
    for chip in ascend.chips:
        roles[chip.number_name] = (Family.ASCEND, Role.NUMBER)
        roles[chip.cores_name] = (Family.ASCEND, Role.CORES)
        if chip.memory_name:
            roles[chip.memory_name] = (Family.ASCEND, Role.MEMORY)
    roles[vgpu.percentage_name] = (Family.VGPU, Role.PERCENTAGE)
    roles[vgpu.cores_name] = (Family.VGPU, Role.CORES)
    roles[vgpu.memory_name] = (Family.VGPU, Role.MEMORY)
    roles[vgpu.number_name] = (Family.VGPU, Role.NUMBER)
    return roles
