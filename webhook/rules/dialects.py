"""What a pod asks for in the names of another system, and what says the same in this cluster's names.

A dialect is translated as a whole or not at all: a slice without one of its limits is another slice. A name that the device
config or a DeviceClass gives a meaning is of no dialect here.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from fractions import Fraction
from typing import Any, NamedTuple

from webhook import names
from webhook.devices.config import VgpuConfig
from webhook.devices.dialects import ANNOTATIONS, DIALECTS, PREFIXED, PREFIXES, Dialect, Place, Word, dialects_with
from webhook.devices.families import Family, Role
from webhook.devices.requests import MAX_MEMORY, MAX_QUANTITY, DevicePod
from webhook.pod import quantity
from webhook.pod.fields import FieldGroup, annotations, labels, variables
from webhook.pod.patch import REMOVE, Edit
from webhook.pod.view import Container, PodView
from webhook.rules import wording
from webhook.rules.choices import DialectUse
from webhook.rules.context import Context
from webhook.rules.misspelt_dialect import Misspelt, misspelt_names
from webhook.rules.reviewed_pod import ReviewedPod
from webhook.rules.vgpu_memory import PERCENTAGES
from webhook.texts import counted, visible

_NUMBER = re.compile(r"[0-9]{1,18}(\.[0-9]{0,18})?|\.[0-9]{1,18}", re.ASCII)  # in annotations and labels
_ALL_CORES = 100
_WHOLE = Fraction(100)
_UNKNOWN = "nothing that says the same is known; remove it, or write this cluster's names"
CONTRADICTED = "the container requests the same by this cluster's names, too; remove one of the two"
_ROLES = (Role.NUMBER, Role.MEMORY, Role.PERCENTAGE, Role.CORES)
_SIZES = (Role.MEMORY, Role.PERCENTAGE)


def _keys() -> Iterator[str]:
    """The keys of annotations and labels that are names of another system, or almost."""
    for dialect in DIALECTS.values():
        yield from [f"{prefix}*" for prefix in dialect.prefixes]
        yield dialect.chooser
        for word in dialect.words:
            if word.place in (Place.ANNOTATION, Place.CONTAINER_ANNOTATION, Place.LABEL):
                domain, slash, _ = word.name.rpartition("/")
                yield f"{domain}/*" if slash else f"{word.name.partition('{')[0]}*"


ANNOTATED = FieldGroup("the annotations of other systems", annotations(*filter(None, _keys())))
DIALECT = FieldGroup(
    "the resources, labels and schedulers of other systems",
    labels(*filter(None, _keys()))
    | variables(*(word.name for one in DIALECTS.values() for word in one.words if word.place is Place.VARIABLE))
    | {"containers[*].resources", "spec.schedulerName"},
)

Asked = dict[Word, Any]  # what a pod has under each name


class Step(NamedTuple):
    """One container, annotation, label or schedulerName of a pod, and what says the same here.

    Attributes:
        path: the field.
        words: the names that it is about.
        who: the container, with a colon; empty if it is about the whole pod.
        here: what to write instead; empty if nothing says the same.
        why: why nothing does, or what changes.
        edits: that translate it.
        percentage: what it becomes of the memory of so many cards, and their number; None if it becomes no percentage.
        blocks: whether it cannot be translated, and so the whole dialect is not.
        misspelt: the sentence about a name that is almost the dialect's; empty for its own names.
    """

    path: str
    words: tuple[str, ...]
    who: str = ""
    here: str = ""
    why: str = ""
    edits: tuple[Edit, ...] = ()
    percentage: tuple[int, int] | None = None
    blocks: bool = False
    misspelt: str = ""

    def advice(self, dialect: Dialect) -> str:
        """The sentence for an author whose pod is not translated."""
        if self.misspelt:
            return f"{self.misspelt} (until then, nothing of this pod is translated)"
        subject = f"{self.who}Volcano does not read {dialect.title}'s {self._shown}"
        if self.blocks:
            return f"{subject}, and it cannot be translated: {self.why}"
        if not self.here:
            return f"{subject}, and nothing says the same: {self.why}"
        return f"{subject}; write {self.here}{self._remark}"

    def report(self, dialect: Dialect) -> str:
        """The sentence for an author whose pod was translated."""
        subject = f"{self.who}{dialect.title}'s {self._shown}"
        if not self.here:
            return f"{subject} {'is removed' if self.edits else 'is left'}, as nothing says the same: {self.why}"
        return f"{subject} became {self.here}{self._remark}"

    @property
    def _shown(self) -> str:
        return ", ".join(map(visible, self.words))  # one may have the name of a container in it

    @property
    def _remark(self) -> str:
        return f" ({self.why})" if self.why else ""


class _Untranslatable(Exception):
    """Why an amount has no counterpart."""


def dialect_steps(pod: DevicePod, context: Context) -> list[tuple[Dialect, list[Step]]]:
    """The dialects that a pod uses, of those that are not off in its namespace, each with what says the same here."""
    if not _may_use_one(pod):
        return []
    uses = context.effective.dialects
    on = [one for one in dialects_with(_names(pod.view)) if uses.get(one.id, DialectUse.OFF) is not DialectUse.OFF]
    readers = [_Reader(pod, dialect, context) for dialect in on]
    shares = pod.requests_family(Family.VGPU) or any(reader.asks for reader in readers)
    found = [(dialect, reader.steps(shares=shares)) for dialect, reader in zip(on, readers, strict=True)]
    return [(dialect, steps) for dialect, steps in found if steps]


def dialect_names(pod: DevicePod, context: Context) -> set[str]:
    """The names of a pod about which there is a step."""
    return {word for _, steps in dialect_steps(pod, context) for step in steps for word in step.words}


def resolved_steps(pod: ReviewedPod, context: Context) -> list[tuple[Dialect, list[Step]]]:
    """The same for a pod of this cluster, where a percentage that no node resolves blocks: it would be refused."""
    found = dialect_steps(pod, context)
    if not found:
        return found
    share = sum([step.percentage is not None for _, steps in found for step in steps])
    uses = context.effective.dialects if context.cluster.fleet is None else {}
    return [
        (dialect, [_resolved(step, pod, share) for step in steps])
        if uses.get(dialect.id, DialectUse.TRANSLATE) is DialectUse.TRANSLATE
        else (dialect, steps)
        for dialect, steps in found
    ]


def _resolved(step: Step, pod: ReviewedPod, share: int) -> Step:
    if step.percentage is None or step.percentage[0] not in PERCENTAGES:
        return step
    percentage, number = step.percentage
    if not (why := pod.memory.unresolved(percentage, number, share)):
        return step
    config = pod.config.vgpu
    why = f"{config.percentage_name} would be {percentage}, {why}; write {config.number_name} and {config.memory_name}"
    return step._replace(why=why, blocks=True)


def translatable(found: list[tuple[Dialect, list[Step]]], context: Context) -> tuple[Dialect, list[Step]] | None:
    """The one dialect of a pod, if the policy translates it and every name of it can be translated."""
    if len(found) != 1 or any(step.blocks for step in found[0][1]):
        return None
    return found[0] if context.effective.dialects[found[0][0].id] is DialectUse.TRANSLATE else None


def contradicted(pod: DevicePod, context: Context) -> list[Container]:
    """The containers with the same amount in this cluster's names and in those of a dialect that the policy translates.

    A repair that removed the former would let the latter be translated when the webhook is called again.
    """
    if not (found := dialect_steps(pod, context)):
        return []
    uses = context.effective.dialects
    whose = {
        step.who
        for one, steps in found
        if uses[one.id] is DialectUse.TRANSLATE
        for step in steps
        if step.why == CONTRADICTED
    }
    return [each for each in pod.view.containers if f"{wording.container(each)}: " in whose]


def _names(view: PodView) -> set[str]:
    """The names of a pod that may be a dialect's."""
    found = {*view.annotations, *view.labels}
    for container in view.containers + view.init_containers:
        found.update(container.limits, container.requests)
    return found


