"""Builds certificates: names and extensions as Go and OpenSSL check them.

All keys are ECDSA P-256: the cheapest handshake for both sides (the API server never resumes a session).
"""

import ipaddress
import re
from datetime import datetime
from typing import Final

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID
from msgspec import Struct

# RFC 1123 labels, a wildcard in front at most; 253 characters are the longest name that DNS can carry.
_DNS_NAME: Final = re.compile(r"(\*\.)?[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?(\.[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?)*")
_LONGEST_DNS_NAME: Final = 253


class Period(Struct, frozen=True, kw_only=True):
    """When a certificate is valid; both timezone-aware, to the second."""

    begins: datetime
    ends: datetime


class CertificateAuthority(Struct, frozen=True, kw_only=True):
    """A CA that can sign: its certificate and private key."""

    certificate: x509.Certificate
    key: ec.EllipticCurvePrivateKey


def general_name(name: str) -> x509.GeneralName:
    """The subjectAltName for a DNS name or an IP address; ValueError if it is neither."""
    try:
        return x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        pass
    lowered = name.lower()
    if len(lowered) > _LONGEST_DNS_NAME or not _DNS_NAME.fullmatch(lowered):
        raise ValueError(
            f"{name!r} is neither an IP address nor a DNS name (letters, digits, '-' and '.', at most "
            f"{_LONGEST_DNS_NAME} characters); write international names in their xn-- form"
        )
    return x509.DNSName(lowered)


def made_ca(subject: x509.Name, key: ec.EllipticCurvePrivateKey, period: Period) -> x509.Certificate:
    """A self-signed CA certificate for ``key``. It may sign server certificates, but no other CA."""
    return (
        _builder(subject, subject, key, period)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_usage(signs_certificates=True), critical=True)
        .sign(key, hashes.SHA256())
    )


def made_server_certificate(
    subject: x509.Name,
    key: ec.EllipticCurvePrivateKey,
    names: frozenset[x509.GeneralName],
    authority: CertificateAuthority,
    period: Period,
) -> x509.Certificate:
    """A server certificate for ``key`` and all ``names``, signed by ``authority``.

    The names are alternative names, IP addresses as such, and not in the subject. Go: "certificate relies on legacy
    Common Name field, use SANs instead", "cannot validate certificate for 127.0.0.1 because it doesn't contain any IP
    SANs".
    """
    ordered = sorted(names, key=lambda name: (isinstance(name, x509.IPAddress), str(name.value)))
    signer = x509.AuthorityKeyIdentifier.from_issuer_public_key(authority.key.public_key())
    return (
        _builder(subject, authority.certificate.subject, key, period)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_usage(signs_certificates=False), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(x509.SubjectAlternativeName(ordered), critical=False)
        .add_extension(signer, critical=False)
        .sign(authority.key, hashes.SHA256())
    )


def covered_names(certificate: x509.Certificate) -> frozenset[x509.GeneralName]:
    """The subject alternative names of a certificate; empty if they cannot be read."""
    try:
        return frozenset(certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value)
    except (x509.ExtensionNotFound, x509.DuplicateExtension, ValueError):
        return frozenset()


def is_ca(certificate: x509.Certificate) -> bool:
    """Whether a certificate may sign others."""
    try:
        return certificate.extensions.get_extension_for_class(x509.BasicConstraints).value.ca
    except (x509.ExtensionNotFound, x509.DuplicateExtension, ValueError):
        return False


def is_issued_by(certificate: x509.Certificate, ca: x509.Certificate) -> bool:
    """Whether ``ca`` is the issuer of ``certificate``, and its key signed it."""
    try:
        certificate.verify_directly_issued_by(ca)
    except (ValueError, TypeError, InvalidSignature):
        return False
    return True


def certificate_pem(certificate: x509.Certificate) -> bytes:
    """A certificate as PEM."""
    return certificate.public_bytes(serialization.Encoding.PEM)


def key_pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    """A private key as PEM, without a password."""
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )


def _usage(*, signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not signs_certificates,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        encipher_only=False,
        decipher_only=False,
    )


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePrivateKey, period: Period
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(period.begins)
        .not_valid_after(period.ends)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
    )
