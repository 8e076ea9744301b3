"""The installed webhook configurations, compared with those for the device config and policy of the cluster."""

from collections.abc import Iterable, Iterator

from webhook.lenient import at, obj, objs, text, texts
from webhook.names import EXEMPT_NAMESPACES, NAMESPACE_NAME
from webhook.product import documentation
from webhook.questions.doctor.check import Ended, need, unchecked
from webhook.questions.doctor.facts import Object, ObjectKind
from webhook.questions.doctor.setup import CONFIGURATIONS, Setup, entries, service
from webhook.results import CheckResult, Results, broken, listed, warning
from webhook.texts import counted

# Helm 4.2.3 upgrades by server-side apply: it fails on fields that `kubectl apply` has changed to other values.
APPLY = (
    "apply what `vgpu-webhook manifests --device-config FILE --policy FILE` prints (with Helm: upgrade with it as the value "
    "webhookConfigurations)"
)
INSTALL = f"install it: {documentation('install.md')}; or give the right -n and --name"
BIND = (
    "the Job vgpu-webhook-certs writes them once the API server gets an answer from the webhook: see its log, or run "
    "`vgpu-webhook certs bind`"
)
Compared = tuple[str, Object, Object | None]  # name, installed and rendered entry

HIDING = "hide-devices."  # the entry that only overwriteEnv needs

_PARTS = ("apiGroups", "apiVersions", "operations", "resources")
# The other fields that change what happens: failurePolicy and namespaceSelector have messages of their own.
_OTHERS = ("matchPolicy", "sideEffects", "admissionReviewVersions", "reinvocationPolicy")


def exist(setup: Setup) -> Results:
    """Every entry is installed."""
    if not setup.installed:
        place = "/".join(service(setup.facts))
        so = f"no configuration calls it, and there is no Service {place}"
        raise Ended(broken(f"the webhook is not installed: {so}", INSTALL))
    complete = []
    for kind in CONFIGURATIONS:
        installed = entries(setup.facts, kind)
        gap = setup.facts.gap(kind)
        missing = [name for name in _wanted(setup, kind) if name not in installed]
        if missing and gap:
            yield unchecked(gap)
        elif missing and not installed:
            what = "repaired" if kind is ObjectKind.MUTATING else "checked"
            yield broken(f"no {kind} calls this webhook: no pod is {what}", APPLY)
        elif missing:
            yield broken(f"{kind}: {listed(missing)} does not exist, so its requests are not reviewed", APPLY)
        else:
            complete.append(f"{kind}: {listed(list(installed))}")
    return "; ".join(complete)


def match(setup: Setup) -> Results:
    """Rules and matchConditions are those for the device config and the policy."""
    need(setup.settings_gap)
    compared = _compared(setup)
    generous = _entries(setup.generous)
    for name, entry, meant in compared:
        yield from _called(name, entry, meant, generous.get(name))
    return _as_rendered(compared)


def settings(setup: Setup) -> Results:
    """FailurePolicy and all other settings are as rendered."""
    compared = _compared(setup)
    yield from _failing_otherwise(compared)
    for name, entry, meant in compared:
        if meant is None:
            continue
        others = [key for key in _OTHERS if key in meant and at(entry, key) != meant[key]]
        if "In" in _operators(meant) - _operators(entry):
            others.append("namespaceSelector")
        if others:
            yield warning(f"{name}: {listed(others)} differs from the manifests", APPLY)
    selecting = [name for name, entry, meant in compared if meant and not _excludes(entry, meant)]
    if selecting:
        yield warning(
            f"{listed(selecting)}: the namespaceSelector does not just exclude {listed(list(EXEMPT_NAMESPACES))} and more "
            "namespaces, so some are reviewed, or left out, against what the manifests say",
            f"{APPLY}, and then exclude more namespaces (excludedNamespaces, excludedNamespaceLabels of the chart)",
        )
    keys = {
        text(each, "key") for _, entry, _ in compared for each in objs(entry, "namespaceSelector", "matchExpressions")
    }
    labels = sorted(keys - {NAMESPACE_NAME})
    return _as_rendered(compared) + (f"; namespaces are left out by {listed(labels)}" if labels else "")


def hiding(setup: Setup) -> Results:
    """With overwriteEnv: true, the API server must send every pod."""
    need(setup.settings_gap)
    installed = any(name.startswith(HIDING) for name in entries(setup.facts, ObjectKind.MUTATING))
    wanted = setup.config.vgpu.overwrite_env
    if wanted and not installed:
        need(setup.facts.gap(ObjectKind.MUTATING))
        yield warning(
            "overwriteEnv is true, but pods without a device are not sent here, so nothing is hidden from them",
            "apply what `vgpu-webhook manifests --all-pods` prints (with Helm: upgrade with allPods=true)",
        )
    return "pods without a device are sent, as overwriteEnv needs it" if wanted else "overwriteEnv is not in use"


