"""Words and JSON that several families share."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from webhook.devices.explanation import Explanation
from webhook.devices.families import Role
from webhook.devices.nearest import Change
from webhook.devices.selectors import NodeSelector
from webhook.devices.shapes import Shape
from webhook.render.drawing import MAX_NOTE, Drawing
from webhook.render.families.told import Sentence, Told
from webhook.render.terminal import Piece, Style
from webhook.rules import wording
from webhook.texts import shorten

PLAIN: Piece = (Style.PLAIN, "")

Kind = TypeVar("Kind", bound=Shape)
Given = TypeVar("Given")


@dataclass(frozen=True, slots=True)
class Spoken:
    """What a family says of one shape, beside what follows from the explanation alone.

    Attributes:
        devices: what the nodes have, for people.
        facts: the same as JSON.
        draw: a drawing of it, with a note and what the pod gets, if it fits.
        names: what the roles are called.
        given: what the pod gets, if it fits.
        slices: the same as JSON.
        refusal: what refuses, if something does.
        several: several containers ask, so that a change has to name its own.
        exact: a smaller value than that of a change need not do.
    """

    devices: str
    facts: Mapping[str, Any]
    draw: Callable[[str], Drawing]
    names: Mapping[Role, str]
    given: Iterable[str] = ()
    slices: Mapping[str, Any] | None = None
    refusal: str = ""
    several: bool = False
    exact: bool = False


def tell(answer: Explanation[Kind, Given], spoken: Spoken) -> Told:
    """Put what one shape says into words."""
    shape, devices, facts, change = answer.shape, spoken.devices, spoken.facts, answer.change
    if answer.given is not None:
        sentences = tuple((PLAIN, sentence) for sentence in spoken.given)
        return Told(shape, "fits", devices, sentences, facts, spoken.draw(""), slices=spoken.slices)
    if answer.refusal is None:
        return Told(shape, "unknown", devices, ((PLAIN, answer.unknown),), facts, spoken.draw(answer.unknown))
    reason, container = answer.refusal.reason, answer.refusal.container
    message = f"{reason}: {spoken.refusal}"
    helps = f"{_change(change, spoken)} it fits" if change is not None else ""
    who = container.name if container is not None else None
    return Told(
        shape,
        "never",
        devices,
        ((PLAIN, message), advice(helps, searched=answer.searched)),
        facts,
        spoken.draw(shorten(message, MAX_NOTE)),
        refusal={"reason": reason, "container": who, "message": message},
        change=None if change is None else change_value(change, spoken.names),
    )


def unselected(nodes: NodeSelector | None) -> str:
    """Why a node that a selector leaves out refuses."""
    return f"not what the pod's {nodes.words} demands" if nodes is not None else ""


def advice(helps: str, *, searched: bool) -> Sentence:
    """What would help, or that nothing was found."""
    if helps:
        return (Style.GOOD, "→ "), helps
    return (Style.DIM, "→ "), "no single change helps" if searched else "the search for a change was cut short"


def change_value(change: Change, names: Mapping[Role, str]) -> dict[str, Any]:
    """A change as JSON."""
    if change.container is None or change.role is None:
        return {"remove": change.word}
    return {"container": change.container.name, "resource": names[change.role], "most": change.value}


def _change(change: Change, spoken: Spoken) -> str:
    if change.container is None or change.role is None:
        return f"without {change.word}"
    name, where = spoken.names[change.role], f" in {wording.container(change.container)}" if spoken.several else ""
    if change.value == 0:
        return f"without {name}{where}"
    less = " or fewer" if change.role is Role.NUMBER else " or less"
    return f"with {name} {change.value}{less if change.value > 1 and not spoken.exact else ''}{where}"
