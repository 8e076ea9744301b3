"""The certificate that is served, and the caBundles by which the API server trusts it, checked as the API server does."""

from base64 import b64decode
from binascii import Error as NotBase64
from dataclasses import replace
from datetime import datetime, timedelta

from cryptography import x509
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm

from webhook import names
from webhook.lenient import at, obj
from webhook.questions.doctor.check import Ended, known, need
from webhook.questions.doctor.facts import Facts, ObjectKind
from webhook.questions.doctor.setup import CONFIGURATIONS, Setup, entries, service
from webhook.results import CheckResult, Results, Status, broken, listed, ok, warning
from webhook.texts import counted

Certificates = tuple[x509.Certificate, ...]

MAX_BYTES = 1 << 20
MAX_CERTIFICATES = 50
MAX_CHAIN = 5

SOON = timedelta(days=14)  # certificates are renewed long before
SHARE = 8  # of the lifetime: a certificate for hours is renewed within hours
RENEW = "run `vgpu-webhook certs ensure`, or see why its CronJob or cert-manager did not"

# What the library raises for certificates that other programs made.
_UNREADABLE = (
    InvalidSignature,
    UnsupportedAlgorithm,
    TypeError,
    ValueError,
    x509.DuplicateExtension,
    x509.ExtensionNotFound,
    x509.InvalidVersion,
    x509.UnsupportedGeneralNameType,
)


def ca_bundle(setup: Setup) -> Results:
    """The bundle in each entry trusts the served certificate."""
    facts = setup.facts
    found = [
        (name, load(at(entry, "clientConfig", "caBundle")))
        for kind in CONFIGURATIONS
        for name, entry in entries(facts, kind).items()
    ]
    if not found:
        need(facts.gap(ObjectKind.MUTATING) or facts.gap(ObjectKind.VALIDATING))
        raise Ended(broken("there is no configuration with a caBundle", "see webhook-configurations"))
    bad = [f"{name} {bundle}" for name, bundle in found if isinstance(bundle, str)]
    if bad:
        raise Ended(broken(f"caBundle: {listed(bad)}: no call can succeed", RENEW))
    chain = _served(facts)
    untrusted = [
        name for name, bundle in found if not isinstance(bundle, str) and not trusted(chain, bundle, facts.now)
    ]
    if untrusted:
        yield broken(
            f"the caBundle of {listed(untrusted)} does not trust the served certificate: no call can succeed", RENEW
        )
    return f"the caBundle trusts the served certificate: {counted(len(found), 'webhook')}"


def serving_certificate(setup: Setup) -> Results:
    """The certificate is valid for long enough, and for the name that the API server calls."""
    facts = setup.facts
    leaf = _served(facts)[0]
    namespace, name = service(facts)
    called = f"{name}.{namespace}.svc"
    if called not in hosts(leaf):
        yield broken(f"the served certificate is not for {called}: no call can succeed", RENEW)
    result = check_validity(leaf, facts.now)
    message = f"the served certificate {result.message}"
    if result.status is not Status.OK:
        yield replace(result, message=message)
    return message


def _served(facts: Facts) -> Certificates:
    namespace, _ = service(facts)
    secret = known(facts.find(ObjectKind.SECRET, namespace, names.TLS_SECRET))
    if secret is None:
        raise Ended(broken(f"there is no Secret {namespace}/{names.TLS_SECRET}: the webhook cannot start", RENEW))
    chain = load(obj(secret, "data").get("tls.crt"))
    if isinstance(chain, str):
        raise Ended(broken(f"Secret {namespace}/{names.TLS_SECRET}: tls.crt {chain}", RENEW))
    return chain


def check_validity(certificate: x509.Certificate, now: datetime) -> CheckResult:
    """Check the dates; the message lacks its subject: `expired 2026-11-20 10:00 UTC: no call can succeed`."""
    start, end = certificate.not_valid_before_utc, certificate.not_valid_after_utc
    when = f"{end:%Y-%m-%d %H:%M} UTC"
    if now < start:
        return broken(f"is not valid before {start:%Y-%m-%d %H:%M} UTC: no call can succeed", "compare the clocks")
    if end < now:
        return broken(f"expired {when}: no call can succeed", RENEW)
    if end - now < min(SOON, (end - start) / SHARE):
        return warning(f"expires {when}, in {_format_days(end - now)}", RENEW)
    return ok(f"is valid until {when}, for {_format_days(end - now)}")


def _format_days(left: timedelta) -> str:
    return f"{left.days} days" if left.days > 1 else f"{left.total_seconds() / 3600:.0f} hours"


def load(encoded: object) -> Certificates | str:
    """Read base64 of PEM, as in Secrets and caBundles.

    Returns:
        The certificates, or what is wrong with the text.
    """
    if not isinstance(encoded, str) or not encoded:
        return "is empty"
    if len(encoded) > MAX_BYTES:
        return "is too large"
    try:
        found = x509.load_pem_x509_certificates(b64decode(encoded))
    except (NotBase64, *_UNREADABLE):
        return "is not a certificate in PEM"
    return tuple(found[:MAX_CERTIFICATES])


def trusted(chain: Certificates, bundle: Certificates, now: datetime) -> bool:
    """Whether a chain, the leaf first, leads to the bundle through certificates that are valid now."""
    reached = chain[0]
    for _ in range(MAX_CHAIN):
        if not _valid(reached, now):
            return False
        if reached in bundle or any(_valid(root, now) and _issued(reached, root) for root in bundle):
            return True
        issuer = next((other for other in chain[1:] if other != reached and _issued(reached, other)), None)
        if issuer is None:
            return False
        reached = issuer
    return False


def hosts(certificate: x509.Certificate) -> list[str]:
    """The DNS names in a certificate."""
    try:
        found = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName)
        return found.value.get_values_for_type(x509.DNSName)
    except _UNREADABLE:
        return []


def _valid(certificate: x509.Certificate, now: datetime) -> bool:
    return certificate.not_valid_before_utc <= now <= certificate.not_valid_after_utc


def _issued(certificate: x509.Certificate, issuer: x509.Certificate) -> bool:
    try:
        certificate.verify_directly_issued_by(issuer)
    except _UNREADABLE:
        return False
    return True
