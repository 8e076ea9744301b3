"""What a pod asks for in the names of another system, and what says the same in this cluster's names.

A dialect is translated as a whole or not at all: a slice without one of its limits is another slice. A name that the device
config or a DeviceClass gives a meaning is of no dialect here.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from webhook import names
from webhook.devices import wording
from webhook.devices.dialects import (
    ANNOTATIONS,
    DIALECTS,
    PREFIXED,
    PREFIXES,
    Dialect,
    Place,
    Word,
    dialects_with,
    vendor_of,
)
from webhook.devices.families import Family, Role
from webhook.devices.requests import DevicePod
from webhook.pod import quantity
from webhook.pod.fields import FieldGroup, annotations, labels, variables
from webhook.pod.patch import REMOVE, Edit
from webhook.pod.view import Container, PodView, remove_amount, set_amount
from webhook.rules.choices import DialectUse
from webhook.rules.context import Context
from webhook.rules.dialect_amounts import CONTRADICTED, SIZES, Asked, DialectAmounts, Untranslatable, fraction_refused
from webhook.rules.misspelt_dialect import Misspelt, misspelt_names
from webhook.rules.reviewed_pod import ReviewedPod
from webhook.rules.vgpu_memory import PERCENTAGES
from webhook.texts import counted, visible

_UNKNOWN = "nothing that says the same is known; remove it, or write this cluster's names"


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


class Step(NamedTuple):
    """One container, annotation, label or schedulerName of a pod, and what says the same here.

    Attributes:
        path: the field.
        words: the names that it is about.
        who: the container, with a colon; empty if it is about the whole pod.
        here: what to write instead; empty if nothing says the same.
        why: why nothing does, or what changes.
        edits: that translate it.
        percentage: if it becomes a percentage of the memory of cards, that percentage and the number of cards; else None.
        blocks: whether it cannot be translated; then nothing of its dialect is.
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


DialectSteps = list[tuple[Dialect, list[Step]]]


def dialect_steps(pod: DevicePod, context: Context) -> DialectSteps:
    """The dialects that a pod uses, of those that are not off in its namespace, each with what says the same here."""
    if not _may_use_one(pod):
        return []
    uses = context.effective.dialects
    on = [one for one in dialects_with(_names(pod.view)) if uses.get(one.id, DialectUse.OFF) is not DialectUse.OFF]
    readers = [_Reader(pod, dialect, context) for dialect in on]
    shares = pod.requests_family(Family.VGPU) or any(reader.asks for reader in readers)
    read = [(dialect, reader.steps(shares=shares)) for dialect, reader in zip(on, readers, strict=True)]
    return [(dialect, steps) for dialect, steps in read if steps]


def dialect_names(pod: DevicePod, context: Context) -> set[str]:
    """The names of a pod about which there is a step."""
    return {word for _, steps in dialect_steps(pod, context) for step in steps for word in step.words}


