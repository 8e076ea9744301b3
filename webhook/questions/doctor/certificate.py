"""The certificate that the webhook serves: for which names, and how long it is valid."""

import stat
from base64 import b64encode
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from webhook.console.texts import MAX_NAME
from webhook.errors import ConfigError
from webhook.inputs.files import read_bytes
from webhook.mistakes import mistake_in_file
from webhook.output.json import ResponseModel
from webhook.questions.doctor.checks.certificates import MAX_BYTES, RENEW, check_validity, hosts, load
from webhook.results import CheckResult, broken
from webhook.texts import shorten

MAX_NAMES = 20
MAX_FILE = 120


class ServingCertificate(ResponseModel):
    """The certificate of the webhook, checked now.

    Attributes:
        file: where it is.
        result: `ok`, `warning` if it expires soon, or `broken` if no client accepts it.
        subject: its distinguished name.
        names: the DNS names that it is for, the first 20.
        more_names: how many are left out.
        not_before, not_after: its validity, in UTC; None if it cannot be read.
        days_left: whole days; negative once it has expired.
    """

    file: str
    result: CheckResult
    subject: str = ""
    names: tuple[str, ...] = ()
    more_names: int = 0
    not_before: datetime | None = None
    not_after: datetime | None = None
    days_left: int | None = None


def check_certificate(path: Path, now: datetime | None = None) -> ServingCertificate:
    """Check the first certificate of a PEM file.

    Args:
        path: of the file.
        now: the instant; None is now.
    """
    try:
        found = load(b64encode(_read(path)).decode())
    except ConfigError as error:
        return _served(path, broken(str(error), "see that the file is there and that the console may read it"))
    if isinstance(found, str):
        return _served(path, broken(f"the file {found}", RENEW))
    leaf, at = found[0], now or datetime.now(UTC)
    names = hosts(leaf)
    return _served(
        path,
        check_validity(leaf, at),
        subject=shorten(leaf.subject.rfc4514_string(), MAX_NAME),
        names=tuple(shorten(name, MAX_NAME) for name in names[:MAX_NAMES]),
        more_names=max(len(names) - MAX_NAMES, 0),
        not_before=leaf.not_valid_before_utc,
        not_after=leaf.not_valid_after_utc,
        days_left=(leaf.not_valid_after_utc - at).days,
    )


def _served(path: Path, result: CheckResult, **more: Any) -> ServingCertificate:
    return ServingCertificate(file=shorten(str(path), MAX_FILE), result=result, **more)


def _read(path: Path) -> bytes:
    """The bytes of a regular file; to open a pipe could block for ever."""
    try:
        regular = stat.S_ISREG(path.stat().st_mode)
    except OSError as error:
        raise ConfigError(f"{path}: {mistake_in_file(error)}") from error
    if not regular:
        raise ConfigError(f"{path}: not a regular file")
    return read_bytes(path, MAX_BYTES)
