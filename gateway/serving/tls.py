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

import ssl
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import structlog
from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import serialization
from msgspec import Struct

_LOG: Final = structlog.get_logger(__name__)

_TLS12_CIPHERS: Final = "ECDHE+AESGCM:ECDHE+CHACHA20"


class TlsError(Exception):
    """A certificate, key or CA cannot be used. The message: which file, why, and what the operator can do."""


class Validity(Struct, frozen=True, kw_only=True):
    """When a certificate is valid: from ``begins`` to ``ends``, both timezone-aware. ``cert``: its file."""

    cert: Path
    begins: datetime
    ends: datetime

    def problem(self, now: datetime) -> str | None:
        """Why it is not valid at ``now`` (timezone-aware); None if it is valid."""
        what = f"TLS certificate {self.cert}"
        if now < self.begins:
            return f"{what} is valid only from {self.begins.isoformat()}; check this machine's clock"
        if now > self.ends:
            return f"{what} expired on {self.ends.isoformat()}; renew it"
        return None


def server_context(
    cert: Path, key: Path, client_cas: Sequence[Path] = (), *, certificate_optional: bool = False
) -> ssl.SSLContext:
    """A context for the HTTP server.

    ``cert`` is a PEM file with the server's certificate and, after it, the chain up to a CA that clients trust; ``key``
    the PEM file of its private key, without a password. With ``client_cas`` (PEM, one or more in each), clients must
    present a certificate of one of them; with ``certificate_optional``, or none.

    Raises TlsError.
    """
    certificate = _certificate(cert)
    _require_pair(certificate, cert, key)
    _warn(certificate, cert)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_ciphers(_TLS12_CIPHERS)
    context.options |= ssl.OP_NO_COMPRESSION | ssl.OP_NO_RENEGOTIATION | ssl.OP_NO_TICKET
    context.num_tickets = 0
    context.set_alpn_protocols(["http/1.1"])
    try:
        # The password is never needed (such a key was refused above), but without one OpenSSL would call the terminal.
        context.load_cert_chain(cert, key, password="")
    except (ssl.SSLError, OSError) as error:
        raise TlsError(f"TLS certificate {cert} with key {key}: OpenSSL refuses them: {_reason(error)}") from error
    for client_ca in client_cas:
        _trust_clients(context, client_ca)
        context.verify_mode = ssl.CERT_OPTIONAL if certificate_optional else ssl.CERT_REQUIRED
    return context


def validity_of(cert: Path) -> Validity:
    """When the first certificate in a PEM file is valid. Raises TlsError if it cannot be read."""
    return _validity(_certificate(cert), cert)


def _validity(certificate: x509.Certificate, cert: Path) -> Validity:
    return Validity(cert=cert, begins=certificate.not_valid_before_utc, ends=certificate.not_valid_after_utc)


def _warn(certificate: x509.Certificate, cert: Path) -> None:
    """Log in advance what the API server will refuse."""
    problem = _validity(certificate, cert).problem(datetime.now(UTC))
    if problem is not None:
        _LOG.error("the API server will refuse the gateway's certificate", why=problem)
    try:
        certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName)
    except x509.ExtensionNotFound:
        why = f"TLS certificate {cert} has no subjectAltName, and its subject does not count; add SERVICE.NAMESPACE.svc"
        _LOG.error("the API server will refuse the gateway's certificate", why=why)
    except ValueError:
        # Extensions that cryptography cannot read may still be good enough for OpenSSL and Go.
        return


def _certificate(path: Path) -> x509.Certificate:
    """The first certificate of a PEM file."""
    content = _content(path, "TLS certificate", "--tls-cert")
    try:
        certificate = x509.load_pem_x509_certificates(content)[0]
        certificate.public_key()
    except (ValueError, UnsupportedAlgorithm) as error:
        raise TlsError(
            f"TLS certificate {path}: no readable PEM certificate in it ({_observed(content)}); it must begin with "
            "-----BEGIN CERTIFICATE-----"
        ) from error
    return certificate


def _require_pair(certificate: x509.Certificate, cert: Path, key: Path) -> None:
    content = _content(key, "TLS key", "--tls-key")
    try:
        private = serialization.load_pem_private_key(content, password=None)
    except TypeError as error:
        raise TlsError(
            f"TLS key {key}: it is protected by a password, which the gateway cannot enter; "
            "remove it with 'openssl pkey -in FILE -out FILE' and protect the file instead"
        ) from error
    except (ValueError, UnsupportedAlgorithm) as error:
        raise TlsError(
            f"TLS key {key}: no readable PEM private key in it ({_observed(content)}); it must begin with "
            "-----BEGIN PRIVATE KEY-----"
        ) from error
    if private.public_key() != certificate.public_key():
        raise TlsError(
            f"TLS key {key}: it does not belong to the first certificate in {cert} "
            f"(subject {certificate.subject.rfc4514_string()!r}); give the pair that was issued together"
        )


def _trust_clients(context: ssl.SSLContext, client_ca: Path) -> None:
    """Accept client certificates of this CA."""
    content = _content(client_ca, "CA for client certificates", "--client-ca")
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
        raise TlsError(
            f"{what} {path}: {error.strerror or error}; give {flag} a PEM file that this user can read"
        ) from error


def _observed(content: bytes) -> str:
    """A description of a file's content that quotes none of it: it may be a secret."""
    if not content.strip():
        return "it is empty"
    if content.startswith(b"0"):
        return "it looks like DER, the binary form"
    return f"{len(content)} bytes of something else"


def _reason(error: Exception) -> str:
    return getattr(error, "reason", None) or str(error)
