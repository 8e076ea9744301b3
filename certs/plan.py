"""Plans the actions that are due, and computes the state after each. Pure.

Each action writes one object. After each action, every bundle trusts every leaf that a pod may still serve:

- Bundles come before leaves: a CA signs a leaf only after every published bundle contains that CA.
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
    """The actions that are due now, in order; if there are none, the next step of a rotation.

    Attributes:
        actions: each writes a different object. After them, read the state again.
        due: when the next action becomes due; None if no rotation is in progress.
        waiting: what becomes due then, and its condition.
    """

    actions: tuple[Action, ...]
    due: datetime | None = None
    waiting: str = ""


def plan(observed: Observed) -> Plan:
    """Plan what is due: the authority first, then the bundles, then the leaf, then the next step of a CA rotation."""
    for phase in (_plan_authority, _plan_bundles, _plan_leaf, _plan_rotation):
        actions = tuple(phase(observed))
        if actions:
            return Plan(actions)
    return _wait(observed)


def _plan_authority(observed: Observed) -> Iterator[Action]:
    why = _reason_to_introduce_again(observed) if observed.authority.next else _reason_to_introduce(observed)
    if why:
        yield Action(ActionKind.INTRODUCE, AUTHORITY, why)
    elif observed.rotation_done and observed.authority.former:
        yield Action(ActionKind.RETIRE, AUTHORITY, "no pod serves a leaf that it signed")


def _reason_to_introduce_again(observed: Observed) -> str | None:
    problem = observed.authority.next.problem(observed.now) if observed.authority.next else None
    return f"the next CA cannot sign: {problem}" if problem else None


def _reason_to_introduce(observed: Observed) -> str | None:
    current = observed.authority.current
    if current is None:
        return "there is no CA yet"
    problem = current.problem(observed.now)
    if problem or current.certificate is None:
        return f"the current CA cannot sign: {problem}"
    if verify.renewal_due(current.certificate, observed.now):
        return "a third of the current CA's lifetime is left"
    if observed.desired.replace == verify.fingerprint(current.certificate):
        return "its replacement was requested"
    if observed.leaf_works and not observed.signed_by(current):
        return "the Secret does not contain the CA that signed the served leaf"
    return None


def _plan_bundles(observed: Observed) -> Iterator[Action]:
    for kind, configuration in observed.state.configurations.items():
        if not all(_same(bundle, observed.bundle) for bundle in configuration.bundles):
            yield Action(ActionKind.PUBLISH, kind, _difference(observed, configuration.bundles))


def _plan_leaf(observed: Observed) -> Iterator[Action]:
    why = _reason_to_sign(observed)
    if why and observed.signer:
        yield Action(ActionKind.SIGN, SERVING, why)
    elif observed.state.serving and observed.leaf_works:
        existing = observed.state.serving.data.get(CA, b"")
        if not _same(existing, observed.bundle):
            yield Action(ActionKind.PUBLISH, SERVING, _difference(observed, (existing,)))


def _reason_to_sign(observed: Observed) -> str | None:
    certificate, signer = observed.leaf.certificate, observed.signer
    if observed.leaf_problem or certificate is None or signer is None or signer.certificate is None:
        return observed.leaf_problem
    if verify.hosts(certificate) != frozenset(observed.desired.hosts):
        return "it is for other hosts"
    lasts_longer = signer.certificate.not_valid_after_utc > certificate.not_valid_after_utc
    if verify.renewal_due(certificate, observed.now) and lasts_longer:
        return "a third of its lifetime is left"
    if not observed.signed_by(signer):
        return "the CA that signs leaves has changed"
    return None


def _plan_rotation(observed: Observed) -> Iterator[Action]:
    next_ca = observed.authority.next
    if next_ca is None:
        return
    if not observed.promoted:
        yield Action(ActionKind.PROMOTE, AUTHORITY, "every bundle contains it")
    elif observed.signed_by(next_ca) and observed.leaf_served:
        yield Action(ActionKind.RETIRE, AUTHORITY, "every pod serves the new leaf by now")


def _wait(observed: Observed) -> Plan:
    since, next_ca = observed.authority.since, observed.authority.next
    if next_ca and since and not observed.signed_by(next_ca):
        return Plan(
            (), since + observed.desired.publish_lag, "the next CA signs the leaf when API servers use the new bundle"
        )
    if next_ca or (observed.leaf_works and len(observed.known_cas) > 1):
        due = observed.leaf.issued + observed.desired.serve_lag
        return Plan((), due, "the old CA is retired when every pod serves the new leaf")
    return Plan(())


def _same(published: bytes, wanted: tuple[x509.Certificate, ...]) -> bool:
    return set(verify.certificates(published)) == set(wanted)


def _difference(observed: Observed, published: tuple[bytes, ...]) -> str:
    """The certificates that a bundle lacks, and those that it should not hold."""
    there = {certificate for bundle in published for certificate in verify.certificates(bundle)}
    lacking = [
        verify.fingerprint(one) for one in observed.bundle if not all(one in verify.certificates(b) for b in published)
    ]
    excess = sorted(verify.fingerprint(one) for one in there - set(observed.bundle))
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
    existing = state.configurations[action.target]
    fresh = Configuration((verify.bundle(observed.bundle),) * len(existing.bundles), existing.version)
    return replace(state, configurations={**state.configurations, action.target: fresh})


def _written(observed: Observed, secret: Secret | None, data: dict[str, bytes]) -> Secret:
    return Secret(data, secret.version if secret else "", observed.now)


def _changed(observed: Observed, kind: ActionKind) -> Authority:
    authority = observed.authority
    if kind is ActionKind.PROMOTE:
        return replace(authority, step=PROMOTE, since=observed.now)
    if kind is ActionKind.RETIRE:
        return Authority(authority.next or authority.current)
    kept = _ca_to_keep(observed)
    if kept is None:
        return Authority(make_ca(observed.now), former=authority.certificates)
    successor = _next_ca(observed, kept)
    stay = (kept.certificate, successor.certificate)
    former = tuple(one for one in authority.certificates if one not in stay)
    return Authority(kept, successor, INTRODUCE, observed.now, former)


def _ca_to_keep(observed: Observed) -> Ca | None:
    """The CA to keep beside a new one: the issuer of a working leaf, even without its key; otherwise one that can sign."""
    if observed.leaf_works and observed.issuer:
        for ca in (observed.authority.current, observed.authority.next):
            if ca and ca.certificate == observed.issuer:
                return ca
        return Ca(observed.issuer)
    return observed.authority.current if observed.can_sign(observed.authority.current) else None


def _next_ca(observed: Observed, kept: Ca) -> Ca:
    """The next CA: the current one if it is valid and only the leaf is from another CA; else a new one."""
    current = observed.authority.current
    if current and current.certificate and current != kept and observed.can_sign(current):
        unwanted = observed.authority.next or observed.desired.replace == verify.fingerprint(current.certificate)
        if not unwanted and not verify.renewal_due(current.certificate, observed.now):
            return current
    return make_ca(observed.now)


def _serving(observed: Observed, kind: ActionKind) -> dict[str, bytes]:
    existing = observed.state.serving.data if observed.state.serving else {}
    bundle = verify.bundle(observed.bundle)
    if kind is ActionKind.PUBLISH:
        return {**existing, CA: bundle}
    if observed.signer is None:
        raise ValueError("no CA can sign: the action belongs to another state")
    return serving_data(existing, pki.make_leaf(observed.signer.pair, observed.desired.hosts, observed.now), bundle)
