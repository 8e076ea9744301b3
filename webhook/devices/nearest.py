"""The nearest single change of a pod with which nodes of one shape take it, found by asking a family's engine.

Nothing is guessed: what is offered has been asked.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from copy import copy
from dataclasses import dataclass
from typing import Generic, TypeVar

from webhook.devices.families import Role
from webhook.devices.requests import Amount, DevicePod
from webhook.devices.selectors import NodeSelector
from webhook.devices.verdict import Fits, Unknown
from webhook.pod.view import REGULAR, Container

MAX_CONTAINERS = 8  # tried for a change, those first in the specification
MAX_QUESTIONS = 3_000  # of one pod; an ordinary shape takes about thirty
MAX_LOOKS = 300_000  # at a container, in all questions together

Question = TypeVar("Question")


@dataclass(frozen=True, slots=True)
class Change:
    """One change.

    Attributes:
        container: whose quantity changes; None if a word goes.
        role: which quantity.
        value: the largest with which it fits.
        word: the annotation, label or selector to leave out.
        distance: how much of what was asked is given up, from 0 to 1.
    """

    container: Container | None = None
    role: Role | None = None
    value: int = 0
    word: str = ""
    distance: float = 1.0


@dataclass(frozen=True, slots=True)
class Lower(Generic[Question]):
    """A quantity that could be lowered.

    Attributes:
        container: whose.
        role: which quantity.
        now: what is asked.
        values: to try, ascending and below `now`: if one helps, so does every smaller one.
        question: what is asked with such a value.
    """

    container: Container
    role: Role
    now: int
    values: Sequence[int]
    question: Callable[[int], Question]


class Enquiry:
    """Counts the questions about one pod."""

    def __init__(self, containers: int = 1) -> None:
        """Begin; an engine that looks at so many containers for an answer is asked less often."""
        self._left = min(MAX_QUESTIONS, MAX_LOOKS // max(containers, 1))

    def fits(self, judge: Callable[[Question], object], asked: Question) -> bool:
        """Tell whether the engine places a question.

        Raises:
            CutShort: no more questions are allowed, or this one was too large to be answered.
        """
        self._left -= 1
        answer = judge(asked) if self._left >= 0 else Unknown("enough")
        if isinstance(answer, Unknown):
            raise CutShort
        return isinstance(answer, Fits)


class CutShort(Exception):  # it reports no error
    """Ends a search."""


def nearest_change(
    judge: Callable[[Question], object],
    without: Iterable[tuple[str, Question]],
    lower: Iterable[Lower[Question]],
    enquiry: Enquiry,
) -> tuple[Change | None, bool]:
    """Try every single change.

    Args:
        judge: the engine's answer for an empty node of the shape.
        without: words that may go, each with what is asked then.
        lower: quantities that could be lowered.
        enquiry: counts the questions.

    Returns:
        The change that gives up least, None if no single one helps; and False if the search was cut short.
    """
    found: list[Change] = []
    searched = True
    try:
        for change in _helpful(judge, without, lower, enquiry):
            found.append(change)  # noqa: PERF402  # a cut search keeps what it has
    except CutShort:
        searched = False
    return min(found, key=lambda change: change.distance, default=None), searched


def loosened(nodes: NodeSelector | None) -> Iterator[tuple[str, NodeSelector | None]]:
    """What is left of a selector without each of its fields, and without all of it."""
    if nodes is None:
        return
    if nodes.labels and nodes.terms:
        labels, terms = NodeSelector(labels=nodes.labels), NodeSelector(terms=nodes.terms)
        yield labels.words, terms
        yield terms.words, labels
    yield nodes.words, None


def amounts_of_regular(pod: DevicePod, family: str) -> list[Amount]:
    """What the regular containers ask of a family."""
    return [amount for amount in pod.amounts if amount.family == family and amount.container.kind == REGULAR]


def with_value(pod: DevicePod, amount: Amount, value: int) -> DevicePod:
    """The pod with another value of one amount, for engines that read nothing but the amounts."""
    changed = copy(pod)
    changed.amounts = [one._replace(value=value) if one is amount else one for one in pod.amounts]
    return changed


def _helpful(
    judge: Callable[[Question], object],
    without: Iterable[tuple[str, Question]],
    lower: Iterable[Lower[Question]],
    enquiry: Enquiry,
) -> Iterator[Change]:
    for word, asked in without:
        if enquiry.fits(judge, asked):
            yield Change(word=word)
    for one in lower:
        place = _largest(one, judge, enquiry)
        if place is not None:
            value = one.values[place]
            yield Change(one.container, one.role, value, distance=(one.now - value) / one.now)


def _largest(lower: Lower[Question], judge: Callable[[Question], object], enquiry: Enquiry) -> int | None:
    """The place of the largest value that helps, by halving; every value returned has been asked."""
    values, question = lower.values, lower.question
    if not values or not enquiry.fits(judge, question(values[0])):
        return None
    low, high = 0, len(values)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if enquiry.fits(judge, question(values[middle])) else (low, middle)
    return low
