"""The TLS of the listener: the serving certificate and the client CA, both swapped without a restart.

Each handshake uses the newest good pair, through the SNI callback: a context that is changed in place would keep an
old RSA certificate beside a new ECDSA one. Open connections keep their pair.
"""

import os
import ssl
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding

from webhook.cluster.file_watcher import ReadAgain
from webhook.errors import ConfigError
from webhook.mistakes import mistake_in_file


class ServingPair(NamedTuple):
    """A certificate chain and its key, as PEM, and when the leaf begins and stops being valid."""

    certificate: bytes
    key: bytes
    begins: datetime
    expires: datetime

    @property
    def valid(self) -> bool:
        """Whether clients accept it now."""
        return self.begins <= datetime.now(UTC) < self.expires


class _Context(ssl.SSLContext):
    """A context with the CA certificates (DER) that verify its clients; None if clients need no certificate."""

    client_ca: bytes | None


class VerifiedClient(NamedTuple):
    """A client whose certificate was verified in the handshake.

    Attributes:
        client_ca: the CA certificates that verified it.
        expires: when the client certificate expires, in seconds since 1970.
    """

    client_ca: bytes
    expires: float


class ServingTls:
    """The TLS context that serves the last good certificate and verifies clients with the last good client CA.

    Attributes:
        context: for the listener; follows every load.
        client_ca: the CA certificates (DER) that verify clients; None if clients need no certificate.
    """

    def __init__(self, certificate_path: Path, key_path: Path, client_ca_path: Path | None = None) -> None:
        """Load the files.

        Args:
            certificate_path: PEM, leaf first.
            key_path: PEM, not encrypted.
            client_ca_path: PEM, one certificate or more; None asks clients for no certificate.

        Raises:
            ConfigError: a file cannot be read or is no PEM, or certificate and key do not match.
        """
        self.certificate_path = certificate_path
        self.key_path = key_path
        self.client_ca_path = client_ca_path
        self.client_ca = None if client_ca_path is None else _read_client_ca(client_ca_path)
        self._pair = self._read_pair()
        self._current = self._context(self._pair, self.client_ca)
        self.context = self._context(self._pair, self.client_ca)
        self.context.sni_callback = self._choose

    @property
    def expires(self) -> datetime:
        """When the served leaf stops being valid."""
        return self._pair.expires

    def is_outdated(self, client: VerifiedClient) -> bool:
        """Whether a new handshake might refuse the client: its certificate expired, or the client CA was replaced."""
        return client.client_ca != self.client_ca or client.expires < time.time()

    def load_pair(self) -> None:
        """Read the files again, and serve their certificate to new connections.

        Raises:
            ConfigError: as in the constructor, or it is not valid now; the last good pair stays in use.
        """
        pair = self._read_pair()
        if self._pair.valid and not pair.valid:
            raise ReadAgain(
                f"{self.certificate_path}: valid from {pair.begins:%Y-%m-%d %H:%M} to {pair.expires:%Y-%m-%d %H:%M} UTC, which "
                "is not now; put a valid certificate and its key there"
            )
        self._current = self._context(pair, self.client_ca)
        self._pair = pair

    def load_client_ca(self) -> None:
        """Read the file again, and verify new clients with its CA certificates.

        Raises:
            ConfigError: as in the constructor; the last good ones stay in use.
        """
        if self.client_ca_path is not None:
            client_ca = _read_client_ca(self.client_ca_path)
            self._current = self._context(self._pair, client_ca)
            self.client_ca = client_ca

    def _read_pair(self) -> ServingPair:
        certificate, key = _read(self.certificate_path), _read(self.key_path)
        try:
            leaf = x509.load_pem_x509_certificate(certificate)
        except ValueError as error:
            raise ConfigError(f"{self.certificate_path}: no PEM certificate; give the chain, leaf first") from error
        return ServingPair(certificate, key, leaf.not_valid_before_utc, leaf.not_valid_after_utc)

    def _context(self, pair: ServingPair, client_ca: bytes | None) -> _Context:
        context = _Context(ssl.PROTOCOL_TLS_SERVER)
        context.client_ca = client_ca
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        context.set_alpn_protocols(["http/1.1"])
        try:
            # OpenSSL gets the bytes that were read, even if the files have changed since.
            with _in_memory(pair.certificate) as certificate_file, _in_memory(pair.key) as key_file:
                context.load_cert_chain(certificate_file, key_file, password=_no_password)
        except (ssl.SSLError, ValueError) as error:
            mismatch = getattr(error, "reason", None) == "KEY_VALUES_MISMATCH"
            reason = "the key is another certificate's" if mismatch else "one is not PEM, or the key has a password"
            raise ConfigError(
                f"{self.certificate_path} and {self.key_path} cannot be served as a pair: {reason}"
            ) from error
        except OSError as error:  # as when too many files are open
            raise ConfigError(f"{self.certificate_path}: {mistake_in_file(error)}") from error
        if client_ca is not None:
            _verify_clients(context, client_ca)
        return context

    def _choose(self, connection: ssl.SSLObject, _name: str | None, _context: ssl.SSLContext) -> None:
        connection.context = self._current


def verified_client(connection: ssl.SSLObject) -> VerifiedClient | None:
    """The verified client of a connection; None if it presented no certificate, or needs none."""
    context = connection.context
    if not isinstance(context, _Context) or context.client_ca is None:
        return None
    certificate = connection.getpeercert()
    if not certificate:
        return None
    return VerifiedClient(context.client_ca, ssl.cert_time_to_seconds(str(certificate["notAfter"])))


def _verify_clients(context: ssl.SSLContext, client_ca: bytes) -> None:
    """Request a certificate from clients. Without one they can connect; with an invalid one they cannot."""
    context.verify_mode = ssl.CERT_OPTIONAL
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN  # as Go does it: the file may hold an intermediate CA alone
    context.load_verify_locations(cadata=client_ca)
    # A resumed session would skip the verification, so every connection makes a full handshake.
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    context.num_tickets = 0


def _read_client_ca(path: Path) -> bytes:
    try:
        certificates = x509.load_pem_x509_certificates(_read(path))
    except ValueError as error:
        raise ConfigError(f"{path}: not PEM certificates; give the CA that signs the clients") from error
    return b"".join(certificate.public_bytes(Encoding.DER) for certificate in certificates)


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise ConfigError(f"{path}: {mistake_in_file(error)}") from error


@contextmanager
def _in_memory(content: bytes) -> Iterator[str]:
    """A path to bytes that are not written to a disk."""
    descriptor = os.memfd_create("pem", os.MFD_CLOEXEC)
    try:
        os.write(descriptor, content)
        yield f"/proc/self/fd/{descriptor}"
    finally:
        os.close(descriptor)


def _no_password() -> str:
    raise ValueError("the key is encrypted; a server cannot prompt for its password")
