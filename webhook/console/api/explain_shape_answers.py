"""What nodes of one kind say to a pod, in words, as values and as a picture."""

from pydantic import PrivateAttr

from webhook.console.api.operation import Answer
from webhook.render.drawing import Drawing


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
