"""Other webhooks that change the same pods, and how many requests passed without this one."""

import re
from collections.abc import Iterator

from webhook import names
from webhook.errors import WebhookError
from webhook.lenient import at, obj, objs, text, texts
from webhook.questions.doctor.check import Ended, known, need
from webhook.questions.doctor.checks.configurations import HIDING
from webhook.questions.doctor.facts import Facts, Object, ObjectKind, Unread, namespace_of, place_of
from webhook.questions.doctor.setup import CONFIGURATIONS, SUFFIX, Setup, entries, own_configurations, service
from webhook.questions.doctor.volcano import workload_of
from webhook.results import Results, listed, warning
from webhook.review.endpoints import mutate
from webhook.rules.choices import Enforcement
from webhook.settings.snapshot import SnapshotInputs
from webhook.snapshot import Snapshot
from webhook.wire.codec import creation

HAMI = "vgpu.hami.io"
_VOLCANO = ".volcano.sh"  # ends the names of the entries of Volcano's own webhook
MAX_PODS = 2000

# Webhooks that are known to conflict, by the end of their names.
_CONFLICTS = {
    HAMI: (
        "HAMi's webhook hands pods with its resource names to HAMi's scheduler, so they get no card from Volcano",
        "uninstall HAMi's scheduler and webhook, or give the two different resource names",
    ),
    "sidecar-injector.istio.io": (
        "Istio's sidecar may become the first container, which the device plugin takes for the one with the vGPU",
        'annotate pods with vGPUs with sidecar.istio.io/inject: "false"',
    ),
    "linkerd-proxy-injector.linkerd.io": (
        "Linkerd's sidecar may become the first container, which the device plugin takes for the one with the vGPU",
        "annotate pods with vGPUs with linkerd.io/inject: disabled",
    ),
}
_PODS = {"pods", "pods/*", "*", "*/*"}
_COUNT = re.compile(r"^apiserver_admission_webhook_fail_open_count\{([^}]*)\} ([0-9.e+]+)$", re.MULTILINE)
_NAME = re.compile(r'name="([^"]*)"')


def other_webhooks(setup: Setup) -> Results:
    """Other mutating webhooks for new pods, and what they may do to device pods."""
    found = _others(setup.facts)
    troubling = [(name, conflict) for name in found for end, conflict in _CONFLICTS.items() if name.endswith(end)]
    for name, (what, remedy) in troubling:
        yield warning(f"{name}: {what}", remedy)
    if not found:
        need(setup.facts.gap(ObjectKind.MUTATING))
    seen = f"{listed(found)} also change new pods; their result is validated afterwards"
    return seen if found else "no other webhook changes new pods"


def volcano_admission(setup: Setup) -> Results:
    """Which pods cannot be created while Volcano's own webhook does not answer."""
    facts = setup.facts
    blocking = [
        entry
        for kind in CONFIGURATIONS
        for raw in facts.all(kind)
        for entry in objs(raw, "webhooks")
        if text(entry, "name").endswith(_VOLCANO)
        and text(entry, "failurePolicy") != "Ignore"
        and any(map(_takes_pods, objs(entry, "rules")))
    ]
    if not blocking:
        need(facts.gap(ObjectKind.MUTATING) or facts.gap(ObjectKind.VALIDATING))
        return "no pod waits for Volcano's own webhook"
    manager = workload_of(facts, ObjectKind.DEPLOYMENT, "vc-webhook-manager")
    replicas = 0 if isinstance(manager, Unread) else at(manager.raw, "spec", "replicas")
    if not isinstance(replicas, int) or replicas <= 1:
        spared = set.intersection(*({*_spared(entry)} for entry in blocking))
        namespace, _ = service(facts)
        where = f" outside {', '.join(sorted(spared))}" if spared else ""
        ours = "" if namespace in spared else "; this webhook cannot start either"
        yield warning(
            f"{listed([text(entry, 'name') for entry in blocking])}: while Volcano's own webhook does not answer, no pod can "
            f"be created{where}{ours}",
            f"run two replicas of it{f', and leave out {namespace} in its namespaceSelector' if ours else ''}",
        )
    return f"Volcano's own webhook has {replicas} replicas"


def _spared(entry: Object) -> Iterator[str]:
    """The namespaces that an entry leaves out by their names."""
    for expression in objs(entry, "namespaceSelector", "matchExpressions"):
        if text(expression, "key") == names.NAMESPACE_NAME and text(expression, "operator") == "NotIn":
            yield from texts(expression, "values")


