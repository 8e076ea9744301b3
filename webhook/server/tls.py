"""The serving certificate, swapped without a restart.

Each handshake takes the newest good pair, through the SNI callback: a context that is changed in place would keep an
old RSA certificate beside a new ECDSA one. Open connections keep theirs.
"""

import os
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path

from cryptography import x509

from webhook.errors import ConfigError


class ServingCertificate:
    """A certificate and key in two files, and the TLS context that serves the last good pair of them.

    Attributes:
        certificate_path, key_path: PEM files; the certificate's may hold a chain, leaf first.
        context: for the listener; follows every `load`.
        expires: when the served leaf stops being valid.
    """

    def __init__(self, certificate_path: str | Path, key_path: str | Path) -> None:
        """Load the pair.

        Raises:
            ConfigError: a file cannot be read, is no PEM, or the two do not match.
        """
        self.certificate_path = Path(certificate_path)
        self.key_path = Path(key_path)
        self._current, self.expires = self._read()
        self.context, _ = self._read()
        self.context.sni_callback = self._choose

    def load(self) -> None:
        """Serve what the files hold now to the next connection.

        Raises:
            ConfigError: as on construction; the last good pair stays.
        """
        self._current, self.expires = self._read()

    def _read(self) -> tuple[ssl.SSLContext, datetime]:
        certificate, key = _read(self.certificate_path), _read(self.key_path)
        try:
            leaf = x509.load_pem_x509_certificate(certificate)
        except ValueError as error:
            raise ConfigError(f"{self.certificate_path}: no PEM certificate: {error}") from error
        return self._context(certificate, key), leaf.not_valid_after_utc

    def _context(self, certificate: bytes, key: bytes) -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        context.set_alpn_protocols(["http/1.1"])
        # The bytes that were read are the bytes that are loaded, even if the files change in between.
        with _in_memory(certificate) as certificate_file, _in_memory(key) as key_file:
            try:
                context.load_cert_chain(certificate_file, key_file, password=_no_password)
            except (ssl.SSLError, ValueError) as error:
                reason = getattr(error, "reason", None) or error
                raise ConfigError(
                    f"{self.certificate_path} and {self.key_path} are no pair that can be served: {reason}"
                ) from error
        return context

    def _choose(self, connection: ssl.SSLObject, _name: str | None, _context: ssl.SSLContext) -> None:
        connection.context = self._current


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise ConfigError(f"{path}: {error.strerror or error}") from error


@contextmanager
def _in_memory(content: bytes) -> Iterator[str]:
    """A path to bytes that never touch a disk."""
    descriptor = os.memfd_create("pem", os.MFD_CLOEXEC)
    try:
        os.write(descriptor, content)
        yield f"/proc/self/fd/{descriptor}"
    finally:
        os.close(descriptor)


def _no_password() -> str:
    raise ValueError("the key is encrypted; a server cannot ask for its password")