def _may_use_one(pod: DevicePod) -> bool:
    """A fast test, False for almost every pod."""
    found = pod.view.annotations
    if found and not (ANNOTATIONS.isdisjoint(found) and not any(key.startswith(PREFIXES) for key in found)):
        return True
    return bool(pod.foreign)


class _Reader:
    """Reads one dialect in a pod."""

    def __init__(self, pod: DevicePod, dialect: Dialect, context: Context) -> None:
        self._pod, self._dialect, self._context = pod, dialect, context
        view = pod.view
        classes = context.cluster.collections.classes
        self._taken = {*pod.config.roles, *(classes.by_resource if classes is not None else ())}
        words = [word for word in dialect.words if word.place is not Place.RESOURCE or word.name not in self._taken]
        each = view.init_containers + view.containers
        noted = [word for container in each for word in _noted(words, container)] if dialect.id in PREFIXED else []
        self._annotations = _asked([*words, *noted], Place.ANNOTATION, view.annotations)
        self._labels = _asked(words, Place.LABEL, view.labels)
        self._of_pod = {word: raw for word, raw in (self._annotations | self._labels).items() if word.role is not None}
        self._sizes = any(word.role in _SIZES for word in self._of_pod)
        if dialect.id in PREFIXED and not (self._sizes or any(key.startswith(PREFIXES) for key in view.annotations)):
            words = [word for word in words if word.role is not None or word.sign]  # what contradicts a share only
        self._containers = {
            container: asked
            for container in each
            if (asked := _asked_by(container, words, view)) and any(quantity.whole(raw) != 0 for raw in asked.values())
        }
        # Whether the pod asks for cards in this dialect.
        self.asks = bool(self._sizes or self._containers) and self._is_certain()

    def steps(self, *, shares: bool) -> list[Step]:
        """What the pod says in this dialect; `shares` if it asks for cards, in whatever names."""
        if not self.asks and not (shares and any(map(_is_foreign, self._annotations))):
            return []
        near, unknown = self._misspelt()
        if near:
            return near
        sizes = self._sizes
        containers = self._containers
        if not containers and sizes and (chosen := self._chosen()):
            containers = {chosen: {}}
        found: list[Step] = []
        for number, (container, asked) in enumerate(containers.items()):
            why = self._unserved(container, second=number > 0)
            words = tuple(word.name for word in asked or self._of_pod)
            who = f"{wording.container(container)}: "
            found += (
                [Step(container.where, words, who, why=why, blocks=True)]
                if why
                else self._of_container(container, asked)
            )
        if not containers and sizes:
            found.append(
                self._blocked(
                    tuple(word.name for word in self._of_pod),
                    f"no container has the name in {self._dialect.chooser}; write the name of a container there",
                )
            )
        found += [
            self._annotation(word, raw)
            for word, raw in self._annotations.items()
            if _is_foreign(word) or (self.asks and word.role is None and not word.here)
        ]
        found += [
            Step(f"metadata.labels[{word.name}]", (f"label {word.name}",), why=word.note)
            for word in self._labels
            if word.role is None
        ]
        return [*found, *unknown, *self._scheduler()]

    def _unserved(self, container: Container, *, second: bool) -> str:
        """Why the device plugin gives a container no card, whatever its names, so that nothing says the same; else empty."""
        if container.kind == "initContainers":
            return "Volcano's device plugin serves regular containers only; request the card there"
        if second and self._context.cluster.target.one_container:
            return "Volcano's device plugin serves one container of a pod; make several pods"
        return ""

    def _misspelt(self) -> tuple[list[Step], list[Step]]:
        """The names that are almost the dialect's, beside which nothing else can be said, and those that nobody understands."""
        fleet = self._context.cluster.fleet
        served = self._taken if fleet is None else {*self._taken, *fleet.offered}
        found = list(misspelt_names(self._dialect, self._pod.view, served))
        words = tuple(word.name for word in self._dialect.words)
        near = [Step(one.path, (one.name, *words), blocks=True, misspelt=one.advice) for one in found if one.advice]
        return near, [_not_understood(one) for one in found if not one.advice]

    def _is_certain(self) -> bool:
        """Whether a name shows the dialect, the pod's scheduler does, or the policy says so."""
        scheduler, dialect = self._pod.view.scheduler, self._dialect
        words = {**self._annotations, **{word: 0 for asked in self._containers.values() for word in asked}}
        if scheduler in dialect.schedulers or any(word.sign for word in words):
            return True
        ours = scheduler in ("", names.DEFAULT_SCHEDULER, *self._context.cluster.policy.scheduler_names)
        return ours and self._context.effective.dialects[dialect.id] is DialectUse.TRANSLATE

    def _chosen(self) -> Container | None:
        """The container that the annotations are about."""
        view = self._pod.view
        name = view.annotation(self._dialect.chooser) if self._dialect.chooser else None
        if name is None:
            return next(iter(view.containers), None)
        return next((each for each in view.containers + view.init_containers if each.name == name), None)

    def _of_container(self, container: Container, asked: Asked) -> Iterator[Step]:
        who = f"{wording.container(container)}: "
        sizes = {word: raw for word, raw in asked.items() if word.role is not None}
        if sizes or self._of_pod:
            yield self._sized(container, who, sizes)
        for word in [word for word in asked if word.role is None]:
            edits = tuple(_removed(word, container))
            yield Step(_path(word, container), (word.name,), who, why=word.note, edits=edits, blocks=word.blocks)
        variables = {word.name: word for word in self._dialect.words if word.place is Place.VARIABLE}
        for index, variable in container.entries("env") if variables else ():
            if found := variables.get(str(variable.get("name"))):
                yield Step(f"{container.where}.env[{index}]", (f"variable {found.name}",), who, why=found.note)

    def _sized(self, container: Container, who: str, asked: Asked) -> Step:
        everything = asked | self._of_pod
        step = Step(
            _path(next(iter(asked)), container) if asked else container.where,
            tuple(word.name for word in everything),
            who,
        )
        try:
            amounts = self._amounts(container, everything)
        except _Untranslatable as reason:
            return step._replace(why=visible(str(reason)), blocks=True)
        edits = [edit for word in asked for edit in _removed(word, container)]
        keys = [word.name for word in self._annotations if word.role is not None]
        keys += [self._dialect.chooser] if self._dialect.chooser in self._pod.view.annotations else []
        edits += [Edit(("metadata", "annotations", key), REMOVE) for key in keys]
        called = self._pod.config.vgpu.role_names
        for role, amount in amounts.items():
            edits += wording.set_amount(container, called[role], amount)
        here = ", ".join(f"{called[role]}: {amount}" for role, amount in amounts.items())
        shared = (amounts[Role.PERCENTAGE], amounts.get(Role.NUMBER, 1)) if Role.PERCENTAGE in amounts else None
        remarks = [self._dialect.note, *(word.note for word in everything)]
        remarks += [_fraction_refused(word, raw) for word, raw in asked.items()]
        remarks.append(_more_than_a_node(amounts.get(Role.NUMBER, 1), self._context))
        why = "; ".join(filter(None, remarks))
        return step._replace(here=here, why=why, edits=tuple(edits), percentage=shared)

    def _amounts(self, container: Container, asked: Asked) -> dict[Role, int]:
        """The amounts of each of this cluster's names that say the same.

        A dialect's memory wins over its percentage, and all memory of a card without a word about cores is a card for oneself.
        """
        config = self._pod.config.vgpu
        own = {
            amount.role
            for amount in self._pod.amounts
            if amount.container is container and amount.family == Family.VGPU
        }
        given = {word.role: _exact(word, raw, self._dialect) for word, raw in asked.items() if word.role is not None}
        counted = self._counted
        if whole := counted in given and Role.NUMBER not in given and given[counted] >= _ALL_CORES:
            given = _whole_cards(given[counted], next(word for word in asked if word.role is counted))
        wanted: dict[Role, Fraction] = {} if Role.NUMBER in own else {Role.NUMBER: Fraction(1)}
        wanted |= {role: amount for role, amount in given.items() if amount or role in (Role.NUMBER, Role.CORES)}
        if own & wanted.keys() or (own.intersection(_SIZES) and wanted.keys() & {*_SIZES}):
            raise _Untranslatable(CONTRADICTED)
        if not whole:
            self._divide(wanted)
        if Role.MEMORY in wanted:
            wanted.pop(Role.PERCENTAGE, None)
            if wanted[Role.MEMORY] > MAX_MEMORY:
                raise _Untranslatable(_unit_meant(asked, self._dialect, config))
            wanted[Role.MEMORY] /= config.memory_factor
        if 0 < wanted.get(Role.NUMBER, 1) < 1:
            raise _Untranslatable(self._part_of_card(wanted))
        if not own and Role.MEMORY not in wanted:
            alone = Role.CORES not in given and Role.MEMORY not in given
            if alone and (wanted if Role.PERCENTAGE in wanted else given).get(Role.PERCENTAGE, _WHOLE) == _WHOLE:
                wanted[Role.CORES] = _WHOLE
            if Role.PERCENTAGE not in wanted and config.default_memory:
                wanted[Role.PERCENTAGE] = _WHOLE
        return {role: self._whole(role, wanted[role]) for role in _ROLES if role in wanted}

    @property
    def _counted(self) -> Role | None:
        """The amount of which 100 are a whole card, and more are several."""
        if self._dialect.cores_are_cards:
            return Role.CORES
        return Role.PERCENTAGE if Role.PERCENTAGE in self._dialect.sums else None

    def _divide(self, wanted: dict[Role, Fraction]) -> None:
        """Make the amounts of all cards together those of each."""
        config, cards = self._pod.config.vgpu, wanted.get(Role.NUMBER, Fraction(1))
        shared = self._dialect.sums & wanted.keys()
        for role in shared:
            wanted[role] /= cards or 1
        of_pod = any(word.role is Role.NUMBER for word in self._of_pod)
        if shared and of_pod and cards > 1 and len(self._containers) > 1:
            raise _Untranslatable(
                "it is not known how several containers share several cards; "
                f"write {config.number_name} and {config.memory_name} for each container"
            )

    def _part_of_card(self, wanted: dict[Role, Fraction]) -> str:
        """What to write for a part of a card, where a fraction is written as the number of cards."""
        share = wanted[Role.NUMBER] * 100
        size = {} if wanted.keys() & {*_SIZES} else {Role.PERCENTAGE: share}
        amounts = {Role.CORES: share} | size | wanted | {Role.NUMBER: Fraction(1)}
        called = self._pod.config.vgpu.role_names
        here = ", ".join(f"{called[role]}: {round(amounts[role])}" for role in _ROLES if role in amounts)
        return (
            f"cards are counted in whole numbers, and the API server refuses others; for a part of a card write {here}"
        )

    def _whole(self, role: Role, amount: Fraction) -> int:
        name, below = self._pod.config.vgpu.role_names[role], int(amount)
        if not 0 <= amount <= MAX_QUANTITY:
            raise _Untranslatable(f"{name} would be {below}; write a number from 1 to {MAX_QUANTITY}")
        if amount.denominator == 1:
            return below
        nearest = f"{below} or {below + 1}" if below else "1"
        raise _Untranslatable(f"{name} would be {float(amount):.6g}, which is no whole number; write {nearest}")

    def _annotation(self, word: Word, raw: Any) -> Step:
        path, what = wording.annotation_path(word.name), f"annotation {word.name}"
        remove = Edit(("metadata", "annotations", word.name), REMOVE)
        if not word.here:
            return Step(path, (what,), why=word.note, edits=() if word.blocks else (remove,), blocks=word.blocks)
        if word.values and raw not in word.values:
            allowed = " or ".join(word.values)
            return Step(path, (what,), why=f"{word.here} may only be {allowed}, not {wording.quoted(raw)}", blocks=True)
        if self._pod.view.annotations.get(word.here, raw) != raw:
            return Step(path, (what,), why=f"{word.here} has another value; remove one of the two", blocks=True)
        edits = (remove, Edit(("metadata", "annotations", word.here), raw))
        return Step(path, (what,), here=f"{word.here}: {wording.quoted(raw)}", edits=edits)

    def _scheduler(self) -> Iterator[Step]:
        """The dialect's scheduler; left for the rule foreign-scheduler where the repair of schedulers is off."""
        scheduler, settings = self._pod.view.scheduler, self._context.cluster.policy
        if scheduler not in self._dialect.schedulers or scheduler in settings.scheduler_names:
            return
        if "scheduler-name" not in self._context.effective.repairs_off:
            edit = Edit(("spec", "schedulerName"), settings.scheduler_name)
            here = f"schedulerName: {settings.scheduler_name}"
            yield Step("spec.schedulerName", (f"schedulerName {scheduler}",), here=here, edits=(edit,))

    def _blocked(self, words: tuple[str, ...], why: str) -> Step:
        return Step(wording.annotation_path(words[0]), words, why=why, blocks=True)


