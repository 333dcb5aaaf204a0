"""Certificates for a test: authorities, what they issue, and files that hold it."""

import ipaddress
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

DAY = timedelta(days=1)

_SIGNS = x509.KeyUsage(
    key_cert_sign=True,
    crl_sign=True,
    digital_signature=False,
    content_commitment=False,
    key_encipherment=False,
    data_encipherment=False,
    key_agreement=False,
    encipher_only=False,
    decipher_only=False,
)


def now():
    """The time, to the second, as certificates have it."""
    return datetime.now(UTC).replace(microsecond=0)


class Pair(NamedTuple):
    """A certificate and its key, as PEM."""

    certificate: bytes
    key: bytes

    def write(self, directory, name="tls"):
        """Write ``NAME.crt`` and ``NAME.key``, and return both paths."""
        cert_file, key_file = directory / f"{name}.crt", directory / f"{name}.key"
        cert_file.write_bytes(self.certificate)
        key_file.write_bytes(self.key)
        return str(cert_file), str(key_file)


class Authority:
    """A CA. Two of one name differ in their keys only."""

    def __init__(self, name="authority", *, begins=None, ends=None):
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = _subject(name)
        # Key identifiers and usage are what Python verifies since 3.13 (VERIFY_X509_STRICT).
        self._identifier = x509.SubjectKeyIdentifier.from_public_key(self._key.public_key())
        builder = _builder(self._name, self._name, self._key, begins, ends)
        builder = builder.add_extension(self._identifier, critical=False).add_extension(_SIGNS, critical=True)
        constraints = x509.BasicConstraints(ca=True, path_length=None)
        self._certificate = builder.add_extension(constraints, critical=True).sign(self._key, hashes.SHA256())
        self.pem = self._certificate.public_bytes(serialization.Encoding.PEM)

    def issue(self, *names, subject="certificate", key=None, begins=None, ends=None):
        """A certificate for DNS names and addresses; by default valid now."""
        key = key or ec.generate_private_key(ec.SECP256R1())
        builder = _builder(_subject(subject), self._name, key, begins, ends)
        if names:
            builder = builder.add_extension(x509.SubjectAlternativeName(list(map(_general, names))), critical=False)
        issuer = x509.AuthorityKeyIdentifier.from_issuer_subject_key_identifier(self._identifier)
        certificate = builder.add_extension(issuer, critical=False).sign(self._key, hashes.SHA256())
        return Pair(certificate.public_bytes(serialization.Encoding.PEM), private_pem(key))


def private_pem(key, password=None):
    """A private key as PEM."""
    encryption = serialization.BestAvailableEncryption(password) if password else serialization.NoEncryption()
    return key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, encryption)


def _subject(name):
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])


def _general(name):
    try:
        return x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        return x509.DNSName(name)


def _builder(subject, issuer, key, begins, ends):
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(begins or now() - 10 * DAY)
        .not_valid_after(ends or now() + 10 * DAY)
    )
