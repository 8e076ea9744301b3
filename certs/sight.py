"""The state as it is seen at an instant: what works, who signs, what the bundles shall hold. Pure."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from cryptography import x509

from certs import verify
from certs.pki import CLOCK_SKEW
from certs.state import PROMOTE, Authority, Ca, Leaf, State
from certs.store import CA

PUBLISH_LAG = timedelta(minutes=1)  # until every API server uses a changed caBundle
SERVE_LAG = timedelta(hours=1)  # until every pod serves a changed Secret: kubelet's sync, and generous room


@dataclass(frozen=True, slots=True)
class Wish:
    """What the operator wants.

    Attributes:
        hosts: what the leaf is for; API servers use the first.
        replace: the fingerprint of a CA that shall go; none if empty.
        publish_lag, serve_lag: how long others may take to follow.
    """

    hosts: tuple[str, ...]
    replace: str = ""
    publish_lag: timedelta = PUBLISH_LAG
    serve_lag: timedelta = SERVE_LAG


@dataclass(frozen=True, slots=True)
class Sight:
    """A state, read.

    Attributes:
        known: the certificates of all CAs that are found anywhere, the authority's first.
        issuer: the one of them that signed the leaf.
        able: the CAs of the authority that can sign now.
        trouble: why a client that trusts all that is known would refuse the leaf; None if it works.
    """

    state: State = field(repr=False)
    now: datetime
    wish: Wish
    authority: Authority
    leaf: Leaf
    known: tuple[x509.Certificate, ...]
    issuer: x509.Certificate | None
    able: tuple[Ca, ...]
    trouble: str | None

    @property
    def works(self) -> bool:
        """Whether the leaf can be served to a client that trusts its CA."""
        return self.trouble is None

    def signs(self, ca: Ca | None) -> bool:
        """Whether a CA of the authority can sign now."""
        return ca in self.able

    def signed_by(self, ca: Ca | None) -> bool:
        """Whether a CA signed the leaf."""
        return ca is not None and self.issuer is not None and self.issuer == ca.certificate

    @property
    def promoted(self) -> bool:
        """Whether every bundle is known to have held the next CA at some time; a date to come counts for nothing."""
        since = self.authority.since
        return self.authority.step == PROMOTE and since is not None and since <= self.now + CLOCK_SKEW

    @property
    def ready(self) -> bool:
        """Whether the next CA may sign the successor of a leaf that works."""
        since = self.authority.since
        return self.promoted and since is not None and self.now - since >= self.wish.publish_lag

    @property
    def signer(self) -> Ca | None:
        """Who may sign a leaf now; None if it is better to wait. There is no way back from the next CA."""
        current, following = self.authority.current, self.authority.next
        if self.signs(following) and (self.ready or self.signed_by(following)):
            return following
        if self.signs(current):
            return current
        return following if self.signs(following) and not self.works else None

    @property
    def served(self) -> bool:
        """Whether the leaf has been out for the serve lag, so that no pod serves an older one."""
        return self.works and self.now - self.leaf.issued >= self.wish.serve_lag

    @property
    def settled(self) -> bool:
        """Whether nobody needs any other CA than the current one."""
        current = self.authority.current
        return self.authority.next is None and self.signs(current) and self.signed_by(current) and self.served

    @property
    def bundle(self) -> tuple[x509.Certificate, ...]:
        """What every bundle shall hold."""
        return self.authority.certificates[:1] if self.settled else self.known


def look(state: State, now: datetime, wish: Wish) -> Sight:
    """Read a state."""
    authority, leaf = Authority.read(state.authority), Leaf.read(state.serving, now)
    known = tuple(dict.fromkeys([*authority.certificates, *_published(state)]))
    issuer = verify.issuer(leaf.certificate, known) if leaf.certificate else None
    trouble = leaf.problem
    if leaf.certificate and trouble is None:
        trouble = verify.trust_problem(known, leaf.certificate, wish.hosts[0], now)
    able = tuple(ca for ca in (authority.current, authority.next) if ca and ca.problem(now) is None)
    return Sight(state, now, wish, authority, leaf, known, issuer, able, trouble)


def _published(state: State) -> Iterator[x509.Certificate]:
    for configuration in state.configurations.values():
        for bundle in configuration.bundles:
            yield from verify.certificates(bundle)
    if state.serving:
        yield from verify.certificates(state.serving.data.get(CA, b""))