def undone_repairs(setup: Setup) -> Results:
    """No pod that waits lacks a repair which this webhook made when the pod was created."""
    pods = [raw for raw in setup.facts.all(ObjectKind.POD) if text(raw, "status", "phase") == "Pending"]
    if not pods:
        need(setup.facts.gap(ObjectKind.POD))
    need(setup.settings_gap)
    ours = own_configurations(setup.facts, ObjectKind.MUTATING)
    since = [text(raw, "metadata", "creationTimestamp") for raw in ours]
    if not since:
        need(setup.facts.gap(ObjectKind.MUTATING))
        raise Ended(warning("no configuration sends new pods here, so none is repaired", "see webhook-configurations"))
    since.append(_policy_changed(setup.facts))
    snapshot = SnapshotInputs(setup.config, setup.policy, None).snapshot()
    sending = list(entries(setup.facts, ObjectKind.MUTATING).items())
    undone: dict[str, list[str]] = {}
    for pod in pods[:MAX_PODS]:
        sent = {name.startswith(HIDING) for name, entry in sending if _sends(entry, namespace_of(pod))}
        if text(pod, "metadata", "creationTimestamp") > max(since):
            for repair in _missing_repairs(pod, snapshot) if False in sent else ():
                if True in sent or f"{repair}." != HIDING:
                    undone.setdefault(repair, []).append(place_of(pod))
    suspects = listed(_others(setup.facts)) or "a controller, or a webhook that is gone"
    for repair, places in undone.items():
        yield warning(
            f"{listed(places)}: created since this webhook repairs pods, but without the repair {repair}: another webhook "
            f"undoes it ({suspects})",
            "if the policy was changed since, create the pods again; else let that webhook leave out pods with devices",
        )
    by_label = any(_selects_by_label(entry) for _, entry in sending)
    aside = "; pods of namespaces that an entry selects by other labels are not examined" if by_label else ""
    return f"every pending pod has the repairs that this webhook makes{aside}"


def _policy_changed(facts: Facts) -> str:
    """When the policy was last written, in RFC 3339, as far as its ConfigMap has that; else empty."""
    found = facts.find(ObjectKind.CONFIG_MAP, service(facts)[0], names.POLICY_MAP)
    metadata = {} if found is None or isinstance(found, Unread) else obj(found, "metadata")
    writes = [text(write, "time") for write in objs(metadata, "managedFields")]
    return max(*writes, text(metadata, "creationTimestamp"), "")


def _selects_by_label(entry: Object) -> bool:
    """Whether an entry selects pods by more than the names of their namespaces."""
    selector = obj(entry, "namespaceSelector")
    keys = {*obj(selector, "matchLabels"), *(text(one, "key") for one in objs(selector, "matchExpressions"))}
    return bool(keys - {names.NAMESPACE_NAME} or any(obj(entry, "objectSelector").values()))


def _sends(entry: Object, namespace: str) -> bool:
    """Whether an entry sends new pods of a namespace here; False if that is not known."""
    selector = obj(entry, "namespaceSelector")
    named = [(text(one, "operator"), texts(one, "values")) for one in objs(selector, "matchExpressions")]
    named += [("In", [value]) for value in obj(selector, "matchLabels").values()]
    return not _selects_by_label(entry) and all((namespace in values) == (how == "In") for how, values in named)


def _missing_repairs(pod: Object, snapshot: Snapshot) -> tuple[str, ...]:
    """The repairs that this webhook would make if the pod were created now; none where it makes none."""
    namespace = namespace_of(pod)
    if namespace in names.EXEMPT_NAMESPACES or snapshot.policy.of(namespace).enforcement is not Enforcement.ENFORCE:
        return ()
    try:
        return mutate(creation("doctor", "v1", "Pod", namespace, pod), snapshot).mutations
    except WebhookError:
        return ()  # no API server would store such a pod


def _others(facts: Facts) -> list[str]:
    entries = [entry for raw in facts.all(ObjectKind.MUTATING) for entry in objs(raw, "webhooks")]
    found = [text(entry, "name") for entry in entries if any(map(_takes_pods, objs(entry, "rules")))]
    return sorted({name for name in found if not name.endswith(SUFFIX)})


def _takes_pods(rule: Object) -> bool:
    return (
        not {"", "*"}.isdisjoint(texts(rule, "apiGroups"))
        and not {"CREATE", "*"}.isdisjoint(texts(rule, "operations"))
        and not _PODS.isdisjoint(texts(rule, "resources"))
    )


def failed_open(setup: Setup) -> Results:
    """The API server admitted no request because the webhook did not answer."""
    metrics = known(setup.facts.metrics)
    counts: dict[str, float] = {}
    for labels, count in _COUNT.findall(metrics.body):
        name = _NAME.search(labels)
        if name and name[1].endswith(SUFFIX):
            counts[name[1]] = counts.get(name[1], 0) + _number(count)
    passed = [f"{name}: {int(count)}" for name, count in sorted(counts.items()) if count]
    if passed:
        yield warning(
            "the webhook did not answer, so this API server has admitted requests without a review since it started: "
            f"{listed(passed)}",
            "review the pods that were created meanwhile: `vgpu-webhook scan --cluster -A`",
        )
    return "since it started, this API server has admitted no request without a review"


def _number(count: str) -> float:
    try:
        return min(float(count), 1e15)
    except ValueError:
        return 0.0
