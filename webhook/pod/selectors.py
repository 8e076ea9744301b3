"""What a pod demands of its node: nodeSelector and required node affinity; and which taints its tolerations tolerate.

What is malformed or unknown is left out, so that the selector leaves more nodes rather than fewer. For a selector taints are
ignored: a toleration may be added, and a taint removed.
Source: kubernetes `staging/src/k8s.io/component-helpers/scheduling/corev1/nodeaffinity`.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from enum import StrEnum
from typing import Any, NamedTuple

from webhook.lenient import at
from webhook.pod.fields import FieldGroup

MAX_REQUIREMENTS = 200  # of one pod, each value counted; with more, nothing is read, so that no pod makes reviews slow
MAX_WORD = 317  # characters of a label's key, the longest valid text; with a longer one, nothing is read
COMPARISON_COST = 50  # as much as so many values: Gt and Lt look at every value of a label


class Operator(StrEnum):
    """How a label is compared."""

    IN = "In"
    NOT_IN = "NotIn"
    EXISTS = "Exists"
    DOES_NOT_EXIST = "DoesNotExist"
    GREATER = "Gt"
    LESS = "Lt"


class Requirement(NamedTuple):
    """One comparison.

    Attributes:
        key: of a label; empty for the node's name.
        operator: how.
        values: with what.
    """

    key: str
    operator: Operator
    values: tuple[str, ...] = ()


Term = tuple[Requirement, ...]  # all must hold


class NodeSelector(NamedTuple):  # a key of caches on the hot path: tuples hash fast
    """What a pod demands of its node.

    Attributes:
        labels: from nodeSelector; all must hold.
        terms: from required node affinity; one must hold; empty if there are none.
    """

    labels: Term = ()
    terms: tuple[Term, ...] = ()

    @property
    def words(self) -> str:
        """The fields that narrow, for people."""
        fields = (["nodeSelector"] if self.labels else []) + (["node affinity"] if self.terms else [])
        return " with ".join(fields)  # one subject: "your … demands"

    def json(self) -> dict[str, Any]:
        """The fields of a pod's spec from which `read_selector` reads this."""
        fields: dict[str, Any] = {}
        if self.labels:
            fields["nodeSelector"] = {label.key: label.values[0] for label in self.labels}
        if self.terms:
            demanded: Any = [_term_json(term) for term in self.terms]
            for key in reversed(_PATH):
                demanded = {key: demanded}
            fields["affinity"] = demanded
        return fields


def read_selector(spec: Mapping[str, Any], most: int = MAX_REQUIREMENTS) -> NodeSelector | None:
    """What a pod's spec demands of the node; None if it demands nothing, or if that cannot be read or is too long."""
    if "nodeSelector" not in spec and "affinity" not in spec:
        return None
    budget = _Budget(most)
    try:
        labels = tuple(_labels(spec.get("nodeSelector"), budget))
        terms = _terms(spec.get("affinity"), budget)
    except _TooLong:
        return None
    return NodeSelector(labels, terms) if labels or terms else None


class _TooLong(Exception):
    """Ends the reading of a selector that is too long; reports no error."""


class _Budget:
    """Counts every requirement, also those that cannot be read, so that the length alone decides whether a selector is read."""

    def __init__(self, most: int) -> None:
        self._left = most

    def spend(self, amount: int, words: Iterable[Any] = ()) -> None:
        self._left -= amount
        if self._left < 0 or any([isinstance(word, str) and len(word) > MAX_WORD for word in words]):
            raise _TooLong


def _labels(selector: Any, budget: _Budget) -> Iterator[Requirement]:
    if isinstance(selector, dict):
        for key, value in selector.items():
            budget.spend(1, (key, value))
            if key and isinstance(value, str):
                yield Requirement(key, Operator.IN, (value,))


def _terms(affinity: Any, budget: _Budget) -> tuple[Term, ...]:
    """The terms of which one must hold; empty if one of them cannot be read at all, because it might hold."""
    demanded = at(affinity, *_PATH)
    terms: list[Term] = []
    for term in demanded if isinstance(demanded, list) else ():
        budget.spend(1)
        terms.append(tuple(_term(term, budget)) if isinstance(term, dict) else ())
    return tuple(terms) if all(terms) else ()


