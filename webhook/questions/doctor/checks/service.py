"""The Service through which the API server calls the webhook, and the pods behind it."""

from webhook.lenient import at, objs, text, texts
from webhook.questions.doctor.check import Ended, known, need
from webhook.questions.doctor.facts import ObjectKind, namespace_of
from webhook.questions.doctor.setup import CONFIGURATIONS, Setup, called_service, entries, port, service
from webhook.results import Results, broken, listed, warning
from webhook.settings.sources import PROBLEM

_AGAIN = "apply deploy/ again (with Helm: upgrade)"
_PLACE = "apply deploy/ again, with the namespace in a kustomization; or give the right -n and --name"
_LABEL = "kubernetes.io/service-name"
_TROUBLES = (PROBLEM, "the last good one is in use", "unknown")  # in a line of /readyz


def webhook_service(setup: Setup) -> Results:
    """The Service exists and has the port that the configurations call."""
    namespace, name = service(setup.facts)
    place = f"{namespace}/{name}"
    installed = [entry for kind in CONFIGURATIONS for entry in entries(setup.facts, kind).values()]
    others = sorted({other for entry in installed if (other := called_service(entry)) not in ("", place)})
    if others:
        yield broken(f"the webhook configurations call Service {listed(others)}, not {place}", _PLACE)
    found = known(setup.facts.find(ObjectKind.SERVICE, namespace, name))
    if found is None:
        raise Ended(broken(f"there is no Service {place}: no call can succeed", _AGAIN))
    called = {port(entry) for entry in installed}
    offered = {offer.get("port") for offer in objs(found, "spec", "ports") if isinstance(offer.get("port"), int)}
    if called - offered:
        missing = listed([str(number) for number in sorted(called - offered)])
        yield broken(f"Service {place} has no port {missing}, which is called", _AGAIN)
    return f"Service {place} is there"


def webhook_endpoints(setup: Setup) -> Results:
    """At least two pods are ready, so that one may restart."""
    namespace, name = service(setup.facts)
    slices = [
        found
        for found in setup.facts.all(ObjectKind.ENDPOINT_SLICE)
        if namespace_of(found) == namespace and text(found, "metadata", "labels", _LABEL) == name
    ]
    if not slices:
        need(setup.facts.gap(ObjectKind.ENDPOINT_SLICE, namespace))
    ready = {
        address
        for found in slices
        for endpoint in objs(found, "endpoints")
        if at(endpoint, "conditions", "ready") is not False
        for address in texts(endpoint, "addresses")
    }
    logs = f"`kubectl -n {namespace} get pods` and their logs show why"
    if not ready:
        yield broken(f"no pod is ready behind Service {namespace}/{name}: no call can succeed", logs)
    elif len(ready) == 1:
        yield warning(
            f"only one pod is ready behind {namespace}/{name}: while it restarts, device pods are refused", logs
        )
    return f"{len(ready)} pods answer at {namespace}/{name}"


def readiness(setup: Setup) -> Results:
    """The webhook is ready, and uses the newest version of all its settings."""
    response = known(setup.facts.readiness)
    first, *details = response.body.splitlines() or [""]
    troubled = [line for line in details if any(word in line for word in _TROUBLES)]
    if response.status != 200:
        yield broken(f"/readyz: {response.status} {first[:200]}", "see the logs of the webhook")
    elif troubled:
        yield warning(f"/readyz: {'; '.join(troubled)[:300]}", "correct what it names")
    return "/readyz: " + "; ".join([first, *details])[:200]
