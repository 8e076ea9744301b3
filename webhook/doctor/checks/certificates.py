"""The certificate that is served, and the bundle by which the API server trusts it."""

from collections.abc import Iterator
from dataclasses import replace

from webhook.doctor.certificates import Certificates, hosts, load, trusted
from webhook.doctor.check import Check, Line, broken, ok, unchecked
from webhook.doctor.facts import Facts, Kind, Unread
from webhook.doctor.ours import CONFIGURATIONS, SECRET, entries, service
from webhook.doctor.reading import at, counted, listed, table
from webhook.doctor.setup import Setup
from webhook.doctor.validity import RENEW, lasting


def ca_bundle(setup: Setup) -> Iterator[Line]:
    """The bundle in each entry trusts the served certificate for the name that is called."""
    facts = setup.facts
    found = [
        (name, load(at(entry, "clientConfig", "caBundle")))
        for kind in CONFIGURATIONS
        for name, entry in entries(facts, kind).items()
    ]
    if not found:
        gap = facts.gap(Kind.MUTATING) or facts.gap(Kind.VALIDATING)
        yield (
            unchecked(gap) if gap else broken("there is no configuration with a caBundle", "see webhook-configurations")
        )
        return
    bad = [f"{name} {bundle}" for name, bundle in found if isinstance(bundle, str)]
    if bad:
        yield broken(f"caBundle: {listed(bad)}: every call fails", RENEW)
        return
    chain = _served(facts)
    if isinstance(chain, Unread):
        yield unchecked(chain)
        return
    if isinstance(chain, Line):
        yield chain
        return
    untrusted = [
        name for name, bundle in found if not isinstance(bundle, str) and not trusted(chain, bundle, facts.now)
    ]
    if untrusted:
        yield broken(
            f"the caBundle of {listed(untrusted)} does not trust the served certificate: every call fails", RENEW
        )
    else:
        yield ok(f"the caBundle trusts the served certificate: {counted(len(found), 'webhook')}")


def serving_certificate(setup: Setup) -> Iterator[Line]:
    """The certificate is valid for long enough, and for the name that is called."""
    facts = setup.facts
    chain = _served(facts)
    if isinstance(chain, Unread):
        yield unchecked(chain)
        return
    if isinstance(chain, Line):
        yield chain
        return
    namespace, name = service(facts)
    called = f"{name}.{namespace}.svc"
    leaf = chain[0]
    if called not in hosts(leaf):
        yield broken(f"the served certificate is not for {called}: every call fails", RENEW)
    line = lasting(leaf, facts.now)
    yield replace(line, message=f"the served certificate {line.message}")


def _served(facts: Facts) -> Certificates | Line | Unread:
    namespace, _ = service(facts)
    secret = facts.find(Kind.SECRET, namespace, SECRET)
    if isinstance(secret, Unread):
        return secret
    if secret is None:
        return broken(f"there is no Secret {namespace}/{SECRET}: the webhook cannot start", RENEW)
    chain = load(table(secret, "data").get("tls.crt"))
    return broken(f"Secret {namespace}/{SECRET}: tls.crt {chain}", RENEW) if isinstance(chain, str) else chain


CHECKS = (
    Check("ca-bundle", ca_bundle),
    Check("serving-certificate", serving_certificate),
)