def _asked(words: Iterable[Word], place: Place, found: Mapping[str, Any]) -> Asked:
    """The words of a place that a pod has."""
    return {word: found[word.name] for word in words if word.place is place and word.name in found} if found else {}


def _asked_by(container: Container, words: Iterable[Word], view: PodView) -> Asked:
    """The words of one container that a pod has: resources, and annotations with its name in them."""
    named = [
        word._replace(name=word.name.format(container.name))
        for word in words
        if word.place is Place.CONTAINER_ANNOTATION and word.role is not None
    ]
    return {
        **_asked(words, Place.RESOURCE, {**container.requests, **container.limits}),
        **_asked(named, Place.CONTAINER_ANNOTATION, view.annotations),
    }


def _noted(words: Iterable[Word], container: Container) -> Iterator[Word]:
    """The annotations with the name of a container that are no amount, so that they are read like others."""
    for word in words:
        if word.place is Place.CONTAINER_ANNOTATION and word.role is None:
            yield word._replace(name=word.name.format(container.name), place=Place.ANNOTATION)


def _not_understood(found: Misspelt) -> Step:
    kind = "" if found.place is Place.RESOURCE else f"{found.place} "
    who = f"{found.who}: " if found.who else ""
    return Step(found.path, (f"{kind}{found.name}",), who, why=_UNKNOWN, blocks=True)


