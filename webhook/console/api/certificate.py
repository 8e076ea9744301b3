"""The certificate that the webhook serves: for whom it is, and for how long."""

import stat
from base64 import b64encode
from datetime import UTC, datetime
from pathlib import Path

from webhook.console.api.operation import Answer
from webhook.doctor.certificates import MAX_BYTES, hosts, load
from webhook.doctor.check import Status
from webhook.doctor.validity import RENEW, lasting
from webhook.errors import ConfigError
from webhook.mistakes import mistake_in_file
from webhook.settings.files import read_bytes
from webhook.texts import shorten

MAX_NAMES = 20
MAX_NAME = 253
MAX_FILE = 120


class ServingCertificate(Answer):
    """The certificate of the webhook, judged now.

    Attributes:
        file: where it is.
        status: `ok`, `warning` if it expires soon, or `broken` if nobody accepts it.
        message: how it stands, in a sentence.
        remedy: what to do; empty if all is well.
        subject: as it calls itself.
        names: the DNS names that it is for, the first 20.
        more_names: how many are not told.
        not_before, not_after: from when until when it is valid, in UTC; None if it cannot be read.
        days_left: whole days; negative once it has expired.
    """

    file: str
    status: Status
    message: str
    remedy: str
    subject: str = ""
    names: tuple[str, ...] = ()
    more_names: int = 0
    not_before: datetime | None = None
    not_after: datetime | None = None
    days_left: int | None = None


def certificate(path: Path, now: datetime | None = None) -> ServingCertificate:
    """Judge the first certificate of a PEM file.

    Args:
        path: of the file.
        now: the instant; None is now.
    """
    file = shorten(str(path), MAX_FILE)
    try:
        found = load(b64encode(_read(path)).decode())
    except ConfigError as error:
        remedy = "see that the file is there and that the console may read it"
        return ServingCertificate(file=file, status=Status.BROKEN, message=str(error), remedy=remedy)
    if isinstance(found, str):
        return ServingCertificate(file=file, status=Status.BROKEN, message=f"the file {found}", remedy=RENEW)
    leaf = found[0]
    at = now or datetime.now(UTC)
    line = lasting(leaf, at)
    names = hosts(leaf)
    return ServingCertificate(
        file=file,
        status=line.status,
        message=line.message,
        remedy=line.remedy,
        subject=shorten(leaf.subject.rfc4514_string(), MAX_NAME),
        names=tuple(shorten(name, MAX_NAME) for name in names[:MAX_NAMES]),
        more_names=max(len(names) - MAX_NAMES, 0),
        not_before=leaf.not_valid_before_utc,
        not_after=leaf.not_valid_after_utc,
        days_left=(leaf.not_valid_after_utc - at).days,
    )


def _read(path: Path) -> bytes:
    """The bytes of a regular file: to open a pipe could take for ever."""
    try:
        regular = stat.S_ISREG(path.stat().st_mode)
    except OSError as error:
        raise ConfigError(f"{path}: {mistake_in_file(error)}") from error
    if not regular:
        raise ConfigError(f"{path}: no regular file")
    return read_bytes(path, MAX_BYTES)
