"""The JSON of an explanation: for each pod and family, every shape of nodes with every field of every family.

A field that a family does not have is null. The models of a shape read the explanation's own values, attribute by attribute;
what they add are bounds.
"""

from collections.abc import Iterable, Mapping
from itertools import islice
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, ConfigDict

from webhook.console.api.operation import Answer
from webhook.console.api.review_answers import Unreadable
from webhook.devices.drawing import DrawnNode
from webhook.devices.explanation import Selected, Sentence
from webhook.texts import shorten

MAX_CONTAINERS = 100  # whose slices are listed
MAX_SENTENCES = 20
MAX_KINDS = 64
MAX_NAME = 253
MAX_SENTENCE = 1000  # characters: a model of cards is as long as whoever registers them likes


def _some_sentences(sentences: Iterable[Sentence]) -> list[Sentence]:
    found = list(sentences)
    some = [Sentence(each.mark, shorten(each.text, MAX_SENTENCE)) for each in found[:MAX_SENTENCES]]
    more = len(found) - MAX_SENTENCES
    return [*some, Sentence("", f"and {more} more sentences")] if more > 0 else some


def _some_kinds(kinds: Iterable[Any] | None) -> list[Any] | None:
    return None if kinds is None else list(islice(kinds, MAX_KINDS))


Name = Annotated[str, AfterValidator(lambda name: shorten(name, MAX_NAME))]
Text = Annotated[str, AfterValidator(lambda text: shorten(text, MAX_SENTENCE))]


class FromValue(Answer):
    """A part of the answer that is read from a value's attributes; null or the default where it has none."""

    model_config = ConfigDict(from_attributes=True, json_schema_serialization_defaults_required=True)


class Kind(FromValue):
    """Equal devices of a node: memory, AI cores and slices of each, None where they are not counted; and how many there are."""

    type: Text | None = None
    memory: int | None = None
    cores: int | None = None
    split: int | None = None
    count: int


class ContainerSlices(FromValue):
    """What one container gets; of these only what its family has.

    Attributes:
        container: its name.
        cards: indexes of the cards on each of which it gets a slice.
        npus, memory, whole: so many NPUs, of each so much memory, in MiB; whole ones or parts.
        cores, chips, template: so many AI cores, so many whole chips, by which template.
    """

    container: Name
    cards: tuple[int, ...] | None = None
    npus: int | None = None
    memory: int | None = None
    whole: bool | None = None
    cores: int | None = None
    chips: int | None = None
    template: str | None = None


class Slices(FromValue):
    """Where the pod's devices lie.

    Attributes:
        policy: the SchedulePolicy with which the walk finds them.
        mode: how NPUs are shared.
        cards, memory: so many gpushare cards, or so much of one.
        containers: what each gets, the first 100.
    """

    policy: str | None = None
    mode: str | None = None
    cards: int | None = None
    memory: int | None = None
    containers: Annotated[
        tuple[ContainerSlices, ...], BeforeValidator(lambda found: tuple(found[:MAX_CONTAINERS]))
    ] = ()


class Refusal(FromValue):
    """What refuses first: the reason in a word, the card and the container that it is about, and a sentence."""

    reason: Text
    card: int | None = None
    container: Text | None = None
    message: Text


class NearestChange(FromValue):
    """What would help: at most so much of a resource in a container, or that a word is removed."""

    container: Text | None = None
    resource: Text | None = None
    most: int | None = None
    remove: Text | None = None


Kinds = Annotated[tuple[Kind, ...] | None, BeforeValidator(_some_kinds)]


class ExplainedShape(FromValue):
    """Nodes that placement cannot tell apart: where a pod's devices lie, or what refuses.

    Attributes:
        names: some of them.
        nodes: how many there are.
        declared: they stand in the policy, and may not exist yet.
        selected: those of them that the pod's selector leaves; None if it has none.
        placement: fits, tight, never or unknown.
        devices: what each has, for people.
        mode, hami_core, cores: how they are shared, and the AI cores of a node, where the family has that.
        cards, npus, chips: what each has, where the family has such, the first 64 kinds.
        slices: where the pod's devices lie; None unless it fits.
        refusal: what refuses; None unless something does.
        change: the nearest single change with which the pod fits; None if there is none, or none was found in time.
        sentences: the same for people; one that says what would help begins with `→`.
        drawing: the same as a picture.
    """

    names: tuple[Name, ...]
    nodes: int
    declared: bool
    selected: Selected | None
    placement: str
    devices: Text
    mode: str | None = None
    hami_core: bool | None = None
    cores: int | None = None
    cards: Kinds = None
    npus: Kinds = None
    chips: Kinds = None
    slices: Slices | None
    refusal: Refusal | None
    change: NearestChange | None
    sentences: Annotated[tuple[Sentence, ...], BeforeValidator(_some_sentences)]
    drawing: DrawnNode


class Missing(Answer):
    """A node that the scheduler skips, and the resource name that it lacks."""

    node: str
    missing: str


class ExplainedFamily(Answer):
    """Which nodes of one family take one pod.

    Attributes:
        pod: the field path of the pod in its object; empty for a pod itself.
        family: which.
        chip: of which NPUs, where the family has several kinds; else empty.
        placeable: False if the pod's quantities have to be put right first.
        shapes: each kind of node.
        more: how many kinds of nodes are left out.
        missing: what to say if the fleet has no such node; else empty.
        ignored: the fields of a selector that leaves no node, and is left aside.
        skipped: nodes that the scheduler skips, the first 50.
        more_skipped: how many of those are left out.
    """

    pod: str
    family: str
    chip: str
    placeable: bool
    shapes: tuple[ExplainedShape, ...]
    more: int
    missing: str
    ignored: str
    skipped: tuple[Missing, ...]
    more_skipped: int


class ExplainedDocument(Answer):
    """Which nodes take the pods of one document.

    Attributes:
        place: which it is.
        kind, namespace, name: of its object.
        families: by pod and by family.
        more_pods: how many pods of it are not explained.
    """

    place: str
    kind: str
    namespace: str
    name: str
    families: tuple[ExplainedFamily, ...]
    more_pods: int


class Explained(Answer):
    """Which nodes take the pods of a manifest.

    Attributes:
        fleet: known, declared if nodes are known from the policy alone, or unknown: then nothing is explained.
        documents: the first 10.
        more_documents: how many are not explained.
        problems: documents that cannot be reviewed.
        digests: of device config, policy and fleet, as in decisions.
    """

    fleet: str
    documents: tuple[ExplainedDocument, ...]
    more_documents: int
    problems: tuple[Unreadable, ...]
    digests: Mapping[str, str]

    def of(self, place: str) -> ExplainedDocument | None:
        """The explanation of one document; None if it is left out."""
        return next((each for each in self.documents if each.place == place), None)
