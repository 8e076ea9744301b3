"""Certificates in files, as a Kubernetes Secret mounts them: `tls.crt`, `tls.key`, `ca.crt`."""

import os
from pathlib import Path

from certs.pki import Pair

CERTIFICATE = "tls.crt"
KEY = "tls.key"
CA = "ca.crt"


def write(directory: Path, leaf: Pair, ca_certificate: bytes) -> None:
    """Write a serving pair and its authority; each file is replaced at once, keys are readable by the owner only.

    Raises:
        OSError: the directory cannot be written.
    """
    directory.mkdir(parents=True, exist_ok=True)
    replace(directory / KEY, leaf.key, 0o600)
    replace(directory / CERTIFICATE, leaf.certificate, 0o644)
    replace(directory / CA, ca_certificate, 0o644)


def replace(path: Path, content: bytes, mode: int) -> None:
    """Replace a file so that a reader sees the old content or the new, never a part."""
    fresh = path.with_name(f".{path.name}.new")
    fresh.unlink(missing_ok=True)
    descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    fresh.replace(path)
