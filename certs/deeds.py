"""What each deed of a plan makes of the state. Pure, but for the keys that it makes."""

from dataclasses import replace

from certs import pki, verify
from certs.plan import AUTHORITY, SERVING, Action, Deed
from certs.sight import Sight
from certs.state import INTRODUCE, PROMOTE, Authority, Ca, Configuration, Secret, State, make_ca, serving_data
from certs.store import CA


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
