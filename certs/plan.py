"""Which actions are due, and what each makes of the state. Pure.

Each action writes one object. After each action, every bundle trusts every leaf that a pod may still serve:

- Bundles come before leaves: a CA signs a leaf only after every published bundle holds that CA.
- Bundles only grow until the leaf of the one remaining CA has been served for the serve lag; then they shrink to that CA.
- A working leaf is replaced by another CA's leaf only after the publish lag: API servers use a new bundle with a delay.

So a CA rotates in three steps: introduce (create it and add it to every bundle), promote (it signs the leaf), retire (drop
the old one). The same steps repair damage: a working leaf whose CA has lost its key is treated as a leaf of an old CA.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum

from cryptography import x509

from certs import pki, verify
from certs.pki import CA
from certs.state import (
    INTRODUCE,
    PROMOTE,
    Authority,
    Ca,
    ClusterState,
    Configuration,
    Observed,
    Secret,
    make_ca,
    serving_data,
)

AUTHORITY, SERVING = "authority", "serving"  # the two Secrets; the other targets are the kinds of configurations


class ActionKind(StrEnum):
    """The kinds of actions."""

    INTRODUCE = "introduce a CA"
    PUBLISH = "publish the bundle"
    SIGN = "sign a leaf"
    PROMOTE = "promote the next CA"
    RETIRE = "retire the old CA"


@dataclass(frozen=True, slots=True)
class Action:
    """One write to one object.

    Attributes:
        kind: what it does.
        target: `authority`, `serving`, or the kind of a webhook configuration.
        why: the reason, a clause for people.
    """

    kind: ActionKind
    target: str
    why: str


@dataclass(frozen=True, slots=True)
class Plan:
    """What is due now, in order; if nothing is due, what comes next.

    Attributes:
        actions: each writes another object. After them, read the state again.
        due: when the next action becomes due; None if no rotation is in progress.
        waiting: what becomes due then, and why not now.
    """

    actions: tuple[Action, ...]
    due: datetime | None = None
    waiting: str = ""


def plan(observed: Observed) -> Plan:
    """Plan what is due: the authority first, then the bundles, then the leaf, then the next step of a CA rotation."""
    for phase in (_authority, _publish, _serve, _advance):
        actions = tuple(phase(observed))
        if actions:
            return Plan(actions)
    return _wait(observed)


def _authority(observed: Observed) -> Iterator[Action]:
    why = _broken_change(observed) if observed.authority.next else _need_of_change(observed)
    if why:
        yield Action(ActionKind.INTRODUCE, AUTHORITY, why)
    elif observed.settled and observed.authority.former:
        yield Action(ActionKind.RETIRE, AUTHORITY, "no pod serves a leaf of it any more")


def _broken_change(observed: Observed) -> str | None:
    problem = observed.authority.next.problem(observed.now) if observed.authority.next else None
    return f"the one that was to come cannot sign: {problem}" if problem else None


def _need_of_change(observed: Observed) -> str | None:
    current = observed.authority.current
    if current is None:
        return "there is none yet"
    problem = current.problem(observed.now)
    if problem or current.certificate is None:
        return f"the present one cannot sign: {problem}"
    if verify.renewal_due(current.certificate, observed.now):
        return "a third of the present one's life is left"
    if observed.desired.replace == verify.fingerprint(current.certificate):
        return "a new one was asked for"
    if observed.works and not observed.signed_by(current):
        return "the leaf that is served was signed by a CA that is not kept here"
    return None


def _publish(observed: Observed) -> Iterator[Action]:
    for kind, configuration in observed.state.configurations.items():
        if not all(_same(held, observed.bundle) for held in configuration.bundles):
            yield Action(ActionKind.PUBLISH, kind, _difference(observed, configuration.bundles))


def _serve(observed: Observed) -> Iterator[Action]:
    why = _need_of_leaf(observed)
    if why and observed.signer:
        yield Action(ActionKind.SIGN, SERVING, why)
    elif observed.state.serving and observed.works:
        held = observed.state.serving.data.get(CA, b"")
        if not _same(held, observed.bundle):
            yield Action(ActionKind.PUBLISH, SERVING, _difference(observed, (held,)))


def _need_of_leaf(observed: Observed) -> str | None:
    certificate, signer = observed.leaf.certificate, observed.signer
    if observed.trouble or certificate is None or signer is None or signer.certificate is None:
        return observed.trouble
    if verify.hosts(certificate) != frozenset(observed.desired.hosts):
        return "it was made for other hosts"
    lasts_longer = signer.certificate.not_valid_after_utc > certificate.not_valid_after_utc
    if verify.renewal_due(certificate, observed.now) and lasts_longer:
        return "a third of its life is left"
    if not observed.signed_by(signer):
        return "another CA signs from now on"
    return None


def _advance(observed: Observed) -> Iterator[Action]:
    following = observed.authority.next
    if following is None:
        return
    if not observed.promoted:
        yield Action(ActionKind.PROMOTE, AUTHORITY, "every bundle holds it")
    elif observed.signed_by(following) and observed.served:
        yield Action(ActionKind.RETIRE, AUTHORITY, "every pod has had the time to take the new leaf")


def _wait(observed: Observed) -> Plan:
    since, following = observed.authority.since, observed.authority.next
    if following and since and not observed.signed_by(following):
        return Plan(
            (), since + observed.desired.publish_lag, "the next CA signs the leaf, once API servers know the bundle"
        )
    if following or (observed.works and len(observed.known) > 1):
        due = observed.leaf.issued + observed.desired.serve_lag
        return Plan((), due, "the old CA is retired, once every pod serves the new leaf")
    return Plan(())


def _same(held: bytes, wanted: tuple[x509.Certificate, ...]) -> bool:
    return set(verify.certificates(held)) == set(wanted)


def _difference(observed: Observed, held: tuple[bytes, ...]) -> str:
    """The certificates that a bundle lacks, and those that it should not hold."""
    found = {certificate for bundle in held for certificate in verify.certificates(bundle)}
    lacking = [
        verify.fingerprint(one) for one in observed.bundle if not all(one in verify.certificates(b) for b in held)
    ]
    excess = sorted(verify.fingerprint(one) for one in found - set(observed.bundle))
    changes = [f"adds {', '.join(lacking)}"] * bool(lacking) + [f"drops {', '.join(excess)}"] * bool(excess)
    return " and ".join(changes)


def apply(observed: Observed, action: Action) -> ClusterState:
    """Do one action of the plan for an observed state.

    Returns:
        The state with only the action's target changed; the target keeps its version.
    """
    state = observed.state
    if action.target == AUTHORITY:
        return replace(state, authority=_written(observed, state.authority, _changed(observed, action.kind).data()))
    if action.target == SERVING:
        return replace(state, serving=_written(observed, state.serving, _serving(observed, action.kind)))
    held = state.configurations[action.target]
    fresh = Configuration((verify.bundle(observed.bundle),) * len(held.bundles), held.version)
    return replace(state, configurations={**state.configurations, action.target: fresh})


def _written(observed: Observed, secret: Secret | None, data: dict[str, bytes]) -> Secret:
    return Secret(data, secret.version if secret else "", observed.now)


def _changed(observed: Observed, kind: ActionKind) -> Authority:
    authority = observed.authority
    if kind is ActionKind.PROMOTE:
        return replace(authority, step=PROMOTE, since=observed.now)
    if kind is ActionKind.RETIRE:
        return Authority(authority.next or authority.current)
    kept = _kept(observed)
    if kept is None:
        return Authority(make_ca(observed.now), former=authority.certificates)
    successor = _successor(observed, kept)
    stay = (kept.certificate, successor.certificate)
    former = tuple(one for one in authority.certificates if one not in stay)
    return Authority(kept, successor, INTRODUCE, observed.now, former)


def _kept(observed: Observed) -> Ca | None:
    """The CA that stays beside a new one: the issuer of a working leaf, even without its key; else one that can sign."""
    if observed.works and observed.issuer:
        own = [
            ca
            for ca in (observed.authority.current, observed.authority.next)
            if ca and ca.certificate == observed.issuer
        ]
        return own[0] if own else Ca(observed.issuer)
    return observed.authority.current if observed.signs(observed.authority.current) else None


def _successor(observed: Observed, kept: Ca) -> Ca:
    """The next CA: the current one if it is valid and only the leaf is from another CA; else a new one."""
    current = observed.authority.current
    if (
        current
        and current.certificate
        and current != kept
        and observed.authority.next is None
        and observed.signs(current)
    ):
        unwanted = observed.desired.replace == verify.fingerprint(current.certificate)
        if not unwanted and not verify.renewal_due(current.certificate, observed.now):
            return current
    return make_ca(observed.now)


def _serving(observed: Observed, kind: ActionKind) -> dict[str, bytes]:
    held = observed.state.serving.data if observed.state.serving else {}
    bundle = verify.bundle(observed.bundle)
    if kind is ActionKind.PUBLISH:
        return {**held, CA: bundle}
    if observed.signer is None:
        raise ValueError("no CA can sign: the action belongs to another state")
    return serving_data(held, pki.make_leaf(observed.signer.pair, observed.desired.hosts, observed.now), bundle)
