"""Evaluates the part of PromQL that alert rules use, on metrics as Prometheus would scrape them.

Follows https://prometheus.io/docs/prometheus/latest/querying/: staleness of 5 minutes, ranges open on the left, no increase
from a single sample, counter resets. Increases are not extrapolated to the ends of the range.
"""

import operator
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from itertools import pairwise
from typing import Any

import promql_parser as ast
from prometheus_client.parser import text_string_to_metric_families

STALE_SECONDS = 300.0
INTERVAL = 30  # seconds between two scrapes, and between two evaluations of a rule

Labels = frozenset[tuple[str, str]]
Vector = dict[Labels, float]
Value = Vector | float

_OPERATORS: dict[str, Callable[[float, float], Any]] = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv,
    "==": operator.eq, "!=": operator.ne, "<": operator.lt, ">": operator.gt, "<=": operator.le, ">=": operator.ge,
}  # fmt: skip
_COMPARISONS = ("==", "!=", "<", ">", "<=", ">=")
_AGGREGATIONS: dict[str, Callable[[Iterable[float]], float]] = {"sum": sum, "min": min, "max": max}


class Recording:
    """Scraped samples, by series."""

    def __init__(self) -> None:
        self.series: dict[Labels, list[tuple[float, float]]] = defaultdict(list)

    def add(self, at: float, name: str, value: float, labels: Mapping[str, str]) -> None:
        self.series[frozenset({"__name__": name, **labels}.items())].append((at, value))

    def scrape(self, at: float, exposition: str, **target: str) -> None:
        """Add all samples of a page of metrics, with the labels of its target."""
        for name, labels, value in _parsed(exposition):
            self.add(at, name, value, {**target, **labels})

    def firing(self, rule: Mapping[str, Any], at: float) -> Vector:
        """The alerts of a rule that have been pending for its whole `for` at time `at`."""
        since = at - (ast.parse_duration(rule["for"]).total_seconds() if "for" in rule else 0)
        expression = ast.parse(rule["expr"])
        found: Vector = _vector(self.evaluate(expression, at))
        while at > since and found:
            at = max(since, at - INTERVAL)
            before = _vector(self.evaluate(expression, at))
            found = {labels: value for labels, value in found.items() if labels in before}
        return found

    def evaluate(self, node: Any, at: float) -> Value:
        """The value of an expression at time `at`."""
        match node:
            case ast.NumberLiteral():
                return float(node.val)
            case ast.ParenExpr():
                return self.evaluate(node.expr, at)
            case ast.VectorSelector():
                found = self._samples(node, at, STALE_SECONDS)
                return {labels: samples[-1][1] for labels, samples in found.items()}
            case ast.AggregateExpr():
                return _aggregated(node, _vector(self.evaluate(node.expr, at)))
            case ast.BinaryExpr():
                return _combined(str(node.op), self.evaluate(node.lhs, at), self.evaluate(node.rhs, at))
            case ast.Call():
                return self._called(node.func.name, node.args, at)
        raise AssertionError(f"this evaluator has no {type(node).__name__}; add it here, or write the alert without it")

    def _called(self, name: str, arguments: list[Any], at: float) -> Value:
        if name == "time":
            return float(at)
        if name == "absent":
            return {} if self.evaluate(arguments[0], at) else {frozenset(): 1.0}
        if name in ("increase", "rate"):
            seconds = arguments[0].range.total_seconds()
            found = self._samples(arguments[0].vector_selector, at, seconds)
            grown = {_bare(labels): _increase(samples) for labels, samples in found.items() if len(samples) > 1}
            return {labels: value / (seconds if name == "rate" else 1) for labels, value in grown.items()}
        if name == "histogram_quantile":
            return _quantile(float(arguments[0].val), _vector(self.evaluate(arguments[1], at)))
        raise AssertionError(f"this evaluator has no function {name}(); add it here, or write the alert without it")

    def _samples(self, node: Any, at: float, seconds: float) -> dict[Labels, list[tuple[float, float]]]:
        end = at - (node.offset.total_seconds() if node.offset else 0)
        found = {}
        for labels, samples in self.series.items():
            if dict(labels)["__name__"] != node.name or not all(map(_matcher(labels), node.matchers.matchers)):
                continue
            if within := [sample for sample in samples if end - seconds < sample[0] <= end]:
                found[labels] = within
        return found


@lru_cache(maxsize=8)
def _parsed(exposition: str) -> list[tuple[str, dict[str, str], float]]:
    """Most scrapes of a recording are equal, and parsing is the most expensive part of it."""
    families = text_string_to_metric_families(exposition)
    return [(sample.name, sample.labels, sample.value) for family in families for sample in family.samples]


def _matcher(labels: Labels) -> Callable[[Any], bool]:
    values = dict(labels)

    def matches(matcher: Any) -> bool:
        value = values.get(matcher.name, "")
        equal = matcher.op in (ast.MatchOp.Equal, ast.MatchOp.NotEqual)
        found = value == matcher.value if equal else bool(re.fullmatch(matcher.value, value))
        return found is (matcher.op in (ast.MatchOp.Equal, ast.MatchOp.Re))

    return matches


def _bare(labels: Labels) -> Labels:
    return frozenset(pair for pair in labels if pair[0] != "__name__")


def _vector(value: Value) -> Vector:
    assert isinstance(value, dict), "an alert needs a vector"
    return value


def _increase(samples: list[tuple[float, float]]) -> float:
    return sum(after if after < before else after - before for (_, before), (_, after) in pairwise(samples))


def _aggregated(node: Any, vector: Vector) -> Vector:
    assert node.modifier is None or node.modifier.type == ast.AggModifierType.By
    kept = set(node.modifier.labels) if node.modifier else set()
    groups: dict[Labels, list[float]] = defaultdict(list)
    for labels, value in vector.items():
        groups[frozenset(pair for pair in labels if pair[0] in kept)].append(value)
    return {labels: _AGGREGATIONS[str(node.op)](values) for labels, values in groups.items()}


def _combined(sign: str, left: Value, right: Value) -> Value:
    if sign in ("or", "unless", "and"):
        first, second = _vector(left), _vector(right)
        named = {_bare(labels) for labels in (first if sign == "or" else second)}
        if sign == "or":
            return first | {labels: value for labels, value in second.items() if _bare(labels) not in named}
        return {labels: value for labels, value in first.items() if (_bare(labels) in named) is (sign == "and")}
    apply = _OPERATORS[sign]
    if isinstance(left, float) and isinstance(right, float):
        return float(apply(left, right))
    assert isinstance(left, dict), "a scalar on the left is not needed"
    assert isinstance(right, float), "two vectors are not needed"
    if sign in _COMPARISONS:
        return {labels: value for labels, value in left.items() if apply(value, right)}
    return {_bare(labels): apply(value, right) for labels, value in left.items()}


def _quantile(share: float, vector: Vector) -> Vector:
    groups: dict[Labels, list[tuple[float, float]]] = defaultdict(list)
    for labels, count in vector.items():
        values = dict(labels)
        bound = float(values.pop("le"))
        groups[frozenset(values.items())].append((bound, count))
    return {labels: found for labels, each in groups.items() if (found := _interpolated(share, sorted(each))) == found}


def _interpolated(share: float, buckets: list[tuple[float, float]]) -> float:
    total = buckets[-1][1]
    if not total:
        return float("nan")
    rank = share * total
    lower, below = 0.0, 0.0
    for bound, count in buckets:
        if count >= rank:
            return lower if bound == float("inf") else lower + (bound - lower) * (rank - below) / (count - below)
        lower, below = bound, count
    raise AssertionError("the last bucket holds everything")
