"""What to do next about the certificates. Pure; certs/plan.py says what each deed makes of the state.

Each deed writes one object, and each leaves every bundle trusting every leaf that a pod may still serve:

- Bundles come before leaves: no leaf is signed by a CA that a published bundle lacks.
- Bundles only grow, until the leaf of the one CA that is left has been out for the serve lag; then they shrink to it.
- A leaf that works gives way to another CA's only after the publish lag: API servers learn of a bundle with a delay.

So a CA changes in three steps: introduce (made, and added to every bundle), promote (signs the leaf), retire (the old one
is forgotten). The same three heal damage: a leaf that works, but whose CA has no key any more, is an old CA's leaf.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum

from cryptography import x509

from certs import pki, verify
from certs.pki import CA
from certs.state import INTRODUCE, PROMOTE, Authority, Ca, Configuration, Secret, Sight, State, make_ca, serving_data

AUTHORITY, SERVING = "authority", "serving"  # the targets that are Secrets; the others are kinds of configurations


class Deed(StrEnum):
    """The five things that can be done."""

    INTRODUCE = "introduce a CA"
    PUBLISH = "publish the bundle"
    SIGN = "sign a leaf"
    PROMOTE = "promote the next CA"
    RETIRE = "retire the old CA"


@dataclass(frozen=True, slots=True)
class Action:
    """One write to one object.

    Attributes:
        target: `authority`, `serving`, or the kind of a webhook configuration.
        why: a clause for people.
    """

    deed: Deed
    target: str
    why: str


@dataclass(frozen=True, slots=True)
class Plan:
    """What is due now, in order; or, where nothing is, what comes next.

    Attributes:
        actions: each writes another object. Once they are done, look again.
        due: when something will be due without anybody's doing; None if nothing is under way.
        waiting: what will be due then, and why not now.
    """

    actions: tuple[Action, ...]
    due: datetime | None = None
    waiting: str = ""


def plan(sight: Sight) -> Plan:
    """Say what is due: the authority first, then the bundles, then the leaf, then the next step of a CA's change."""
    for phase in (_authority, _publish, _serve, _advance):
        actions = tuple(phase(sight))
        if actions:
            return Plan(actions)
    return _wait(sight)


def _authority(sight: Sight) -> Iterator[Action]:
    why = _broken_change(sight) if sight.authority.next else _need_of_change(sight)
    if why:
        yield Action(Deed.INTRODUCE, AUTHORITY, why)
    elif sight.settled and sight.authority.former:
        yield Action(Deed.RETIRE, AUTHORITY, "no pod serves a leaf of it any more")


def _broken_change(sight: Sight) -> str | None:
    problem = sight.authority.next.problem(sight.now) if sight.authority.next else None
    return f"the one that was to come cannot sign: {problem}" if problem else None


def _need_of_change(sight: Sight) -> str | None:
    current = sight.authority.current
    if current is None:
        return "there is none yet"
    problem = current.problem(sight.now)
    if problem or current.certificate is None:
        return f"the present one cannot sign: {problem}"
    if verify.renewal_due(current.certificate, sight.now):
        return "a third of the present one's life is left"
    if sight.wish.replace == verify.fingerprint(current.certificate):
        return "a new one was asked for"
    if sight.works and not sight.signed_by(current):
        return "the leaf that is served was signed by a CA that is not kept here"
    return None


def _publish(sight: Sight) -> Iterator[Action]:
    for kind, configuration in sight.state.configurations.items():
        if not all(_same(held, sight.bundle) for held in configuration.bundles):
            yield Action(Deed.PUBLISH, kind, _difference(sight, configuration.bundles))


def _serve(sight: Sight) -> Iterator[Action]:
    why = _need_of_leaf(sight)
    if why and sight.signer:
        yield Action(Deed.SIGN, SERVING, why)
    elif sight.state.serving and sight.works:
        held = sight.state.serving.data.get(CA, b"")
        if not _same(held, sight.bundle):
            yield Action(Deed.PUBLISH, SERVING, _difference(sight, (held,)))


def _need_of_leaf(sight: Sight) -> str | None:
    certificate, signer = sight.leaf.certificate, sight.signer
    if sight.trouble or certificate is None or signer is None or signer.certificate is None:
        return sight.trouble
    if verify.hosts(certificate) != frozenset(sight.wish.hosts):
        return "it was made for other hosts"
    lasts_longer = signer.certificate.not_valid_after_utc > certificate.not_valid_after_utc
    if verify.renewal_due(certificate, sight.now) and lasts_longer:
        return "a third of its life is left"
    if not sight.signed_by(signer):
        return "another CA signs from now on"
    return None


