"""The installed fallback policies, compared with those for the device config and policy of the cluster."""

from collections.abc import Iterator
from typing import Any

from webhook.lenient import at, objs, text, texts
from webhook.manifests.configurations import LABELS, Installation
from webhook.manifests.fallback.policies import admission_policies
from webhook.names import WEBHOOK
from webhook.questions.doctor.check import need
from webhook.questions.doctor.facts import Object, ObjectKind, name_of
from webhook.questions.doctor.setup import Setup
from webhook.results import CheckResult, Results, broken, warning
from webhook.texts import counted

POLICY, BINDING = ObjectKind.VALIDATING_POLICY, ObjectKind.VALIDATING_POLICY_BINDING

_LABEL = "app.kubernetes.io/part-of"
_APPLY = (
    "apply what `vgpu-webhook manifests --fallback --device-config FILE --policy FILE` prints (with Helm: upgrade with it "
    "as the value fallbackPolicies)"
)


def fallback_policies(setup: Setup) -> Results:
    """The fallback policies are as rendered, compile without warnings, and are in force."""
    installed = {(kind, name_of(raw)): raw for kind in (POLICY, BINDING) for raw in setup.facts.all(kind) if _ours(raw)}
    if not installed:
        need(setup.facts.gap(POLICY))
        return "no fallback policies are installed"
    need(setup.settings_gap)
    rendered = _rendered(setup, installed)
    for one in rendered:
        yield from _compared(one, installed, setup)
    names = {(ObjectKind(one["kind"]), name_of(one)) for one in rendered}
    for kind, name in [place for place in installed if place not in names]:
        yield warning(f"{kind} {name} does not belong to the fallback policies", f"delete it, or {_APPLY}")
    return f"as it should be: {counted(len(rendered), 'object')}"


def _ours(raw: Object) -> bool:
    return text(raw, "metadata", "labels", _LABEL) == LABELS[_LABEL]


def _rendered(setup: Setup, installed: dict[tuple[ObjectKind, str], Object]) -> list[Object]:
    """The fallback policies as they should be, with the names that are installed."""
    policies = {name: raw for (kind, name), raw in installed.items() if kind is POLICY}
    name = next((name.removesuffix("-pods") for name in policies if name.endswith("-pods")), WEBHOOK)
    fails = next((text(raw, "spec", "failurePolicy") for raw in policies.values()), "") or "Fail"
    return admission_policies(setup.config, setup.policy, failure_policy=fails, installation=Installation(name, name))


def _compared(meant: Object, installed: dict[tuple[ObjectKind, str], Object], setup: Setup) -> Iterator[CheckResult]:
    kind, name = ObjectKind(meant["kind"]), name_of(meant)
    raw = installed.get((kind, name))
    if raw is None:
        need(setup.facts.gap(kind))
        yield broken(f"{kind} {name} does not exist, so a part of the fallback policies is missing", _APPLY)
        return
    if kind is BINDING:
        yield from _binding(kind, raw, meant)
        return
    differs = [key for key, value in meant["spec"].items() if not _same(at(raw, "spec", key), value)]
    if differs:
        yield broken(f"{kind} {name}: {', '.join(differs)} are not those of the device config and the policy", _APPLY)
    for found in objs(raw, "status", "typeChecking", "expressionWarnings"):
        problem = " ".join(text(found, "warning").split())[:200]
        yield broken(f"{kind} {name}: the API server warns of {text(found, 'fieldRef')}: {problem}", _APPLY)


def _binding(kind: ObjectKind, raw: Object, meant: Object) -> Iterator[CheckResult]:
    name, spec = name_of(raw), meant["spec"]
    if text(raw, "spec", "policyName") != spec["policyName"]:
        yield broken(f"{kind} {name} binds another policy than {spec['policyName']}", _APPLY)
    actions, expected = texts(raw, "spec", "validationActions"), texts(meant, "spec", "validationActions")
    if "Deny" in actions and "Deny" not in expected:
        yield broken(f"{kind} {name} denies, but the policy enforces nowhere", _APPLY)
    elif not set(expected) <= set(actions):
        yield warning(
            f"{kind} {name}: validationActions are {', '.join(actions) or 'empty'}, not {', '.join(expected)}", _APPLY
        )
    if at(raw, "spec", "matchResources") or at(raw, "spec", "paramRef"):
        yield warning(f"{kind} {name}: matchResources or paramRef limit what the fallback policies read", _APPLY)


def _same(installed: Any, meant: Any) -> bool:
    """Whether a value is as meant, apart from defaults that the API server filled in and from line breaks.

    The installation may exclude more namespaces.
    """
    if isinstance(meant, dict) and isinstance(installed, dict):
        return all(key == "namespaceSelector" or _same(installed.get(key), value) for key, value in meant.items())
    if isinstance(meant, list) and isinstance(installed, list):
        return len(meant) == len(installed) and all(map(_same, installed, meant))
    if isinstance(meant, str) and isinstance(installed, str):
        return installed.split() == meant.split()
    return bool(installed == meant)