def _more_than_a_node(number: int, context: Context) -> str:
    """That no node has so many cards, where the nodes are known."""
    fleet = context.cluster.known_fleet
    if fleet is None or not fleet.vgpu.shapes or context.cluster.policy.fleet.autoscaled:
        return ""
    most = max(len(shape.devices) for shape in fleet.vgpu.shapes)
    return f"no node has more than {counted(most, 'card')}" if number > most else ""


def _fraction_refused(word: Word, raw: Any) -> str:
    """What is wrong with an amount that is no whole number, though it becomes one here; empty if nothing is."""
    if word.place is not Place.RESOURCE or Fraction(quantity.parse(raw)).denominator == 1:
        return ""
    return f"{word.name} {wording.quoted(raw)} is no whole number, which the API server refuses"


def _path(word: Word, container: Container) -> str:
    if word.place is Place.RESOURCE:
        return wording.resource_path(container, word.name)
    return wording.annotation_path(word.name)


def _removed(word: Word, container: Container) -> Iterable[Edit]:
    if word.place is Place.RESOURCE:
        return wording.remove_amount(container, word.name)
    return (Edit(("metadata", "annotations", word.name), REMOVE),)


def _whole_cards(cores: Fraction, word: Word) -> dict[Role, Fraction]:
    """What a container requests whose cores are whole cards, with all their memory."""
    cards = cores / _ALL_CORES
    if cards.denominator != 1:
        raise _Untranslatable(f"{word.name} is below {_ALL_CORES}, or a multiple of it")
    return {Role.NUMBER: cards, Role.CORES: Fraction(_ALL_CORES)}