def resolved_steps(pod: ReviewedPod, context: Context) -> DialectSteps:
    """The same, where a percentage that cannot become memory blocks the translation: a rule would refuse the result."""
    if not (unresolved := dialect_steps(pod, context)):
        return []
    share = sum([step.percentage is not None for _, steps in unresolved for step in steps])
    uses = context.effective.dialects if context.cluster.fleet is None else {}
    return [
        (dialect, [_resolved(step, pod, share) for step in steps])
        if uses.get(dialect.id, DialectUse.TRANSLATE) is DialectUse.TRANSLATE
        else (dialect, steps)
        for dialect, steps in unresolved
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


def translatable(used: DialectSteps, context: Context) -> tuple[Dialect, list[Step]] | None:
    """The one dialect of a pod, if the policy translates it and every name of it can be translated."""
    if len(used) != 1 or any(step.blocks for step in used[0][1]):
        return None
    return used[0] if context.effective.dialects[used[0][0].id] is DialectUse.TRANSLATE else None


def contradicted(pod: DevicePod, context: Context) -> list[Container]:
    """The containers with the same amount in this cluster's names and in those of a dialect that the policy translates.

    A repair that removed the former would let the latter be translated when the webhook is called again.
    """
    if not (used := dialect_steps(pod, context)):
        return []
    uses = context.effective.dialects
    translated = [step for dialect, steps in used if uses[dialect.id] is DialectUse.TRANSLATE for step in steps]
    whose = {step.who for step in translated if step.why == CONTRADICTED}
    return [each for each in pod.view.containers if f"{wording.container(each)}: " in whose]


def _names(view: PodView) -> set[str]:
    """The names of a pod that may be a dialect's."""
    containers = view.containers + view.init_containers
    return {*view.annotations, *view.labels}.union(*[{*each.limits, *each.requests} for each in containers])


def _may_use_one(pod: DevicePod) -> bool:
    """A fast test, False for almost every pod."""
    notes = pod.view.annotations
    if notes and not (ANNOTATIONS.isdisjoint(notes) and not any(key.startswith(PREFIXES) for key in notes)):
        return True
    return bool(pod.foreign)


class _Reader:
    """Reads one dialect in a pod."""

    def __init__(self, pod: DevicePod, dialect: Dialect, context: Context) -> None:
        self._pod, self._dialect, self._context = pod, dialect, context
        view = pod.view
        self._taken = {*pod.config.roles, *context.cluster.collections.served}
        words = [word for word in dialect.words if word.place is not Place.RESOURCE or word.name not in self._taken]
        each = view.init_containers + view.containers
        noted = [word for container in each for word in _noted(words, container)] if dialect.id in PREFIXED else []
        self._annotations = _asked([*words, *noted], Place.ANNOTATION, view.annotations)
        self._labels = _asked(words, Place.LABEL, view.labels)
        self._of_pod = {word: raw for word, raw in (self._annotations | self._labels).items() if word.role is not None}
        self._sizes = any(word.role in SIZES for word in self._of_pod)
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
        """The steps of the pod in this dialect; `shares`: it requests vGPUs, under whatever names."""
        if not self.asks and not (shares and any(map(_is_foreign, self._annotations))):
            return []
        near, unknown = self._misspelt()
        return near or [*self._of_containers(), *self._of_names(), *unknown, *self._scheduler()]

    def _of_containers(self) -> Iterator[Step]:
        containers = self._containers
        if not containers and self._sizes:
            if (chosen := self._chosen()) is None:
                words = tuple(word.name for word in self._of_pod)
                why = f"no container has the name in {self._dialect.chooser}; write the name of a container there"
                yield Step(wording.annotation_path(words[0]), words, why=why, blocks=True)
                return
            containers = {chosen: {}}
        for number, (container, asked) in enumerate(containers.items()):
            if why := self._unserved(container, second=number > 0):
                words, who = tuple(word.name for word in asked or self._of_pod), f"{wording.container(container)}: "
                yield Step(container.where, words, who, why=why, blocks=True)
            else:
                yield from self._of_container(container, asked)

    def _of_names(self) -> Iterator[Step]:
        """The annotations and labels that are no amounts."""
        for word, raw in self._annotations.items():
            if _is_foreign(word) or (self.asks and word.role is None and not word.here):
                yield self._annotation(word, raw)
        for word in self._labels:
            if word.role is None:
                yield Step(f"metadata.labels[{word.name}]", (f"label {word.name}",), why=word.note)

    def _unserved(self, container: Container, *, second: bool) -> str:
        """Why the device plugin gives a container no card, under whatever names; else empty."""
        if container.kind == "initContainers":
            return "Volcano's device plugin serves regular containers only; request the card there"
        if second and self._context.cluster.target.one_container:
            return "Volcano's device plugin serves one container of a pod; make several pods"
        requested = {**container.requests, **container.limits}
        vendors = [vendor_of(name) for name in requested if quantity.whole(requested[name]) != 0]
        cards = "the container requests cards of {}, which Volcano does not share; leave the pod to that system"
        return next((cards.format(vendor) for vendor in vendors if vendor), "")

    def _misspelt(self) -> tuple[list[Step], list[Step]]:
        """The steps for misspelt names, which replace all others, and those for names that are not understood."""
        fleet = self._context.cluster.fleet
        served = self._taken if fleet is None else {*self._taken, *fleet.offered}
        misspelt = list(misspelt_names(self._dialect, self._pod.view, served))
        words = tuple(word.name for word in self._dialect.words)
        near = [Step(one.path, (one.name, *words), blocks=True, misspelt=one.advice) for one in misspelt if one.advice]
        return near, [_not_understood(one) for one in misspelt if not one.advice]

    def _is_certain(self) -> bool:
        """Whether a name shows the dialect, the pod's scheduler does, or the policy says so."""
        scheduler, dialect = self._pod.view.scheduler, self._dialect
        words = {**self._annotations, **{word: 0 for asked in self._containers.values() for word in asked}}
        below = (
            name.startswith(dialect.prefixes) for each in self._containers for name in {**each.limits, **each.requests}
        )
        if scheduler in dialect.schedulers or any(word.sign for word in words) or any(below):
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
            if known := variables.get(str(variable.get("name"))):
                yield Step(f"{container.where}.env[{index}]", (f"variable {known.name}",), who, why=known.note)

    def _sized(self, container: Container, who: str, asked: Asked) -> Step:
        everything = asked | self._of_pod
        path = _path(next(iter(asked)), container) if asked else container.where
        step = Step(path, tuple(word.name for word in everything), who)
        own = [each.role for each in self._pod.amounts if each.container is container and each.family == Family.VGPU]
        translate = DialectAmounts(self._dialect, self._pod.config.vgpu).translated
        try:
            amounts = translate(everything, own, several=len(self._containers) > 1)
        except Untranslatable as reason:
            return step._replace(why=visible(str(reason)), blocks=True)
        edits = [edit for word in asked for edit in _removed(word, container)]
        keys = [word.name for word in self._annotations if word.role is not None]
        keys += [self._dialect.chooser] if self._dialect.chooser in self._pod.view.annotations else []
        edits += [Edit(("metadata", "annotations", key), REMOVE) for key in keys]
        called = self._pod.config.vgpu.role_names
        for role, amount in amounts.items():
            edits += set_amount(container, called[role], amount)
        here = ", ".join(f"{called[role]}: {amount}" for role, amount in amounts.items())
        shared = (amounts[Role.PERCENTAGE], amounts.get(Role.NUMBER, 1)) if Role.PERCENTAGE in amounts else None
        remarks = [self._dialect.note, *(word.note for word in everything)]
        remarks += [fraction_refused(word, raw) for word, raw in asked.items()]
        remarks.append(_more_than_a_node(amounts.get(Role.NUMBER, 1), self._context))
        why = "; ".join(filter(None, remarks))
        return step._replace(here=here, why=why, edits=tuple(edits), percentage=shared)

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


def _asked(words: Iterable[Word], place: Place, there: Mapping[str, Any]) -> Asked:
    """The words of a place that a pod has."""
    return {word: there[word.name] for word in words if word.place is place and word.name in there} if there else {}


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


def _not_understood(name: Misspelt) -> Step:
    kind = "" if name.place is Place.RESOURCE else f"{name.place} "
    who = f"{name.who}: " if name.who else ""
    return Step(name.path, (f"{kind}{name.name}",), who, why=_UNKNOWN, blocks=True)


def _more_than_a_node(number: int, context: Context) -> str:
    """That no node has so many cards, where the nodes are known."""
    fleet = context.cluster.known_fleet
    if fleet is None or not fleet.vgpu.shapes or context.cluster.policy.fleet.autoscaled:
        return ""
    most = max(len(shape.devices) for shape in fleet.vgpu.shapes)
    return f"no node has more than {counted(most, 'card')}" if number > most else ""


def _path(word: Word, container: Container) -> str:
    if word.place is Place.RESOURCE:
        return wording.resource_path(container, word.name)
    return wording.annotation_path(word.name)


def _removed(word: Word, container: Container) -> Iterable[Edit]:
    if word.place is Place.RESOURCE:
        return remove_amount(container, word.name)
    return (Edit(("metadata", "annotations", word.name), REMOVE),)


def _is_foreign(word: Word) -> bool:
    """Whether it is an annotation without an amount that Volcano does not read."""
    return word.place is Place.ANNOTATION and word.role is None and word.here != word.name and word.sign
