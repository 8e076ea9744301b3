"""Scores the installed configuration by the good practices for admission webhooks of the Kubernetes documentation.

https://kubernetes.io/docs/concepts/cluster-administration/admission-webhooks-good-practices/
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace

from webhook import names
from webhook.doctor.check import Check, NotRead, Status, need, unchecked
from webhook.doctor.checks import access, certificates, configurations, others, service
from webhook.doctor.facts import Facts, Object, ObjectKind, listed
from webhook.doctor.setup import CONFIGURATIONS, Render, Setup, entries, put_together
from webhook.lenient import at, tables, text, texts
from webhook.texts import counted

MOST = 2  # points of a practice
SHORT_SECONDS, LONG_SECONDS = 5, 10
NAMESPACE_NAME = "kubernetes.io/metadata.name"  # the API server sets this label; it cannot be changed

# The control plane needs these in order to recover, whatever a webhook answers.
CONTROL_PLANE = (
    ("coordination.k8s.io", "leases"),
    ("authentication.k8s.io", "tokenreviews"),
    ("authorization.k8s.io", "subjectaccessreviews"),
    ("authorization.k8s.io", "selfsubjectaccessreviews"),
    ("admissionregistration.k8s.io", "mutatingwebhookconfigurations"),
    ("admissionregistration.k8s.io", "validatingwebhookconfigurations"),
    ("", "nodes"),
    ("", "events"),
)


@dataclass(frozen=True, slots=True)
class Score:
    """How well one practice is followed.

    Attributes:
        points: 2 as recommended, 1 in part, 0 not at all; None if it could not be read.
        evidence: what was found.
        remedy: what to change for more points; empty with 2.
        practice: the id; `score` sets it.
    """

    points: int | None
    evidence: str
    remedy: str = ""
    practice: str = ""


# Scores a good practice; raises NotRead when it misses something.
Practice = Callable[[Setup], Score]


def score(facts: Facts, render: Render) -> list[Score]:
    """Score every practice; `render` is that of `examine`."""
    setup = put_together(facts, render)
    return [replace(_assessed(practice, setup), practice=name) for name, practice in PRACTICES.items()]


def _assessed(practice: Practice, setup: Setup) -> Score:
    try:
        return practice(setup)
    except NotRead as missing:
        result = unchecked(missing.unread)
        return Score(None, result.message, result.remedy)


def _entries(setup: Setup) -> dict[str, Object]:
    """All our entries by name; without any there is nothing to score."""
    found = {name: entry for kind in CONFIGURATIONS for name, entry in entries(setup.facts, kind).items()}
    if not found:
        need(setup.facts.gap(ObjectKind.MUTATING) or setup.facts.gap(ObjectKind.VALIDATING))
    return found


def _each(entry_is: Callable[[Object], int], good: str, bad: str) -> Practice:
    """A practice whose points are those of the worst entry."""

    def assess(setup: Setup) -> Score:
        points = {name: entry_is(entry) for name, entry in _entries(setup).items()}
        if not points:
            return Score(0, "no configuration calls this webhook", configurations.APPLY)
        worst = min(points.values())
        if worst == MOST:
            return Score(MOST, f"{good}: {counted(len(points), 'webhook')}")
        return Score(
            worst, f"{listed([name for name, found in points.items() if found == worst])}: {bad}", configurations.APPLY
        )

    return assess


def _timeout(entry: Object) -> int:
    seconds = at(entry, "timeoutSeconds")
    seconds = seconds if isinstance(seconds, int) else LONG_SECONDS  # the API server's default
    return 2 if seconds <= SHORT_SECONDS else int(seconds <= LONG_SECONDS)


def _scope(entry: Object) -> int:
    rules = tables(entry, "rules")
    wide = any("*" in texts(rule, part) for rule in rules for part in ("apiGroups", "resources"))
    wide = wide or any("*/*" in texts(rule, "resources") for rule in rules)
    if wide:
        return 0
    return 1 if any("*" in texts(rule, part) for rule in rules for part in ("apiVersions", "operations")) else 2


def _control_plane(entry: Object) -> int:
    taken = [
        resource
        for rule in tables(entry, "rules")
        for group, resource in CONTROL_PLANE
        if not {group, "*"}.isdisjoint(texts(rule, "apiGroups"))
        and not {resource, "*", "*/*"}.isdisjoint(texts(rule, "resources"))
    ]
    return 0 if taken else 2


def _system_namespaces(entry: Object) -> int:
    if _is_probe(entry):
        return 2
    excluded = {
        name
        for expression in tables(entry, "namespaceSelector", "matchExpressions")
        if text(expression, "key") == NAMESPACE_NAME and text(expression, "operator") == "NotIn"
        for name in texts(expression, "values")
    }
    return 2 if excluded.issuperset(names.EXEMPT_NAMESPACES) else 0


def _opt_out(entry: Object) -> int:
    """An author writes the labels of a pod, and often those of a namespace; not the name."""
    if at(entry, "objectSelector"):
        return 0
    keys = [text(expression, "key") for expression in tables(entry, "namespaceSelector", "matchExpressions")]
    keys += list(at(entry, "namespaceSelector", "matchLabels") or {})
    return 2 if all(key == NAMESPACE_NAME for key in keys) else 1


def _failure_policy(entry: Object) -> int:
    if text(entry, "failurePolicy") == "Ignore" or _is_probe(entry):
        return 2
    return 2 if tables(entry, "matchConditions") else 0


def _is_probe(entry: Object) -> bool:
    """Called for dry runs of one ConfigMap that is never stored."""
    return text(entry, "name").startswith("probe.")


def _validates(setup: Setup) -> Score:
    """A mutation is only certain once something has validated the final object."""
    _entries(setup)
    validating = entries(setup.facts, ObjectKind.VALIDATING).values()
    checked = _resources(entry for entry in validating if text(entry, "failurePolicy") == "Fail")
    changed = _resources(entries(setup.facts, ObjectKind.MUTATING).values())
    if missing := sorted(resource for _, resource in changed - checked):
        return Score(0, f"{listed(missing)} are repaired, but nothing checks the result", configurations.APPLY)
    return Score(MOST, "everything that is repaired is checked afterwards, with failurePolicy Fail")


def _resources(found: Iterable[Object]) -> set[tuple[str, str]]:
    """Group and resource of what some entries are called for."""
    return {
        (group, resource)
        for entry in found
        for rule in tables(entry, "rules")
        for group in texts(rule, "apiGroups")
        for resource in texts(rule, "resources")
    }


def _reinvoked(setup: Setup) -> Score:
    """Another webhook may run after this one."""
    _entries(setup)
    never = [
        name
        for name, entry in entries(setup.facts, ObjectKind.MUTATING).items()
        if text(entry, "reinvocationPolicy") != "IfNeeded"
    ]
    if not never:
        return Score(
            MOST, "the order of webhooks does not matter: reinvocationPolicy is IfNeeded, and repairs are idempotent"
        )
    alone = len(setup.facts.all(ObjectKind.MUTATING)) == 1
    return Score(int(alone), f"{listed(never)}: reinvocationPolicy is Never", configurations.APPLY)


def _by_check(check: Check) -> Practice:
    """A practice that a check of the doctor covers: ok gives 2, a warning 1, broken 0."""
    points = {Status.OK: 2, Status.WARNING: 1, Status.BROKEN: 0}

    def assess(setup: Setup) -> Score:
        results = [result for result in check(setup) if result.status in points]
        worst = min(results, key=lambda result: points[result.status])
        return Score(points[worst.status], worst.message, worst.remedy)

    return assess


# By their ids, which are kebab-case and stable.
PRACTICES: Mapping[str, Practice] = {
    "small-timeout": _each(_timeout, "at most 5 s", "the timeout is longer than 5 s"),
    "high-availability": _by_check(service.webhook_endpoints),
    "limited-scope": _each(_scope, "rules name every resource", "rules have wildcards"),
    "match-conditions": _each(lambda e: 2 if tables(e, "matchConditions") else 0, "all have matchConditions", "none"),
    "all-versions": _each(
        lambda e: 2 if text(e, "matchPolicy") == "Equivalent" else 0,
        "matchPolicy is Equivalent",
        "matchPolicy is Exact, so another version of the API passes unseen",
    ),
    "no-side-effects": _each(
        lambda e: {"None": 2, "NoneOnDryRun": 1}.get(text(e, "sideEffects"), 0),
        "sideEffects is None",
        "it declares side effects",
    ),
    "control-plane-excluded": _each(
        _control_plane,
        "none is called for leases or authorization",
        "it takes what the control plane needs",
    ),
    "system-namespaces-excluded": _each(
        _system_namespaces, "kube-system is left out", "it is called for kube-system, too"
    ),
    "no-opt-out": _each(_opt_out, "no label lets a pod's author opt out", "a label that authors may write decides"),
    "fail-closed-narrowly": _each(
        _failure_policy,
        "failurePolicy Fail only with matchConditions",
        "failurePolicy Fail for every request: a dead webhook stops them all",
    ),
    "final-state-validated": _validates,
    "order-independent": _reinvoked,
    "repairs-stay": _by_check(others.undone_repairs),
    "rules-as-rendered": _by_check(configurations.match),
    "trusted-certificate": _by_check(certificates.ca_bundle),
    "certificate-renewed": _by_check(certificates.serving_certificate),
    "configurations-protected": _by_check(access.configuration_writers),
    "keys-protected": _by_check(access.secret_readers),
    "namespace-protected": _by_check(access.pod_creators),
    "failures-counted": _by_check(others.failed_open),
}
