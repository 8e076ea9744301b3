"""The state of the cluster as values: two Secrets and the webhook configurations.

`ClusterState` contains the bytes that were read; `Observed` contains their interpretation (`Authority`, `Leaf`). A
`problem` is a clause such as "it expired on 2026-03-01".
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
        version: its resourceVersion; empty if it does not exist yet.
        written: when its data was last written, by the API server's clock; None if unknown.
    """

    data: Mapping[str, bytes] = field(repr=False)
    version: str = ""
    written: datetime | None = None


@dataclass(frozen=True, slots=True)
class Configuration:
    """A webhook configuration: `bundles` holds the caBundle of each of its webhooks, in order."""

    bundles: tuple[bytes, ...]
    version: str = ""


@dataclass(frozen=True, slots=True)
class ClusterState:
    """All objects. A Secret that does not exist is None; a configuration that does not exist is left out.

    Attributes:
        configurations: by kind.
    """

    authority: Secret | None = None
    serving: Secret | None = None
    configurations: Mapping[str, Configuration] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Ca:
    """A CA in the authority Secret; `certificate` is None if it is missing or cannot be read."""

    certificate: x509.Certificate | None
    key: bytes = field(default=b"", repr=False)

    def problem(self, now: datetime) -> str | None:
        """Why it cannot sign at a time; None if it can."""
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
    """The content of the authority Secret.

    Attributes:
        current: the CA that signs; None if there is none.
        next: the CA that replaces it; None unless a rotation is in progress.
        step: of the rotation: `introduce` until every bundle holds the next CA, then `promote`; empty without a rotation.
        since: when that step began; None if that cannot be read.
        former: certificates of CAs that were replaced without a rotation, and whose leaves may still be served.
    """

    current: Ca | None
    next: Ca | None = None
    step: str = ""
    since: datetime | None = None
    former: tuple[x509.Certificate, ...] = ()

    @property
    def certificates(self) -> tuple[x509.Certificate, ...]:
        """All certificates in it, those of the two CAs first."""
        return (*(ca.certificate for ca in (self.current, self.next) if ca and ca.certificate), *self.former)

    @classmethod
    def read(cls, secret: Secret | None) -> "Authority":
        """Read the Secret; content that cannot be read is left out."""
        data = secret.data if secret else {}
        current, successor = _read_ca(data, CURRENT), _read_ca(data, NEXT)
        former = verify.certificates(data.get(FORMER, b""))
        if successor is None:
            return cls(current, former=former)
        step = data.get(STEP, b"").decode(errors="replace")
        return cls(current, successor, PROMOTE if step == PROMOTE else INTRODUCE, _read_time(data), former)

    def data(self) -> dict[str, bytes]:
        """The entries of the Secret."""
        entries: dict[str, bytes] = {}
        for role, ca in ((CURRENT, self.current), (NEXT, self.next)):
            if ca is not None:
                entries |= {f"{role}.crt": ca.pair.certificate} | ({f"{role}.key": ca.key} if ca.key else {})
        if self.since is not None:
            entries |= {STEP: self.step.encode(), SINCE: self.since.isoformat(timespec="seconds").encode()}
        if self.former:
            entries[FORMER] = verify.bundle(self.former)
        return entries


@dataclass(frozen=True, slots=True)
class Leaf:
    """The serving certificate.

    Attributes:
        certificate: None if there is none that can be read.
        problem: why it cannot be served now, regardless of its issuer; None if it can.
        issued: the earliest time at which pods can have it: when it was signed or, if later, when its Secret was written.
    """

    certificate: x509.Certificate | None
    problem: str | None
    issued: datetime

    @classmethod
    def read(cls, secret: Secret | None, now: datetime) -> "Leaf":
        """Read the serving Secret."""
        if secret is None:
            return cls(None, "there is no leaf yet", now)
        chain = verify.certificates(secret.data.get(CERTIFICATE, b""))
        if not chain:
            return cls(None, "it cannot be read", now)
        problem = verify.validity_problem(chain[0], now) or verify.key_problem(chain[0], secret.data.get(KEY, b""))
        if problem is not None:
            return cls(chain[0], problem, now)
        signed = chain[0].not_valid_before_utc + CLOCK_SKEW
        issued = max(signed, secret.written or signed)
        if issued > now + CLOCK_SKEW:
            problem = f"it is dated {issued:%Y-%m-%d %H:%M}, which is in the future"
        return cls(chain[0], problem, issued)


def serving_data(existing: Mapping[str, bytes], leaf: Pair, bundle: bytes) -> dict[str, bytes]:
    """The entries of the serving Secret; other entries stay."""
    return {**existing, CERTIFICATE: leaf.certificate, KEY: leaf.key, CA: bundle}


def make_ca(now: datetime) -> Ca:
    """Make a CA with the date in its name."""
    pair = pki.make_ca(f"vgpu-webhook CA {now:%Y-%m-%d}", now)
    return Ca(verify.certificates(pair.certificate)[0], pair.key)


