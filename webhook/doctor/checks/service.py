"""The Service through which the API server calls the webhook, and who answers there."""

from collections.abc import Iterator

from webhook.doctor.check import Check, Line, broken, ok, unchecked, warning
from webhook.doctor.facts import Kind, Unread
from webhook.doctor.ours import CONFIGURATIONS, called_service, entries, port, service
from webhook.doctor.reading import at, listed, namespace_of, tables, text, texts
from webhook.doctor.setup import Setup

_PLACE = "apply deploy/ again, with the namespace in a kustomization; or give the right -n and --name"
_LABEL = "kubernetes.io/service-name"


def webhook_service(setup: Setup) -> Iterator[Line]:
    """The Service is there and has the port that is called."""
    namespace, name = service(setup.facts)
    place = f"{namespace}/{name}"
    ours = [entry for kind in CONFIGURATIONS for entry in entries(setup.facts, kind).values()]
    others = sorted({other for entry in ours if (other := called_service(entry)) not in ("", place)})
    if others:
        yield broken(f"the webhook configurations call Service {listed(others)}, not {place}", _PLACE)
    found = setup.facts.find(Kind.SERVICE, namespace, name)
    if isinstance(found, Unread):
        yield unchecked(found)
        return
    if found is None:
        yield broken(f"there is no Service {place}: every call fails", "apply deploy/ again")
        return
    called = {port(entry) for entry in ours}
    offered = {offer.get("port") for offer in tables(found, "spec", "ports") if isinstance(offer.get("port"), int)}
    if called - offered:
        missing = listed([str(number) for number in sorted(called - offered)])
        yield broken(f"Service {place} has no port {missing}, which is called", "apply deploy/ again")
    else:
        yield ok(f"Service {place} is there")


def webhook_endpoints(setup: Setup) -> Iterator[Line]:
    """At least two pods answer, so that one may go."""
    namespace, name = service(setup.facts)
    slices = [
        found
        for found in setup.facts.all(Kind.ENDPOINT_SLICE)
        if namespace_of(found) == namespace and text(found, "metadata", "labels", _LABEL) == name
    ]
    gap = setup.facts.gap(Kind.ENDPOINT_SLICE, namespace)
    if not slices and gap:
        yield unchecked(gap)
        return
    ready = {
        address
        for found in slices
        for endpoint in tables(found, "endpoints")
        if at(endpoint, "conditions", "ready") is not False
        for address in texts(endpoint, "addresses")
    }
    logs = f"`kubectl -n {namespace} get pods` and their logs say why"
    if not ready:
        yield broken(f"nobody answers at Service {namespace}/{name}: every call fails", logs)
    elif len(ready) == 1:
        yield warning(f"one pod alone answers at {namespace}/{name}: while it restarts, device pods are refused", logs)
    else:
        yield ok(f"{len(ready)} pods answer at {namespace}/{name}")


def readiness(setup: Setup) -> Iterator[Line]:
    """The webhook is ready, and uses all that it is told."""
    answer = setup.facts.readiness
    if isinstance(answer, Unread):
        yield unchecked(answer)
        return
    first, *details = answer.body.splitlines() or [""]
    troubled = [line for line in details if "the last good one is in use" in line or "unknown" in line]
    if answer.status != 200:
        yield broken(f"/readyz: {answer.status} {first[:200]}", "see the logs of the webhook")
    elif troubled:
        yield warning(f"/readyz: {'; '.join(troubled)[:300]}", "put right what it names")
    else:
        yield ok("/readyz: " + "; ".join([first, *details])[:200])


CHECKS = (
    Check("webhook-service", webhook_service),
    Check("webhook-endpoints", webhook_endpoints),
    Check("webhook-ready", readiness),
)
