"""The webhook configurations of the cluster against those that belong to its device config and policy."""

from collections.abc import Callable, Iterator

from webhook.doctor.check import Check, Line, broken, ok, unchecked, warning
from webhook.doctor.facts import Kind
from webhook.doctor.ours import CONFIGURATIONS, entries
from webhook.doctor.reading import Object, at, counted, listed, tables, text, texts
from webhook.doctor.setup import Setup

APPLY = "apply what `vgpu-webhook manifests --device-config FILE --policy FILE` prints"
BIND = (
    "the Job vgpu-webhook-certs writes them once the API server gets an answer from the webhook: see its log, or run "
    "`python -m certs bind`"
)
Differences = Callable[[str, Object, Object | None], Iterator[Line]]

HIDING = "hide-devices."  # the entry that only overwriteEnv needs

_PARTS = ("apiGroups", "apiVersions", "operations", "resources")
# What neither rules nor matchConditions are, yet changes what happens; failurePolicy is told by itself.
_OTHERS = (
    "namespaceSelector",
    "matchPolicy",
    "sideEffects",
    "timeoutSeconds",
    "admissionReviewVersions",
    "reinvocationPolicy",
)


def exist(setup: Setup) -> Iterator[Line]:
    """The API server calls the webhook, through every entry."""
    for kind in CONFIGURATIONS:
        installed = entries(setup.facts, kind)
        gap = setup.facts.gap(kind)
        missing = [name for name in _wanted(setup, kind) if name not in installed]
        if missing and gap:
            yield unchecked(gap)
        elif missing and not installed:
            what = "repaired" if kind is Kind.MUTATING else "checked"
            yield broken(f"no {kind} calls this webhook: no pod is {what}", APPLY)
        elif missing:
            yield broken(f"{kind}: {listed(missing)} is not there, so what it would send is not looked at", APPLY)
        else:
            yield ok(f"{kind}: {listed(list(installed))}")


def match(setup: Setup) -> Iterator[Line]:
    """Rules and conditions are those that the device config and the policy lead to."""
    if setup.settings_gap:
        yield unchecked(setup.settings_gap)
        return
    yield from _compared(setup, _called)


def settings(setup: Setup) -> Iterator[Line]:
    """What happens while the webhook does not answer, and all other settings, are as meant."""
    yield from _compared(setup, _set)


def hiding(setup: Setup) -> Iterator[Line]:
    """With overwriteEnv: true, every pod has to be sent."""
    gap = setup.facts.gap(Kind.MUTATING)
    installed = any(name.startswith(HIDING) for name in entries(setup.facts, Kind.MUTATING))
    wanted = setup.config.vgpu.overwrite_env
    if setup.settings_gap:
        yield unchecked(setup.settings_gap)
    elif not wanted or installed:
        yield ok("pods without a device are sent, as overwriteEnv needs it" if wanted else "overwriteEnv is not in use")
    elif gap:
        yield unchecked(gap)
    else:
        yield warning(
            "overwriteEnv is true, but pods without a device are not sent here, so nothing is hidden from them",
            "apply what `vgpu-webhook manifests --all-pods` prints",
        )


def _wanted(setup: Setup, kind: Kind) -> list[str]:
    found = [
        text(entry, "name") for raw in setup.rendered if text(raw, "kind") == kind for entry in tables(raw, "webhooks")
    ]
    return [name for name in found if not name.startswith(HIDING)]


def _compared(setup: Setup, differences: Differences) -> Iterator[Line]:
    """Each installed entry against the one of its name; entries that are not there are told elsewhere."""
    found = []
    seen = 0
    for kind in CONFIGURATIONS:
        installed = entries(setup.facts, kind)
        meant = {
            text(e, "name"): e for raw in setup.rendered if text(raw, "kind") == kind for e in tables(raw, "webhooks")
        }
        seen += len(installed)
        for name, entry in installed.items():
            found += list(differences(name, entry, meant.get(name)))
    if found:
        yield from found
    elif not seen:
        gap = setup.facts.gap(Kind.MUTATING) or setup.facts.gap(Kind.VALIDATING)
        yield unchecked(gap) if gap else warning("there is nothing to compare", APPLY)
    else:
        yield ok(f"as they should be: {counted(seen, 'webhook')}")


def _called(name: str, entry: Object, meant: Object | None) -> Iterator[Line]:
    if meant is None:
        yield warning(f"{name} is not one of the entries that belong to this configuration", APPLY)
        return
    if not at(entry, "rules"):
        yield broken(f"{name}: it has no rules yet, so the API server does not call it", BIND)
    elif _rules(entry) != _rules(meant):
        yield broken(f"{name}: its rules send other requests than those that the webhook is for", APPLY)
    if at(entry, "objectSelector"):
        yield broken(f"{name}: an objectSelector lets the author of a pod keep it from being looked at", APPLY)
    conditions, right = _conditions(entry), _conditions(meant)
    if not conditions:
        yield warning(f"{name}: without matchConditions a webhook that does not answer holds up every pod", APPLY)
    elif conditions != right:
        wrong = [key for key, _ in conditions ^ right]
        yield broken(
            f"{name}: its matchConditions ({listed(sorted(set(wrong)))}) are not those of the device config and the policy, "
            "so pods pass unseen",
            APPLY,
        )


def _set(name: str, entry: Object, meant: Object | None) -> Iterator[Line]:
    if meant is None:
        return
    given, right = text(entry, "failurePolicy"), text(meant, "failurePolicy")
    if given != right:
        follows = "pods pass unchecked" if given == "Ignore" else "requests are refused"
        yield warning(
            f"{name}: failurePolicy is {given}, not {right}: {follows} while the webhook does not answer", APPLY
        )
    others = [key for key in _OTHERS if key in meant and at(entry, key) != meant[key]]
    if others:
        yield warning(f"{name}: {listed(others)} is otherwise than meant", APPLY)


def _rules(entry: Object) -> list[tuple[tuple[str, ...], ...]]:
    found = tables(entry, "rules")
    return sorted(
        (*(tuple(sorted(texts(rule, part))) for part in _PARTS), (text(rule, "scope") or "*",)) for rule in found
    )


def _conditions(entry: Object) -> set[tuple[str, str]]:
    """By name, without regard to line breaks."""
    found = tables(entry, "matchConditions")
    return {(text(condition, "name"), " ".join(text(condition, "expression").split())) for condition in found}


CHECKS = (
    Check("webhook-configurations", exist),
    Check("webhook-matches", match),
    Check("webhook-settings", settings),
    Check("hide-devices", hiding),
)