def _is_foreign(word: Word) -> bool:
    """Whether it is an annotation without an amount that Volcano does not read."""
    return word.place is Place.ANNOTATION and word.role is None and word.here != word.name and word.sign


def _exact(word: Word, raw: Any, dialect: Dialect) -> Fraction:
    """What is written, in MiB, cards or per cent."""
    quantities = (Place.RESOURCE, Place.CONTAINER_ANNOTATION)
    written = word.place in quantities or (isinstance(raw, str) and _NUMBER.fullmatch(raw))
    try:
        amount = Fraction(quantity.parse(raw if written else None)) * word.unit
    except ValueError:
        number = f"a number of {_unit(word)}" if word.role is Role.MEMORY else "a number"
        raise _Untranslatable(f"{word.name} {wording.quoted(raw)} is no number; write {number}") from None
    if word.place not in quantities and not (amount > 0 and (word.role is not Role.PERCENTAGE or amount < 100)):
        between = "between 0 and 1" if word.role is Role.PERCENTAGE else "above 0"
        raise _Untranslatable(f"{word.name} is {wording.quoted(raw)}, but {dialect.title} takes only what is {between}")
    return amount


def _unit_meant(asked: Asked, dialect: Dialect, config: VgpuConfig) -> str:
    """Why the memory of a card is more than any card has, such as `8Gi` where 8192 is meant, or MiB where GiB are counted."""
    word, raw = next((word, raw) for word, raw in asked.items() if word.role is Role.MEMORY)
    amount = int(quantity.parse(raw))
    if word.note and amount <= MAX_MEMORY:
        here = f"{config.memory_name}: {amount // config.memory_factor}"
        return (
            f"{word.name} is {wording.quoted(raw)}, which no card has in {_unit(word)}; if it is in MiB, write {here}"
        )
    meant = int(amount // 2**20 // word.unit)
    advice = f"write {meant}" if 0 < meant * word.unit <= MAX_MEMORY else "write a smaller number"
    return f"{word.name} is {wording.quoted(raw)}, but {dialect.title} counts {_unit(word)}, not bytes; {advice}"


def _unit(word: Word) -> str:
    return {1: "MiB", 1024: "GiB"}.get(int(word.unit), f"{word.unit} MiB" if word.unit > 1 else "bytes")
