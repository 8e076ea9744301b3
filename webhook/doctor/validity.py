"""For how long a certificate is still valid, in a sentence."""

from datetime import datetime, timedelta

from cryptography import x509

from webhook.doctor.check import Line, broken, ok, warning

SOON = timedelta(days=14)  # certificates are renewed long before
SHARE = 8  # of its life: what lasts for hours is renewed in hours
RENEW = "run `python -m certs ensure`, or see why its CronJob or cert-manager did not"


def lasting(certificate: x509.Certificate, now: datetime) -> Line:
    """How it stands at an instant; the message lacks its subject: `expired 2026-11-20 10:00 UTC: every call fails`."""
    start, end = certificate.not_valid_before_utc, certificate.not_valid_after_utc
    when = f"{end:%Y-%m-%d %H:%M} UTC"
    if now < start:
        return broken(f"is not valid before {start:%Y-%m-%d %H:%M} UTC: every call fails", "compare the clocks")
    if end < now:
        return broken(f"expired {when}: every call fails", RENEW)
    if end - now < min(SOON, (end - start) / SHARE):
        return warning(f"expires {when}, in {_spelled(end - now)}", RENEW)
    return ok(f"is valid until {when}, for {_spelled(end - now)}")


def _spelled(left: timedelta) -> str:
    return f"{left.days} days" if left.days > 1 else f"{left.total_seconds() / 3600:.0f} hours"
