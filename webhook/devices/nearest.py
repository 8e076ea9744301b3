"""The nearest single change of a pod with which the nodes of one shape take it, found with the family's engine.

Every change that is offered has been tried.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any, Generic, TypeVar

from pydantic import Field, PlainSerializer, SkipValidation, WithJsonSchema

from webhook.devices.requests import Amount, PodAmounts
from webhook.devices.verdict import Fits, Unknown, Verdict
from webhook.pod.patch import REMOVE, Draft, Edit, Path
from webhook.pod.selectors import NodeSelector
from webhook.pod.view import REGULAR, Container

MAX_CONTAINERS = 8  # tried for a change, those first in the specification
MAX_STEPS = 300_000  # of one pod, each about a microsecond
# Of each verdict, beside one for each amount of the pod; an ordinary shape takes about thirty verdicts.
VERDICT_STEPS = 100
LEAST_STEPS = 1_000  # for the search in one verdict, even if no steps are left

Requested = TypeVar("Requested")
Engine = Callable[[Requested, NodeSelector | None], Verdict]

ContainerName = Annotated[
    Container,
    SkipValidation,
    PlainSerializer(lambda found: found.name, return_type=str),
    WithJsonSchema({"type": "string"}),
]


@dataclass(frozen=True, slots=True)
class LowerAmount:
    """What would help: so much of a resource in a container, or less, unless the amount is `exact`."""

    container: ContainerName
    resource: str
    most: int
    exact: Annotated[bool, Field(exclude=True)] = False

    def of(self, raw: Mapping[str, Any]) -> dict[str, Any]:
        """A pod with the change."""
        path = (*self.container.path, "resources")
        return _edited(raw, [Edit((*path, part, self.resource), str(self.most)) for part in ("limits", "requests")])


@dataclass(frozen=True, slots=True)
class Removal:
    """What would help: the pod without an annotation, label or selector."""

    remove: str

    def of(self, raw: Mapping[str, Any]) -> dict[str, Any]:
        """A pod with the change."""
        paths: list[Path] = [("metadata", part, self.remove) for part in ("annotations", "labels")]
        if "nodeSelector" in self.remove:
            paths.append(("spec", "nodeSelector"))
        if "node affinity" in self.remove:
            paths.append(("spec", "affinity", "nodeAffinity"))
        return _edited(raw, [Edit(path, REMOVE) for path in paths])


Change = LowerAmount | Removal


def _edited(raw: Mapping[str, Any], edits: Iterable[Edit]) -> dict[str, Any]:
    draft = Draft(dict(raw))
    draft.apply(edits)
    return draft.object


@dataclass(frozen=True, slots=True)
class Reducible(Generic[Requested]):
    """An amount that could be lowered.

    Attributes:
        container: the container that requests it.
        resource: its name.
        now: the amount that is requested.
        values: to try, ascending and below `now`: if one helps, so does every smaller one.
        lowered: what the pod requests with such a value.
    """

    container: Container
    resource: str
    now: int
    values: Sequence[int]
    lowered: Callable[[int], Requested]


class ChangeSearch:
    """Searches changes of one pod or of several, for all shapes together; the work of all verdicts is limited."""

    def __init__(self, steps: int = MAX_STEPS) -> None:
        """Begin, with so many steps."""
        self._left = steps

    def spend(self, steps: int) -> None:
        """Take steps."""
        self._left -= steps

    def share(self, most: int) -> int:
        """How many steps an engine may search for one verdict: at most so many."""
        return max(min(most, self._left), LEAST_STEPS)

    def nearest(
        self,
        judge: Engine[Requested],
        unchanged: tuple[Requested, NodeSelector | None],
        removals: Iterable[tuple[str, Requested]],
        amounts: Iterable[Reducible[Requested]],
        admits: Callable[[Change], bool] | None = None,
    ) -> tuple[Change | None, bool]:
        """Try every single change.

        Args:
            judge: the engine's verdict for an empty node of the shape.
            unchanged: what the pod requests now, and what it demands of its node.
            removals: words that could be removed, each with what the pod requests without it.
            amounts: those that could be lowered.
            admits: whether a pod with a change may be created; None if any may.

        Returns:
            The change that gives up least, None if no single one helps; and False if the search was cut short.
        """
        helpful: list[tuple[float, Change]] = []
        searched = True
        try:
            for change in self._helpful(judge, unchanged, removals, amounts, admits or (lambda _: True)):
                helpful.append(change)  # noqa: PERF402  # a cut search keeps what it has
        except _CutShort:
            searched = False
        return min(helpful, key=lambda change: change[0], default=(1.0, None))[1], searched

    def _helpful(
        self,
        judge: Engine[Requested],
        unchanged: tuple[Requested, NodeSelector | None],
        removals: Iterable[tuple[str, Requested]],
        amounts: Iterable[Reducible[Requested]],
        admits: Callable[[Change], bool],
    ) -> Iterator[tuple[float, Change]]:
        """The changes that help, each with the share of the request that it gives up."""
        requested, nodes = unchanged
        for word, left in removals:
            if self._fits(judge, left, nodes) and admits(Removal(word)):
                yield 1.0, Removal(word)
        for word, rest in _loosened(nodes):
            if self._fits(judge, requested, rest) and admits(Removal(word)):
                yield 1.0, Removal(word)
        for one in amounts:
            change = self._lower(judge, one, nodes, admits)
            if change is not None:
                yield (one.now - change.most) / one.now, change

    def _lower(
        self,
        judge: Engine[Requested],
        one: Reducible[Requested],
        nodes: NodeSelector | None,
        admits: Callable[[Change], bool],
    ) -> LowerAmount | None:
        """The largest amount with which the pod fits and may be created; None if there is none."""

        def fits(value: int) -> bool:
            return self._fits(judge, one.lowered(value), nodes)

        def is_admitted(value: int) -> bool:
            return admits(LowerAmount(one.container, one.resource, value))

        most = _largest(one.values, fits)
        if most is not None and not is_admitted(most):
            most = _largest(one.values[: one.values.index(most)], is_admitted)
        if most is None:
            return None
        return LowerAmount(one.container, one.resource, most, exact=not is_admitted(one.values[0]))

    def _fits(self, judge: Engine[Requested], requested: Requested, nodes: NodeSelector | None) -> bool:
        """Whether the engine places the request.

        Raises:
            _CutShort: no steps are left, or the engine cannot decide this one.
        """
        verdict = judge(requested, nodes) if self._left > 0 else None
        if verdict is None or isinstance(verdict, Unknown):
            raise _CutShort
        return isinstance(verdict, Fits)


def _largest(values: Sequence[int], helps: Callable[[int], bool]) -> int | None:
    """The largest value that helps, found by bisection; None if the first does not."""
    if not values or not helps(values[0]):
        return None
    low, high = 0, len(values)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if helps(values[middle]) else (low, middle)
    return values[low]


class _CutShort(Exception):
    """Ends a search; reports no error."""


def _loosened(nodes: NodeSelector | None) -> Iterator[tuple[str, NodeSelector | None]]:
    """What is left of a selector without each of its fields, and without all of it."""
    if nodes is None:
        return
    if nodes.labels and nodes.terms:
        labels, terms = NodeSelector(labels=nodes.labels), NodeSelector(terms=nodes.terms)
        yield labels.words, terms
        yield terms.words, labels
    yield nodes.words, None


def amounts_of_regular(pod: PodAmounts, family: str) -> list[Amount]:
    """What the regular containers request of a family."""
    return [amount for amount in pod.amounts if amount.family == family and amount.container.kind == REGULAR]


def reducible(pod: PodAmounts, amount: Amount, values: Sequence[int]) -> Reducible[PodAmounts]:
    """One amount of a pod, for engines that read nothing but the amounts."""
    return Reducible(amount.container, amount.resource, amount.value or 0, values, partial(_with_value, pod, amount))


def _with_value(pod: PodAmounts, amount: Amount, value: int) -> PodAmounts:
    return pod._replace(amounts=[one._replace(value=value) if one is amount else one for one in pod.amounts])
