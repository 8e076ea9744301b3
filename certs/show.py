"""`show`: the certificates, whether they fit together, and what `ensure` would do. It never prints a key."""

from collections.abc import Iterator
from datetime import datetime
from typing import Any

from cryptography import x509

from certs import binding, verify
from certs.cluster import KINDS, Cluster
from certs.pki import CA
from certs.plan import AUTHORITY, SERVING, plan
from certs.state import Ca, Desired, Observed, observe

Facts = dict[str, Any]


def inspect(cluster: Cluster, desired: Desired) -> Facts:
    """Read the state; change nothing.

    Returns:
        What `-o json` prints. `inOrder` is whether every bundle trusts the leaf, a CA can sign the next one, and the
        configurations are binding.

    Raises:
        CertsError: it could not be read.
    """
    reading = cluster.read()
    observed = observe(reading.state, reading.now, desired)
    planned, named = plan(observed), cluster.names.describe
    bundles = [_bundle(observed, named(kind), kind) for kind in KINDS]
    if observed.state.serving:
        bundles.append(_published(observed, f"{named(SERVING)} {CA}", (observed.state.serving.data.get(CA, b""),)))
    objections = list(cluster.objections(reading))
    trusted = all(bundle["problem"] is None for bundle in bundles if bundle["there"])
    waiting = {kind: list(binding.unbound(reading.objects[kind]).values()) for kind in KINDS if kind in reading.objects}
    steps = [f"{named(action.target)}: {action.kind}: {action.why}" for action in planned.actions]
    if planned.due:
        steps.append(f"from {_moment(planned.due)} on: {planned.waiting}")
    steps += [
        f"{named(kind)}: make it binding when the API server gets a response from the webhook"
        for kind, entries in waiting.items()
        if entries
    ]
    return {
        "inOrder": bool(
            observed.leaf_works and observed.signing_cas and trusted and not objections and not any(waiting.values())
        ),
        "now": _moment(reading.now),
        "authority": {"where": named(AUTHORITY), **_authority(observed)},
        "leaf": {"where": named(SERVING), **_leaf(observed)},
        "bundles": bundles,
        "waiting": [name for entries in waiting.values() for name in entries],
        "problems": objections,
        "next": steps,
    }


def _authority(observed: Observed) -> Facts:
    authority = observed.authority
    return {
        "current": _ca(observed, authority.current),
        "next": _ca(observed, authority.next),
        "former": [verify.fingerprint(one) for one in authority.former],
        "step": authority.step or None,
        "since": _moment(authority.since) if authority.since else None,
    }


def _ca(observed: Observed, ca: Ca | None) -> Facts | None:
    if ca is None:
        return None
    return {**_certificate(ca.certificate), "problem": ca.problem(observed.now)}


def _leaf(observed: Observed) -> Facts:
    certificate = observed.leaf.certificate
    return {
        **_certificate(certificate),
        "hosts": sorted(verify.hosts(certificate)) if certificate else [],
        "issuer": verify.fingerprint(observed.issuer) if observed.issuer else None,
        "problem": observed.leaf_problem,
    }


def _certificate(certificate: x509.Certificate | None) -> Facts:
    if certificate is None:
        return {"fingerprint": None, "notAfter": None}
    return {"fingerprint": verify.fingerprint(certificate), "notAfter": _moment(certificate.not_valid_after_utc)}


def _bundle(observed: Observed, where: str, kind: str) -> Facts:
    configuration = observed.state.configurations.get(kind)
    if configuration is None:
        return {"where": where, "there": False, "holds": [], "problem": None}
    return _published(observed, where, configuration.bundles)


def _published(observed: Observed, where: str, bundles: tuple[bytes, ...]) -> Facts:
    """The bundles of one object; only certificates that all of them hold count."""
    contents = [verify.certificates(bundle) for bundle in bundles]
    common = [one for one in (contents[0] if contents else ()) if all(one in others for others in contents)]
    if not contents:
        problem: str | None = "it has no webhooks"
    elif observed.leaf.certificate is None:
        problem = "there is no leaf to trust"
    else:
        problem = verify.trust_problem(common, observed.leaf.certificate, observed.desired.hosts[0], observed.now)
    return {"where": where, "there": True, "holds": [verify.fingerprint(one) for one in common], "problem": problem}


def _moment(time: datetime) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ")


def format_facts(facts: Facts) -> str:
    """The facts for people."""
    return "\n".join(_lines(facts))


def _lines(facts: Facts) -> Iterator[str]:
    authority, leaf = facts["authority"], facts["leaf"]
    yield f"authority  {authority['where']}"
    yield f"  current  {_format_certificate(authority['current'])}"
    if authority["next"]:
        since = f" since {authority['since']}" if authority["since"] else ""
        yield f"  next     {_format_certificate(authority['next'])}, step {authority['step']}{since}"
    for fingerprint in authority["former"]:
        yield f"  former   {fingerprint}"
    yield f"serving    {leaf['where']}"
    yield f"  leaf     {_format_certificate(leaf)}"
    if leaf["fingerprint"]:
        yield f"  issuer   {leaf['issuer'] or 'an unknown CA'}"
        yield f"  hosts    {', '.join(leaf['hosts']) or 'none'}"
    yield "bundles"
    width = max(len(bundle["where"]) for bundle in facts["bundles"])
    for bundle in facts["bundles"]:
        verdict = bundle["problem"] or "trusts the leaf"
        content = f"{', '.join(bundle['holds']) or 'nothing'}  {verdict}" if bundle["there"] else "not there"
        yield f"  {bundle['where']:<{width}}  {content}"
    for name in facts["waiting"]:
        yield f"waiting    {name} does not have its rules yet"
    for problem in facts["problems"]:
        yield f"problem    {problem}"
    for at, step in enumerate(facts["next"] or ["nothing to do"]):
        yield f"{'' if at else 'next':<11}{step}"


def _format_certificate(certificate: Facts | None) -> str:
    if certificate is None:
        return "none"
    if certificate["fingerprint"] is None:
        return f"none: {certificate['problem']}"
    valid = f"{certificate['fingerprint']}  valid until {certificate['notAfter'][:10]}"
    return f"{valid}, but {certificate['problem']}" if certificate["problem"] else valid
