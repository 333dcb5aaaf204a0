"""TLS from PEM files, which the worker reads again when they change.

Certificates are valid for days or hours, and are renewed by replacing files. So the worker checks the files at each
handshake, and reads them if they changed. If it cannot use them (a key of another certificate, half a file), it logs
that once, and keeps the old ones for existing and new connections. Kubernetes replaces a mounted Secret by moving a
symbolic link, so certificate and key change together. If files change while they are read, the worker reads them again
at the next handshake.
"""

import logging
import os
import ssl
from collections.abc import Iterator
from pathlib import Path

import grpc
from msgspec import Struct

from admission_worker.errors import CertificateError

_LOG = logging.getLogger("admission_worker")

_Look = tuple[tuple[int, int, int], ...]
"""Time, size and inode of each file."""

ATTEMPTS = 3
"""Attempts at the start to read files that change meanwhile. A renewal replaces them once."""


class Tls(Struct, frozen=True, kw_only=True):
    """PEM files with which a worker serves TLS (1.2 and newer).

    Args:
        cert: the certificate, and its intermediate CAs.
        key: its private key, without a passphrase.
        client_ca: CAs: the worker serves only clients with a certificate of one of them; None: all clients.
    """

    cert: str | os.PathLike[str]
    key: str | os.PathLike[str]
    client_ca: str | os.PathLike[str] | None = None

    def files(self) -> Iterator[Path]:
        """All files."""
        yield Path(self.cert)
        yield Path(self.key)
        if self.client_ca is not None:
            yield Path(self.client_ca)


class Certificates:
    """The last valid content of the files.

    Args:
        tls: the files.

    Raises:
        CertificateError: they cannot be used. After the start, the worker logs that instead.
    """

    def __init__(self, tls: Tls) -> None:
        self._tls = tls
        self._seen: _Look | None = None
        self._reported = ""
        for _ in range(ATTEMPTS):
            seen = _look(tls)
            self._used = _read(tls)
            if _look(tls) == seen:
                self._seen = seen
                break

    def credentials(self) -> grpc.ServerCredentials:
        """For a gRPC server's port; each handshake gets the current files."""
        return grpc.dynamic_ssl_server_credentials(
            self._used, self._changed, require_client_authentication=self._tls.client_ca is not None
        )

    def _changed(self) -> grpc.ServerCertificateConfiguration | None:
        """The configuration if it changed; with None gRPC keeps the current one."""
        try:
            seen = _look(self._tls)
            if seen == self._seen:
                return None
            read = _read(self._tls)
            if _look(self._tls) != seen:
                return None  # they are changing: read them at the next handshake
        except CertificateError as error:
            if str(error) != self._reported:  # once, and not at each handshake
                self._reported = str(error)
                _LOG.error("%s; what was used before stays", error)
            return None
        self._seen, self._reported = seen, ""
        _LOG.info("the certificate was read again from %s", self._tls.cert)
        return read


def _look(tls: Tls) -> _Look:
    try:
        states = [path.stat() for path in tls.files()]
    except OSError as error:
        raise CertificateError(f"{error.filename} cannot be read: {error.strerror}") from None
    return tuple((state.st_mtime_ns, state.st_size, state.st_ino) for state in states)


def _read(tls: Tls) -> grpc.ServerCertificateConfiguration:
    """The files for gRPC, after OpenSSL has checked them: with invalid files gRPC fails each handshake."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    try:
        content = [path.read_bytes() for path in tls.files()]
    except OSError as error:
        raise CertificateError(f"{error.filename} cannot be read: {error.strerror}") from None
    try:
        context.load_cert_chain(tls.cert, tls.key, password="")
    except (OSError, ValueError) as error:
        message = f"{tls.cert} and {tls.key} are no certificate with its key without a passphrase: {_reason(error)}"
        raise CertificateError(message) from None
    authorities = None
    if tls.client_ca is not None:
        authorities = content[2]
        try:
            context.load_verify_locations(tls.client_ca)
        except (OSError, ValueError) as error:
            raise CertificateError(f"{tls.client_ca} holds no certificates: {_reason(error)}") from None
    return grpc.ssl_server_certificate_configuration([(content[1], content[0])], root_certificates=authorities)


def _reason(error: Exception) -> str:
    """OpenSSL's reason, without its position in OpenSSL's source."""
    return str(getattr(error, "reason", None) or error).lower().replace("_", " ")