def _read_ca(data: Mapping[str, bytes], role: str) -> Ca | None:
    certificate, key = data.get(f"{role}.crt", b""), data.get(f"{role}.key", b"")
    if not certificate and not key:
        return None
    return Ca(next(iter(verify.certificates(certificate)), None), key)


def _read_time(data: Mapping[str, bytes]) -> datetime | None:
    try:
        time = datetime.fromisoformat(data.get(SINCE, b"").decode())
    except ValueError:
        return None
    return time if time.tzinfo else time.replace(tzinfo=UTC)


PUBLISH_LAG = timedelta(minutes=1)  # until every API server uses a changed caBundle
SERVE_LAG = timedelta(hours=1)  # until every pod serves a changed Secret: the kubelet's sync period, with a margin


@dataclass(frozen=True, slots=True)
class Desired:
    """The desired state.

    Attributes:
        hosts: of the leaf; API servers use the first.
        replace: the fingerprint of a CA to replace; empty for none.
        publish_lag, serve_lag: how long API servers and pods may take to use a change.
    """

    hosts: tuple[str, ...]
    replace: str = ""
    publish_lag: timedelta = PUBLISH_LAG
    serve_lag: timedelta = SERVE_LAG


@dataclass(frozen=True, slots=True)
class Observed:
    """The interpretation of a state at a time.

    Attributes:
        known_cas: the certificates of all CAs found anywhere, the authority's first.
        issuer: the one of them that signed the leaf.
        signing_cas: the CAs of the authority that can sign now.
        leaf_problem: why a client that trusts all known CAs would refuse the leaf; None if the leaf works.
    """

    state: ClusterState = field(repr=False)
    now: datetime
    desired: Desired
    authority: Authority
    leaf: Leaf
    known_cas: tuple[x509.Certificate, ...]
    issuer: x509.Certificate | None
    signing_cas: tuple[Ca, ...]
    leaf_problem: str | None

    @property
    def leaf_works(self) -> bool:
        """Whether the leaf can be served to a client that trusts its CA."""
        return self.leaf_problem is None

    def can_sign(self, ca: Ca | None) -> bool:
        """Whether a CA of the authority can sign now."""
        return ca in self.signing_cas

    def signed_by(self, ca: Ca | None) -> bool:
        """Whether a CA signed the leaf."""
        return ca is not None and self.issuer is not None and self.issuer == ca.certificate

    @property
    def promoted(self) -> bool:
        """Whether every bundle has contained the next CA; False if the recorded date is in the future."""
        since = self.authority.since
        return self.authority.step == PROMOTE and since is not None and since <= self.now + CLOCK_SKEW

    @property
    def ready(self) -> bool:
        """Whether the next CA may replace a working leaf."""
        since = self.authority.since
        return self.promoted and since is not None and self.now - since >= self.desired.publish_lag

    @property
    def signer(self) -> Ca | None:
        """The CA that may sign a leaf now; None to wait. After the next CA has signed, the current one no longer signs."""
        current, next_ca = self.authority.current, self.authority.next
        if self.can_sign(next_ca) and (self.ready or self.signed_by(next_ca)):
            return next_ca
        if self.can_sign(current):
            return current
        return next_ca if self.can_sign(next_ca) and not self.leaf_works else None

    @property
    def leaf_served(self) -> bool:
        """Whether the leaf is older than the serve lag, so that no pod serves an older leaf."""
        return self.leaf_works and self.now - self.leaf.issued >= self.desired.serve_lag

    @property
    def rotation_done(self) -> bool:
        """Whether every served leaf was signed by the current CA, and no rotation is in progress."""
        current = self.authority.current
        return self.authority.next is None and self.can_sign(current) and self.signed_by(current) and self.leaf_served

    @property
    def bundle(self) -> tuple[x509.Certificate, ...]:
        """The certificates that every bundle must contain."""
        return self.authority.certificates[:1] if self.rotation_done else self.known_cas


def observe(state: ClusterState, now: datetime, desired: Desired) -> Observed:
    """Interpret a state at a time."""
    authority, leaf = Authority.read(state.authority), Leaf.read(state.serving, now)
    known_cas = tuple(dict.fromkeys([*authority.certificates, *_published(state)]))
    issuer = verify.issuer(leaf.certificate, known_cas) if leaf.certificate else None
    leaf_problem = leaf.problem
    if leaf.certificate and leaf_problem is None:
        leaf_problem = verify.trust_problem(known_cas, leaf.certificate, desired.hosts[0], now)
    signing_cas = tuple(ca for ca in (authority.current, authority.next) if ca and ca.problem(now) is None)
    return Observed(state, now, desired, authority, leaf, known_cas, issuer, signing_cas, leaf_problem)


def _published(state: ClusterState) -> Iterator[x509.Certificate]:
    for configuration in state.configurations.values():
        for bundle in configuration.bundles:
            yield from verify.certificates(bundle)
    if state.serving:
        yield from verify.certificates(state.serving.data.get(CA, b""))
