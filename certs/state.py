"""What stands in the cluster, as values: two Secrets and the webhook configurations.

Raw on the outside (`State`: bytes as they were read), read on the inside (`Authority`, `Leaf`). What cannot be read has
a `problem`, a sentence without a subject: "it expired on 2026-03-01".
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime

from cryptography import x509

from certs import pki, verify
from certs.pki import CLOCK_SKEW, Pair
from certs.store import CA, CERTIFICATE, KEY

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
