"""Where this webhook is installed, as the operator or its configurations say."""

from webhook.doctor.facts import Facts, Kind
from webhook.doctor.reading import Object, at, table, tables, text

NAME = "vgpu-webhook"
NAMESPACE = "vgpu-webhook"
SUFFIX = f".{NAME}.svc"  # of the names of our entries, wherever they are installed
SECRET = f"{NAME}-tls"

CONFIGURATIONS = (Kind.MUTATING, Kind.VALIDATING)


def entries(facts: Facts, kind: Kind) -> dict[str, Object]:
    """Our webhooks in the configurations of a kind, by name."""
    found = [entry for raw in facts.all(kind) for entry in tables(raw, "webhooks")]
    return {name: entry for entry in found if (name := text(entry, "name")).endswith(SUFFIX)}


def service(facts: Facts) -> tuple[str, str]:
    """Namespace and name of our Service."""
    called = _called(facts)
    return facts.namespace or called[0], facts.name or called[1]


def _called(facts: Facts) -> tuple[str, str]:
    for kind in CONFIGURATIONS:
        for entry in entries(facts, kind).values():
            named = table(entry, "clientConfig", "service")
            if text(named, "namespace") and text(named, "name"):
                return text(named, "namespace"), text(named, "name")
    return NAMESPACE, NAME


def called_service(entry: Object) -> str:
    """Namespace and name of the Service that an entry calls; empty if it calls a URL."""
    named = table(entry, "clientConfig", "service")
    return f"{text(named, 'namespace')}/{text(named, 'name')}" if named else ""


def port(entry: Object) -> int:
    """The port of the Service that is called."""
    found = at(entry, "clientConfig", "service", "port")
    return found if isinstance(found, int) else 443