def _wanted(setup: Setup, kind: ObjectKind) -> list[str]:
    return [name for name in _entries(setup.rendered, kind) if not name.startswith(HIDING)]


def _entries(rendered: Iterable[Object], *kinds: ObjectKind) -> dict[str, Object]:
    """The entries of rendered configurations by their names."""
    return {
        text(entry, "name"): entry
        for raw in rendered
        if text(raw, "kind") in (kinds or CONFIGURATIONS)
        for entry in objs(raw, "webhooks")
    }


def _compared(setup: Setup) -> list[Compared]:
    """Each installed entry with the rendered one of its name; `exist` reports missing entries.

    Raises:
        Ended: no entry is installed.
    """
    found: list[Compared] = []
    for kind in CONFIGURATIONS:
        meant = _entries(setup.rendered, kind)
        found += [(name, entry, meant.get(name)) for name, entry in entries(setup.facts, kind).items()]
    if not found:
        need(setup.facts.gap(ObjectKind.MUTATING) or setup.facts.gap(ObjectKind.VALIDATING))
        raise Ended(warning("there is no configuration to compare", APPLY))
    return found


def _as_rendered(compared: list[Compared]) -> str:
    return f"as they should be: {counted(len(compared), 'webhook')}"


def _called(name: str, entry: Object, meant: Object | None, generous: Object | None) -> Iterator[CheckResult]:
    if meant is None:
        yield warning(f"{name} is not one of the entries that belong to this configuration", APPLY)
        return
    if not at(entry, "rules"):
        yield broken(f"{name}: it has no rules yet, so the API server does not call it", BIND)
    elif _rules(entry) != _rules(meant):
        yield broken(f"{name}: its rules send other requests than the manifests do", APPLY)
    if at(entry, "objectSelector"):
        yield broken(f"{name}: an objectSelector lets the author of a pod avoid the review", APPLY)
    conditions, right = _conditions(entry), _conditions(meant)
    if not conditions:
        yield warning(f"{name}: without matchConditions, a webhook that does not answer blocks every pod", APPLY)
    elif conditions not in (right, _conditions(generous or meant)) and _operators(meant) != {"In"}:
        wrong = [key for key, _ in conditions ^ right]
        yield broken(
            f"{name}: its matchConditions ({listed(sorted(set(wrong)))}) are not those of the device config and the policy, "
            "so pods are admitted without a review",
            APPLY,
        )


def _failing_otherwise(compared: list[Compared]) -> Iterator[CheckResult]:
    """One result for all entries that fail in the same way, as the chart sets that of all of them."""
    found: dict[tuple[str, str], list[str]] = {}
    for name, entry, meant in compared:
        policies = text(entry, "failurePolicy"), text(meant, "failurePolicy")
        if meant and policies[0] != policies[1]:
            found.setdefault(policies, []).append(name)
    for (given, right), some in found.items():
        follows = "pods are admitted without a review" if given == "Ignore" else "requests are refused"
        yield warning(
            f"{listed(some)}: failurePolicy is {given}, not {right}: {follows} while the webhook does not answer",
            f"if that is not intended, set failurePolicy of the chart to {right}; without the chart, {APPLY}",
        )


def _excludes(entry: Object, meant: Object) -> bool:
    """Whether an entry leaves out the namespaces that it should, and others by their names or labels."""
    if _operators(meant) != {"NotIn"}:
        return True
    selector = obj(entry, "namespaceSelector")
    expressions = objs(selector, "matchExpressions")
    only = all(text(each, "operator") in ("NotIn", "DoesNotExist") for each in expressions)
    named = [each for each in expressions if text(each, "key") == NAMESPACE_NAME]
    excluded = {name for each in named if text(each, "operator") == "NotIn" for name in texts(each, "values")}
    return only and not obj(selector, "matchLabels") and excluded.issuperset(EXEMPT_NAMESPACES)


def _operators(entry: Object) -> set[str]:
    """How its namespaces are selected: `In` for settings, whose names and namespaces depend on the installation."""
    return {text(each, "operator") for each in objs(entry, "namespaceSelector", "matchExpressions")}


def _rules(entry: Object) -> list[tuple[tuple[str, ...], ...]]:
    found = objs(entry, "rules")
    return sorted(
        (*(tuple(sorted(texts(rule, part))) for part in _PARTS), (text(rule, "scope") or "*",)) for rule in found
    )


def _conditions(entry: Object) -> set[tuple[str, str]]:
    """Name and expression of each; line breaks do not matter."""
    found = objs(entry, "matchConditions")
    return {(text(condition, "name"), " ".join(text(condition, "expression").split())) for condition in found}