def _advance(sight: Sight) -> Iterator[Action]:
    following = sight.authority.next
    if following is None:
        return
    if not sight.promoted:
        yield Action(Deed.PROMOTE, AUTHORITY, "every bundle holds it")
    elif sight.signed_by(following) and sight.served:
        yield Action(Deed.RETIRE, AUTHORITY, "every pod has had the time to take the new leaf")


def _wait(sight: Sight) -> Plan:
    since, following = sight.authority.since, sight.authority.next
    if following and since and not sight.signed_by(following):
        return Plan((), since + sight.wish.publish_lag, "the next CA signs the leaf, once API servers know the bundle")
    if following or (sight.works and len(sight.known) > 1):
        due = sight.leaf.issued + sight.wish.serve_lag
        return Plan((), due, "the old CA is retired, once every pod serves the new leaf")
    return Plan(())


def _same(held: bytes, wanted: tuple[x509.Certificate, ...]) -> bool:
    return set(verify.certificates(held)) == set(wanted)


def _difference(sight: Sight, held: tuple[bytes, ...]) -> str:
    """What a bundle lacks, and what it holds in excess."""
    found = {certificate for bundle in held for certificate in verify.certificates(bundle)}
    lacking = [verify.fingerprint(one) for one in sight.bundle if not all(one in verify.certificates(b) for b in held)]
    excess = sorted(verify.fingerprint(one) for one in found - set(sight.bundle))
    told = [f"adds {', '.join(lacking)}"] * bool(lacking) + [f"drops {', '.join(excess)}"] * bool(excess)
    return " and ".join(told)


def apply(sight: Sight, action: Action) -> State:
    """Do one action of the plan that was made for this sight.

    Returns:
        The state in which the action's target alone is another; it keeps its version.
    """
    state = sight.state
    if action.target == AUTHORITY:
        return replace(state, authority=_written(sight, state.authority, _changed(sight, action.deed).data()))
    if action.target == SERVING:
        return replace(state, serving=_written(sight, state.serving, _serving(sight, action.deed)))
    held = state.configurations[action.target]
    fresh = Configuration((verify.bundle(sight.bundle),) * len(held.bundles), held.version)
    return replace(state, configurations={**state.configurations, action.target: fresh})


def _written(sight: Sight, secret: Secret | None, data: dict[str, bytes]) -> Secret:
    return Secret(data, secret.version if secret else "", sight.now)


def _changed(sight: Sight, deed: Deed) -> Authority:
    authority = sight.authority
    if deed is Deed.PROMOTE:
        return replace(authority, step=PROMOTE, since=sight.now)
    if deed is Deed.RETIRE:
        return Authority(authority.next or authority.current)
    kept = _kept(sight)
    if kept is None:
        return Authority(make_ca(sight.now), former=authority.certificates)
    successor = _successor(sight, kept)
    stay = (kept.certificate, successor.certificate)
    former = tuple(one for one in authority.certificates if one not in stay)
    return Authority(kept, successor, INTRODUCE, sight.now, former)


def _kept(sight: Sight) -> Ca | None:
    """The CA that a new one stands beside: the one whose leaf works, with its key or without; else one that signs."""
    if sight.works and sight.issuer:
        own = [ca for ca in (sight.authority.current, sight.authority.next) if ca and ca.certificate == sight.issuer]
        return own[0] if own else Ca(sight.issuer)
    return sight.authority.current if sight.signs(sight.authority.current) else None


def _successor(sight: Sight, kept: Ca) -> Ca:
    """A fresh CA; the present one, where it is good and only the leaf is a stranger's."""
    current = sight.authority.current
    if current and current.certificate and current != kept and sight.authority.next is None and sight.signs(current):
        unwanted = sight.wish.replace == verify.fingerprint(current.certificate)
        if not unwanted and not verify.renewal_due(current.certificate, sight.now):
            return current
    return make_ca(sight.now)


def _serving(sight: Sight, deed: Deed) -> dict[str, bytes]:
    held = sight.state.serving.data if sight.state.serving else {}
    bundle = verify.bundle(sight.bundle)
    if deed is Deed.PUBLISH:
        return {**held, CA: bundle}
    if sight.signer is None:
        raise ValueError("no CA can sign: the action belongs to another state")
    return serving_data(held, pki.make_leaf(sight.signer.pair, sight.wish.hosts, sight.now), bundle)
