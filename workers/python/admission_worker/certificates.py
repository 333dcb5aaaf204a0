"""TLS from PEM files, which are read again when they change.

Certificates live for days or hours, and whoever renews them replaces files. So at each handshake the files are looked
at, and read if they are no longer those that were read last. What cannot be used (a key that does not belong to its
certificate, half a file) is logged once, and what was used stays: connections that are there, and new ones. A mounted
Secret is replaced by moving a symbolic link, so certificate and key change together; files that change while they are
read are read at the next handshake.
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
"""How often files are read at the start that change meanwhile. Whoever renews them does so once."""


class Tls(Struct, frozen=True, kw_only=True):
    """PEM files with which a worker serves TLS (1.2 and newer).

    Args:
        cert: the certificate, and those between it and its authority.
        key: its private key, without a passphrase.
        client_ca: authorities: only clients with a certificate of one of them are served; None: everybody is.
    """

    cert: str | os.PathLike[str]
    key: str | os.PathLike[str]
    client_ca: str | os.PathLike[str] | None = None

    def files(self) -> Iterator[Path]:
        """All of them."""
        yield Path(self.cert)
        yield Path(self.key)
        if self.client_ca is not None:
            yield Path(self.client_ca)


class Certificates:
    """What the files held when they could be used last.

    Args:
        tls: the files.

    Raises:
        CertificateError: they cannot be used. Later that is logged.
    """

    def __init__(self, tls: Tls) -> None:
        self._tls = tls
        self._seen: _Look | None = None
        self._told = ""
        for _ in range(ATTEMPTS):
            seen = _look(tls)
            self._used = _read(tls)
            if _look(tls) == seen:
                self._seen = seen
                break

    def credentials(self) -> grpc.ServerCredentials:
        """For a gRPC server's port; each handshake asks for what is to be used."""
        return grpc.dynamic_ssl_server_credentials(
            self._used, self._changed, require_client_authentication=self._tls.client_ca is not None
        )

    def _changed(self) -> grpc.ServerCertificateConfiguration | None:
        """The configuration if it is another one than before; gRPC keeps what it has where this gives None."""
        try:
            seen = _look(self._tls)
            if seen == self._seen:
                return None
            read = _read(self._tls)
            if _look(self._tls) != seen:
                return None  # they change just now: at the next handshake
        except CertificateError as error:
            if str(error) != self._told:  # once, and not at each handshake
                self._told = str(error)
                _LOG.error("%s; what was used before stays", error)
            return None
        self._seen, self._told = seen, ""
        _LOG.info("the certificate was read again from %s", self._tls.cert)
        return read


def _look(tls: Tls) -> _Look:
    try:
        states = [path.stat() for path in tls.files()]
    except OSError as error:
        raise CertificateError(f"{error.filename} cannot be read: {error.strerror}") from None
    return tuple((state.st_mtime_ns, state.st_size, state.st_ino) for state in states)


def _read(tls: Tls) -> grpc.ServerCertificateConfiguration:
    """The files for gRPC, after OpenSSL has found that they can be used: gRPC would fail each handshake instead."""
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
    """OpenSSL's reason, without its place in OpenSSL's source."""
    return str(getattr(error, "reason", None) or error).lower().replace("_", " ")
