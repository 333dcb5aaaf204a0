"""The TLS of the HTTP server: what it offers, and whether certificate and key are usable.

    ==================  ==========================================================================================
    versions            1.3, and 1.2 with forward secrecy and authenticated ciphers only
    protocol (ALPN)     ``http/1.1``: all that the API server offers to a Service or a remote url
    session tickets     none: the API server never resumes a session, so each would be made for nothing
    renegotiation       none (TLS 1.2)
    compression         none
    client certificate  verified, if there is a CA for it; required, unless clients may have other credentials
    ==================  ==========================================================================================

The gateway serves a certificate that has expired, or is not valid yet, and logs an error: the API server refuses it and
reports why, ``/readyz`` fails, and a renewal may follow (``served_certificate``). With an unusable certificate the
gateway does not start.
"""

import os
import ssl
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Any, Final

import structlog
from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import serialization
from msgspec import Struct

from gateway.certificates.pair import CertificatePair

_LOG: Final = structlog.get_logger(__name__)

_ALERT: Final = "alert"

_TLS12_CIPHERS: Final = "ECDHE+AESGCM:ECDHE+CHACHA20"


class _Handshake(ssl.SSLObject):
    """The TLS of one connection. The error of a failed handshake keeps the alert for the client (``alert_of``).

    Neither uvloop nor asyncio sends it: they close the connection, and the client gets a reset without a reason.
    """

    outgoing: ssl.MemoryBIO

    def do_handshake(self) -> None:
        try:
            super().do_handshake()
        except (ssl.SSLWantReadError, ssl.SSLWantWriteError):
            raise
        except ssl.SSLError as error:
            setattr(error, _ALERT, self.outgoing.read())
            raise


class _ServerContext(ssl.SSLContext):
    sslobject_class = _Handshake

    def wrap_bio(self, incoming: ssl.MemoryBIO, outgoing: ssl.MemoryBIO, *args: Any, **options: Any) -> ssl.SSLObject:
        made = super().wrap_bio(incoming, outgoing, *args, **options)
        if isinstance(made, _Handshake):
            made.outgoing = outgoing
        return made


def alert_of(error: ssl.SSLError) -> bytes:
    """What a failed handshake has left to send to the client; empty if that is nothing."""
    alert: bytes = getattr(error, _ALERT, b"")
    return alert


class TlsError(Exception):
    """A certificate, key or CA cannot be used. The message: which file, why, and what the operator can do."""


class Validity(Struct, frozen=True, kw_only=True):
    """When a certificate is valid: from ``begins`` to ``ends``, both timezone-aware. ``name``: where it is."""

    name: str
    begins: datetime
    ends: datetime

    def problem(self, now: datetime) -> str | None:
        """Why it is not valid at ``now`` (timezone-aware); None if it is valid."""
        if now < self.begins:
            return f"{self.name} is valid only from {self.begins.isoformat()}; check this machine's clock"
        if now > self.ends:
            return f"{self.name} expired on {self.ends.isoformat()}; renew it"
        return None


def read_pair(cert: Path, key: Path) -> CertificatePair:
    """A pair in files.

    ``cert`` is a PEM file with the server's certificate and, after it, the chain up to a CA that clients trust; ``key``
    the PEM file of its private key, without a password.

    Raises TlsError.
    """
    names = f"TLS certificate {cert}", f"TLS key {key}"
    return CertificatePair(
        certificate=_content(cert, names[0], "--tls-cert"),
        key=_content(key, names[1], "--tls-key"),
        certificate_name=names[0],
        key_name=names[1],
    )


def server_context(
    pair: CertificatePair, client_cas: Sequence[Path] = (), *, certificate_optional: bool = False
) -> ssl.SSLContext:
    """A context for the HTTP server.

    With ``client_cas`` (PEM, one or more in each), clients must present a certificate of one of them; with
    ``certificate_optional``, or none.

    Raises TlsError.
    """
    certificate = _certificate(pair)
    _require_pair(certificate, pair)
    _warn(certificate, pair)
    context = _ServerContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_ciphers(_TLS12_CIPHERS)
    context.options |= ssl.OP_NO_COMPRESSION | ssl.OP_NO_RENEGOTIATION | ssl.OP_NO_TICKET
    context.num_tickets = 0
    context.set_alpn_protocols(["http/1.1"])
    try:
        with _as_file(pair.certificate + b"\n" + pair.key) as file:
            # The password is never needed (such a key was refused above). Without one OpenSSL would call the terminal.
            context.load_cert_chain(file, password="")
    except (ssl.SSLError, OSError) as error:
        raise TlsError(
            f"{pair.certificate_name} with {pair.key_name}: OpenSSL refuses them: {_reason(error)}"
        ) from error
    for client_ca in client_cas:
        _trust_clients(context, client_ca)
        context.verify_mode = ssl.CERT_OPTIONAL if certificate_optional else ssl.CERT_REQUIRED
    return context