def _term(term: Mapping[str, Any], budget: _Budget) -> Iterator[Requirement]:
    expressions, fields = term.get("matchExpressions"), term.get("matchFields")
    if expressions in (None, []) and fields in (None, []):
        yield _NO_NODE  # an empty term matches no node
        return
    yield from _requirements(expressions, budget)
    for requirement in _requirements(fields, budget):
        named = requirement.key == _NODE_NAME and len(requirement.values) == 1
        if named and requirement.operator in (Operator.IN, Operator.NOT_IN):  # the only valid comparisons
            yield Requirement("", requirement.operator, requirement.values)


def _requirements(expressions: Any, budget: _Budget) -> Iterator[Requirement]:
    for expression in expressions if isinstance(expressions, list) else ():
        requirement = _requirement(expression if isinstance(expression, dict) else {}, budget)
        if requirement is not None:
            yield requirement


def _requirement(expression: Mapping[str, Any], budget: _Budget) -> Requirement | None:
    key, operator, values = expression.get("key"), expression.get("operator"), expression.get("values")
    listed = values if isinstance(values, list) else []
    known = _OPERATORS.get(operator) if isinstance(operator, str) else None
    budget.spend(1 + len(listed) + (COMPARISON_COST if known in _COMPARISONS else 0), (key, operator, *listed))
    if known is None or not isinstance(key, str) or not key or not (values is None or isinstance(values, list)):
        return None
    if not all([isinstance(value, str) for value in listed]) or not _TAKES[known](listed):
        return None
    return Requirement(key, known, tuple(listed))


def _term_json(term: Term) -> dict[str, Any]:
    parts: dict[str, Any] = {}
    for requirement in term if term != (_NO_NODE,) else ():
        part = parts.setdefault("matchExpressions" if requirement.key else "matchFields", [])
        values = {"values": list(requirement.values)} if requirement.values else {}
        part.append({"key": requirement.key or _NODE_NAME, "operator": requirement.operator, **values})
    return parts


def integer(text: str) -> int | None:
    """An int64 as Go reads it, which is what Gt and Lt compare; None for every other text."""
    digits = text[1:] if text[:1] in ("+", "-") else text
    if len(digits) > MAX_WORD or not digits.isascii() or not digits.isdigit():
        return None
    number = int(text)
    return number if number in _INT64 else None


_PATH = ("nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution", "nodeSelectorTerms")  # below `affinity`
_NODE_NAME = "metadata.name"
_NO_NODE = Requirement("", Operator.IN)
_INT64 = range(-(2**63), 2**63)
_OPERATORS = {operator.value: operator for operator in Operator}
_COMPARISONS = frozenset({Operator.GREATER, Operator.LESS})
_TAKES: dict[Operator, Callable[[list[str]], bool]] = {
    Operator.IN: bool,
    Operator.NOT_IN: bool,
    Operator.EXISTS: lambda values: not values,
    Operator.DOES_NOT_EXIST: lambda values: not values,
    Operator.GREATER: lambda values: len(values) == 1 and integer(values[0]) is not None,
    Operator.LESS: lambda values: len(values) == 1 and integer(values[0]) is not None,
}


TOLERATIONS = FieldGroup(
    "the tolerations",
    frozenset(
        {"spec.tolerations[*]", *(f"spec.tolerations[*].{part}" for part in ("key", "operator", "value", "effect"))}
    ),
)


def tolerates(toleration: Mapping[str, Any], key: str, value: str, effect: str) -> bool:
    """Whether a toleration tolerates a taint.

    Source: kubernetes `staging/src/k8s.io/api/core/v1/toleration.go` (ToleratesTaint).
    """
    own, operator = toleration.get("key") or "", toleration.get("operator") or "Equal"
    if toleration.get("effect") not in (None, "", effect) or (own and own != key):
        return False
    return operator == "Exists" or (operator == "Equal" and own == key and (toleration.get("value") or "") == value)
