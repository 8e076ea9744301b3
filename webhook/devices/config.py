"""The cluster's own device config as values: names, defaults, MIG geometries, NPU chips.

The annotations of a field define how it is read from the file.

Source: volcano `pkg/scheduler/api/devices/config/vgpu.go`, `vnpu.go`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, Field, StrictBool

from webhook import names
from webhook.devices.families import Role

Roles = Mapping[str, tuple[str, Role]]  # resource name -> family id and role

MAX_NAME = 317  # characters of a resource name that the API server accepts: a domain of 253, a slash, a name of 63


Count = Annotated[int, Field(strict=True, ge=0, le=2**31 - 1)]  # quoted digits and booleans are no numbers to Go
Factor = Annotated[Count, AfterValidator(lambda factor: max(factor, 1))]  # the scheduler ignores factors below 1
NULL_IS_EMPTY = BeforeValidator(lambda value: [] if value is None else value)


@dataclass(frozen=True, slots=True)
class Instance:
    """One kind of MIG instance of a geometry; memory in MiB."""

    name: str = ""
    memory: Count = 0
    count: Count = 0


@dataclass(frozen=True, slots=True)
class Geometry:
    """One way to cut a card into MIG instances."""

    group: str = ""
    instances: Annotated[tuple[Instance, ...], NULL_IS_EMPTY, Field(validation_alias="geometries")] = ()


@dataclass(frozen=True, slots=True)
class MigModels:
    """The geometries of some card models, in the order in which the scheduler tries them."""

    models: Annotated[tuple[str, ...], NULL_IS_EMPTY] = ()
    geometries: Annotated[tuple[Geometry, ...], NULL_IS_EMPTY, Field(validation_alias="allowedGeometries")] = ()


@dataclass(frozen=True, slots=True)
class VgpuConfig:
    """The `nvidia:` section. Memory is in units of `memory_factor` MiB, as users write it."""

    number_name: Annotated[str, Field(validation_alias="resourceCountName")] = names.VGPU_NUMBER
    memory_name: Annotated[str, Field(validation_alias="resourceMemoryName")] = names.VGPU_MEMORY
    cores_name: Annotated[str, Field(validation_alias="resourceCoreName")] = names.VGPU_CORES
    percentage_name: Annotated[str, Field(validation_alias="resourceMemoryPercentageName")] = (
        names.VGPU_MEMORY_PERCENTAGE
    )
    overwrite_env: Annotated[StrictBool, Field(validation_alias="overwriteEnv")] = False
    default_number: Annotated[Count, Field(validation_alias="defaultGPUNum")] = 0
    default_memory: Annotated[Count, Field(validation_alias="defaultMemory")] = 0
    default_cores: Annotated[Count, Field(validation_alias="defaultCores")] = 0
    memory_factor: Annotated[Factor, Field(validation_alias="gpuMemoryFactor")] = 1
    mig_models: Annotated[tuple[MigModels, ...], NULL_IS_EMPTY, Field(validation_alias="knownMigGeometries")] = ()

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
        """The geometries of a card type: the first entry with a model that is a substring; None if no model matches."""
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
        capacity: the most that may be requested.
        templates: the memory of the templates into which an NPU is cut, ascending.
    """

    word: str
    number_name: str
    memory_name: str
    cores_name: str
    allocatable: int
    capacity: int
    templates: tuple[int, ...]

    def accounted(self, memory: int) -> int:
        """The memory that the scheduler counts for a request: the smallest template that has it, else the whole NPU.

        Above the capacity it counts nothing, and the NPU is cut by the smallest template.
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
        hami_core: nodes share NPUs in software unless their annotation has another mode.
        chip_of: resource name to its chip.
    """

    chips: tuple[Chip, ...] = ()
    hami_core: bool = False
    chip_of: Mapping[str, Chip] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ResourceNames:
    """The resource names that some rule reads: a container for `in`.

    Attributes:
        exact: names, whatever they begin with.
        prefixes: what the names of the families begin with.
    """

    exact: frozenset[str]
    prefixes: tuple[str, ...]

    def __contains__(self, name: object) -> bool:
        """Whether a rule reads the resource of this name."""
        return name in self.exact or (isinstance(name, str) and self.looks_like_family(name))

    def pick(self, amounts: Mapping[str, Any]) -> Mapping[str, Any]:
        """The amounts of the resources that a rule reads: all but Kubernetes' own, whose names have no domain."""
        if self.exact.issuperset(amounts):
            return amounts
        return {name: raw for name, raw in amounts.items() if name in self.exact or not {"/", "."}.isdisjoint(name)}

    def looks_like_family(self, name: str) -> bool:
        """Whether a name begins like those of a family, though it may be misspelt."""
        return name.startswith(self.prefixes) and len(name) <= MAX_NAME

    def looks_like_device(self, name: str) -> bool:
        """Whether a name begins like those of a family, or of another device plugin for GPUs and NPUs."""
        return name.startswith((*self.prefixes, *names.OTHER_DEVICES)) and len(name) <= MAX_NAME


@dataclass(frozen=True, slots=True)
class DeviceConfig:
    """The whole device config.

    Attributes:
        vgpu: the `nvidia:` section.
        ascend: the `vnpus:` section.
        roles: every resource name of every family, with its family and role.
        usual: the names that mean something on every pod, and Kubernetes' own.
        resources: the names that some rule reads: those of the families, what resembles them, and those of other systems.
        node_annotations: those of a node that register devices.
        pod_annotations: those of a pod in which the scheduler records its devices and its node.
        lacks_vgpus: it has the other section, but not `nvidia:`, so Volcano reads every name of vGPUs as empty.
    """

    vgpu: VgpuConfig
    ascend: AscendConfig
    roles: Roles
    usual: frozenset[str]
    resources: ResourceNames
    node_annotations: frozenset[str]
    pod_annotations: frozenset[str]
    _unlabelled: Roles
    lacks_vgpus: bool = False

    def roles_for(self, labels: Mapping[str, Any]) -> Roles:
        """The names that mean something on a pod with such labels: MindCluster serves labelled pods only."""
        served = labels.get(names.RING_CONTROLLER) == names.RING_CONTROLLER_310P
        return self.roles if served else self._unlabelled