def validity_of(pair: CertificatePair) -> Validity:
    """When the first certificate of a pair is valid. Raises TlsError if it cannot be read."""
    return _validity(_certificate(pair), pair)


@contextmanager
def _as_file(content: bytes) -> Iterator[str]:
    """The path of a file with this content, which OpenSSL wants: in memory where the system has that, else private."""
    with os.fdopen(os.memfd_create("tls"), "wb") if hasattr(os, "memfd_create") else NamedTemporaryFile() as file:
        file.write(content)
        file.flush()
        yield file.name if isinstance(file.name, str) else f"/proc/self/fd/{file.name}"


def _validity(certificate: x509.Certificate, pair: CertificatePair) -> Validity:
    begins, ends = certificate.not_valid_before_utc, certificate.not_valid_after_utc
    return Validity(name=pair.certificate_name, begins=begins, ends=ends)


def _warn(certificate: x509.Certificate, pair: CertificatePair) -> None:
    """Log in advance what the API server will refuse."""
    problem = _validity(certificate, pair).problem(datetime.now(UTC))
    if problem is not None:
        _LOG.error("the API server will refuse the gateway's certificate", why=problem)
    try:
        certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName)
    except x509.ExtensionNotFound:
        why = (
            f"{pair.certificate_name} has no subjectAltName, and its subject does not count; add SERVICE.NAMESPACE.svc"
        )
        _LOG.error("the API server will refuse the gateway's certificate", why=why)
    except ValueError:
        # Extensions that cryptography cannot read may still be good enough for OpenSSL and Go.
        return


def _certificate(pair: CertificatePair) -> x509.Certificate:
    """The first certificate of a pair."""
    try:
        certificate = x509.load_pem_x509_certificates(pair.certificate)[0]
        certificate.public_key()
    except (ValueError, UnsupportedAlgorithm) as error:
        raise TlsError(
            f"{pair.certificate_name}: no readable PEM certificate in it ({_observed(pair.certificate)}); "
            "it must begin with -----BEGIN CERTIFICATE-----"
        ) from error
    return certificate


def _require_pair(certificate: x509.Certificate, pair: CertificatePair) -> None:
    try:
        private = serialization.load_pem_private_key(pair.key, password=None)
    except TypeError as error:
        raise TlsError(
            f"{pair.key_name}: it is protected by a password, which the gateway cannot enter; "
            "remove it with 'openssl pkey -in FILE -out FILE' and protect the file instead"
        ) from error
    except (ValueError, UnsupportedAlgorithm) as error:
        raise TlsError(
            f"{pair.key_name}: no readable PEM private key in it ({_observed(pair.key)}); "
            "it must begin with -----BEGIN PRIVATE KEY-----"
        ) from error
    if private.public_key() != certificate.public_key():
        raise TlsError(
            f"{pair.key_name}: it does not belong to the first certificate in {pair.certificate_name} "
            f"(subject {certificate.subject.rfc4514_string()!r}); give the pair that was issued together"
        )


def _trust_clients(context: ssl.SSLContext, client_ca: Path) -> None:
    """Accept client certificates of this CA."""
    content = _content(client_ca, f"CA for client certificates {client_ca}", "--client-ca")
    try:
        context.load_verify_locations(cadata=content.decode("ascii"))
    except (ssl.SSLError, ValueError) as error:
        raise TlsError(
            f"CA for client certificates {client_ca}: no readable PEM certificate in it ({_observed(content)}); "
            "it must begin with -----BEGIN CERTIFICATE-----"
        ) from error


def _content(path: Path, what: str, flag: str) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise TlsError(f"{what}: {error.strerror or error}; give {flag} a PEM file that this user can read") from error


def _observed(content: bytes) -> str:
    """A description of a file's content that quotes none of it: it may be a secret."""
    if not content.strip():
        return "it is empty"
    if content.startswith(b"0"):
        return "it looks like DER, the binary form"
    return f"{len(content)} bytes of something else"


def _reason(error: Exception) -> str:
    return getattr(error, "reason", None) or str(error)
