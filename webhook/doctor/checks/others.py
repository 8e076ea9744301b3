"""Other webhooks that change the same pods, and how often this one was passed over."""

import re
from collections.abc import Iterator

from webhook.doctor.check import Check, Line, ok, unchecked, warning
from webhook.doctor.facts import Facts, Kind, Unread
from webhook.doctor.ours import SUFFIX
from webhook.doctor.reading import Object, listed, tables, text, texts
from webhook.doctor.setup import Setup

HAMI = "vgpu.hami.io"

# What is known of some, by the end of their names.
_KNOWN = {
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


def other_webhooks(setup: Setup) -> Iterator[Line]:
    """Who else changes new pods, and what that may do to those with devices."""
    gap = setup.facts.gap(Kind.MUTATING)
    found = _others(setup.facts)
    troubling = [(name, known) for name in found for end, known in _KNOWN.items() if name.endswith(end)]
    for name, (what, remedy) in troubling:
        yield warning(f"{name}: {what}", remedy)
    if gap and not found:
        yield unchecked(gap)
    elif not troubling:
        known = f"{listed(found)} change new pods as well; what they make of them is checked afterwards"
        yield ok(known if found else "no other webhook changes new pods")


def _others(facts: Facts) -> list[str]:
    entries = [entry for raw in facts.all(Kind.MUTATING) for entry in tables(raw, "webhooks")]
    names = [text(entry, "name") for entry in entries if any(map(_takes_pods, tables(entry, "rules")))]
    return sorted({name for name in names if not name.endswith(SUFFIX)})


def _takes_pods(rule: Object) -> bool:
    return (
        not {"", "*"}.isdisjoint(texts(rule, "apiGroups"))
        and not {"CREATE", "*"}.isdisjoint(texts(rule, "operations"))
        and not _PODS.isdisjoint(texts(rule, "resources"))
    )


def failed_open(setup: Setup) -> Iterator[Line]:
    """How many requests passed because the webhook did not answer."""
    answer = setup.facts.metrics
    if isinstance(answer, Unread):
        yield unchecked(answer)
        return
    counts: dict[str, float] = {}
    for labels, count in _COUNT.findall(answer.body):
        name = _NAME.search(labels)
        if name and name[1].endswith(SUFFIX):
            counts[name[1]] = counts.get(name[1], 0) + _number(count)
    told = [f"{name}: {int(count)}" for name, count in sorted(counts.items()) if count]
    if told:
        yield warning(
            f"requests that passed unchecked since this API server started, as the webhook did not answer: {listed(told)}",
            "look at the pods that came in meanwhile: `vgpu-webhook scan --cluster -A` says what is wrong with them",
        )
    else:
        yield ok("no request passed because the webhook did not answer, since this API server started")


def _number(spelled: str) -> float:
    try:
        return min(float(spelled), 1e15)
    except ValueError:
        return 0.0


CHECKS = (
    Check("other-webhooks", other_webhooks),
    Check("failed-open", failed_open),
)
