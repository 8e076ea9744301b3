"""What stands in the cluster, as values: two Secrets and the webhook configurations.

Raw on the outside (`State`: bytes as they were read), read on the inside (`Authority`, `Leaf`). What cannot be read has
a `problem`, a sentence without a subject: "it expired on 2026-03-01".
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from cryptography import x509

from certs import pki, verify
from certs.pki import CA, CERTIFICATE, CLOCK_SKEW, KEY, Pair

CURRENT, NEXT = "current", "next"  # the two roles of a CA; its entries are current.crt and current.key
FORMER = "former.crt"
STEP, SINCE = "step", "since"
INTRODUCE, PROMOTE = "introduce", "promote"


@dataclass(frozen=True, slots=True)
class Secret:
    """A Secret.

    Attributes:
        data: decoded.
        version: its resourceVersion; empty where there is none yet.
        written: when its data was last written, by the API server's clock; None if that is not known.
    """

    data: Mapping[str, bytes] = field(repr=False)
    version: str = ""
    written: datetime | None = None


@dataclass(frozen=True, slots=True)
class Configuration:
    """A webhook configuration: `bundles` holds the caBundle of each webhook in it, in their order."""

    bundles: tuple[bytes, ...]
    version: str = ""


@dataclass(frozen=True, slots=True)
class State:
    """All that matters. A Secret that does not exist is None, a configuration is left out.

    Attributes:
        configurations: by kind.
    """

    authority: Secret | None = None
    serving: Secret | None = None
    configurations: Mapping[str, Configuration] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Ca:
    """A CA in the authority Secret; `certificate` is None where a half of it, or rubbish, is all there is."""

    certificate: x509.Certificate | None
    key: bytes = field(default=b"", repr=False)

    def problem(self, now: datetime) -> str | None:
        """Why it cannot sign at an instant; None if it can."""
        if self.certificate is None:
            return "it cannot be read"
        return (
            verify.authority_problem(self.certificate)
            or verify.validity_problem(self.certificate, now)
            or verify.key_problem(self.certificate, self.key)
        )

    @property
    def pair(self) -> Pair:
        """Certificate and key, to sign with."""
        return Pair(verify.bundle([self.certificate] if self.certificate else []), self.key)


@dataclass(frozen=True, slots=True)
class Authority:
    """What the authority Secret says.

    Attributes:
        current: the CA that signs; None if there is none.
        next: the CA that is to follow it; None but while a CA changes.
        step: how far the change is: `introduce` until every bundle holds the next CA, then `promote`; empty otherwise.
        since: when that step began; None if that cannot be read.
        former: certificates of CAs that had to be replaced at once, and whose leaves may still be served.
    """

    current: Ca | None
    next: Ca | None = None
    step: str = ""
    since: datetime | None = None
    former: tuple[x509.Certificate, ...] = ()

    @property
    def certificates(self) -> tuple[x509.Certificate, ...]:
        """All that it holds, those of the two CAs first."""
        return (*(ca.certificate for ca in (self.current, self.next) if ca and ca.certificate), *self.former)

    @classmethod
    def read(cls, secret: Secret | None) -> "Authority":
        """Read the Secret; whatever is in it, there is an answer."""
        data = secret.data if secret else {}
        current, successor = _read_ca(data, CURRENT), _read_ca(data, NEXT)
        former = verify.certificates(data.get(FORMER, b""))
        if successor is None:
            return cls(current, former=former)
        step = data.get(STEP, b"").decode(errors="replace")
        return cls(current, successor, PROMOTE if step == PROMOTE else INTRODUCE, _read_time(data), former)

    def data(self) -> dict[str, bytes]:
        """What the Secret shall hold."""
        held: dict[str, bytes] = {}
        for role, ca in ((CURRENT, self.current), (NEXT, self.next)):
            if ca is not None:
                held |= {f"{role}.crt": ca.pair.certificate} | ({f"{role}.key": ca.key} if ca.key else {})
        if self.since is not None:
            held |= {STEP: self.step.encode(), SINCE: self.since.isoformat(timespec="seconds").encode()}
        if self.former:
            held[FORMER] = verify.bundle(self.former)
        return held


@dataclass(frozen=True, slots=True)
class Leaf:
    """The serving certificate.

    Attributes:
        certificate: None if there is none that can be read.
        problem: why it cannot be served at this instant, whoever signed it; None if it can.
        issued: since when pods can have it: when it was signed or, later, when its Secret was written.
    """

    certificate: x509.Certificate | None
    problem: str | None
    issued: datetime

    @classmethod
    def read(cls, secret: Secret | None, now: datetime) -> "Leaf":
        """Read the serving Secret."""
        if secret is None:
            return cls(None, "there is none yet", now)
        found = verify.certificates(secret.data.get(CERTIFICATE, b""))
        if not found:
            return cls(None, "it cannot be read", now)
        problem = verify.validity_problem(found[0], now) or verify.key_problem(found[0], secret.data.get(KEY, b""))
        if problem is not None:
            return cls(found[0], problem, now)
        signed = found[0].not_valid_before_utc + CLOCK_SKEW
        issued = max(signed, secret.written or signed)
        if issued > now + CLOCK_SKEW:
            problem = f"it is dated {issued:%Y-%m-%d %H:%M}, which is yet to come"
        return cls(found[0], problem, issued)


def serving_data(held: Mapping[str, bytes], leaf: Pair, bundle: bytes) -> dict[str, bytes]:
    """What the serving Secret shall hold; what somebody else keeps in it stays."""
    return {**held, CERTIFICATE: leaf.certificate, KEY: leaf.key, CA: bundle}


def make_ca(now: datetime) -> Ca:
    """Make a CA whose name says when."""
    pair = pki.make_ca(f"vgpu-webhook CA {now:%Y-%m-%d}", now)
    return Ca(verify.certificates(pair.certificate)[0], pair.key)


def _read_ca(data: Mapping[str, bytes], role: str) -> Ca | None:
    certificate, key = data.get(f"{role}.crt", b""), data.get(f"{role}.key", b"")
    if not certificate and not key:
        return None
    return Ca(next(iter(verify.certificates(certificate)), None), key)


def _read_time(data: Mapping[str, bytes]) -> datetime | None:
    try:
        found = datetime.fromisoformat(data.get(SINCE, b"").decode())
    except ValueError:
        return None
    return found if found.tzinfo else found.replace(tzinfo=UTC)


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
