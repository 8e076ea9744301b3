"""What each kind of node says to the pods of a manifest."""

from collections.abc import Mapping

from pydantic import PrivateAttr

from webhook.console.api.operation import Answer
from webhook.console.api.review_answers import Unreadable
from webhook.report.drawing import Drawing


class Kind(Answer):
    """Equal devices of a node: memory, AI cores and slices of each, None where they are not counted; and how many there are."""

    type: str | None = None
    memory: int | None = None
    cores: int | None = None
    split: int | None = None
    count: int


class Selected(Answer):
    """The nodes that the pod's selector leaves: some of them, and how many there are."""

    names: tuple[str, ...]
    nodes: int


class ContainerSlices(Answer):
    """What one container gets; of these only what its family knows.

    Attributes:
        container: its name.
        cards: indexes of the cards on each of which it gets a slice.
        npus, memory, whole: so many NPUs, of each so much memory, in MiB; whole ones or parts.
        cores, chips, template: so many AI cores, so many whole chips, by which template.
    """

    container: str
    cards: tuple[int, ...] | None = None
    npus: int | None = None
    memory: int | None = None
    whole: bool | None = None
    cores: int | None = None
    chips: int | None = None
    template: str | None = None


class Slices(Answer):
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
    containers: tuple[ContainerSlices, ...] = ()


class Refusal(Answer):
    """What refuses first: the reason in a word, the card and the container that it is about, and a sentence."""

    reason: str
    card: int | None = None
    container: str | None = None
    message: str


class NearestChange(Answer):
    """What would help: at most so much of a resource in a container, or that a word is removed."""

    container: str | None = None
    resource: str | None = None
    most: int | None = None
    remove: str | None = None


class Sentence(Answer):
    """A sentence for people; one that says what would help begins with `→`."""

    mark: str
    text: str


class DrawnPart(Answer):
    """What one container gets of one card: memory and cores in the drawing's units, 0 if none is booked."""

    container: str
    memory: int
    cores: int
    label: str


class DrawnCard(Answer):
    """One card: what it has, 0 if that is not known; what is given of it; what it says against more.

    Attributes:
        name, kind: which one, and its model.
        memory, slots, cores: what it has, and into how many slices it may be cut.
        parts: what is given of it.
        hidden: how many parts are not told.
        refusal: why it took nothing; empty if it would.
    """

    name: str
    kind: str
    memory: int
    slots: int
    cores: int
    parts: tuple[DrawnPart, ...]
    hidden: int
    refusal: str


class DrawnNode(Answer):
    """A node as a picture shows it.

    Attributes:
        cards: those with something to see, at most 16.
        unit, core_unit: of memory and of cores.
        more: how many cards are not told.
        note: why nothing is placed, or why this is one possibility of several.
    """

    cards: tuple[DrawnCard, ...]
    unit: str
    core_unit: str
    more: int
    note: str


class ExplainedShape(Answer):
    """What nodes say that placement cannot tell apart.

    Attributes:
        names: some of them.
        nodes: how many there are.
        declared: they stand in the policy, and may not exist yet.
        selected: those of them that the pod's selector leaves; None if it has none.
        placement: fits, tight, never or unknown.
        devices: what each has, for people.
        mode, hami_core, cores: how they are shared, and the AI cores of a node, where the family knows that.
        cards, npus, chips: what each has, where the family has such, the first 64 kinds.
        slices: where the pod's devices lie; None unless it fits.
        refusal: what refuses; None unless something does.
        change: the nearest single change with which the pod fits; None if there is none, or none was found in time.
        sentences: the same for people.
        drawing: the same as a picture.
    """

    names: tuple[str, ...]
    nodes: int
    declared: bool
    selected: Selected | None
    placement: str
    devices: str
    mode: str | None = None
    hami_core: bool | None = None
    cores: int | None = None
    cards: tuple[Kind, ...] | None = None
    npus: tuple[Kind, ...] | None = None
    chips: tuple[Kind, ...] | None = None
    slices: Slices | None
    refusal: Refusal | None
    change: NearestChange | None
    sentences: tuple[Sentence, ...]
    drawing: DrawnNode

    _picture: Drawing | None = PrivateAttr(None)

    def drawn(self, picture: Drawing) -> "ExplainedShape":
        """Keep a picture for the page; it is no part of the JSON."""
        self._picture = picture
        return self

    @property
    def picture(self) -> Drawing | None:
        """The picture."""
        return self._picture


class Missing(Answer):
    """A node that the scheduler skips, and the resource name that it lacks."""

    node: str
    missing: str


class ExplainedFamily(Answer):
    """What the nodes of one family say to one pod.

    Attributes:
        pod: the field path of the pod in its object; empty for a pod itself.
        family: which.
        chip: of which NPUs, where the family has several kinds; else empty.
        placeable: False if the pod's quantities have to be put right first.
        shapes: what each kind of node says.
        more: how many kinds of nodes are not told.
        missing: what to say if the fleet has no such node; else empty.
        ignored: the fields of a selector that leaves no node; told as if they were not there.
        skipped: nodes that the scheduler skips, the first 50.
        more_skipped: how many of those are not told.
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
    """What nodes say to the pods of one document.

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
    """What nodes say to the pods of a manifest.

    Attributes:
        fleet: known, declared if nodes are known from the policy alone, or unknown: then nothing can be said.
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
        """What is said to one document; None if it is not told."""
        return next((each for each in self.documents if each.place == place), None)
