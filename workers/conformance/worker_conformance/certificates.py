"""Certificates for the checks of TLS. Each run creates new ones, so that the repository holds no private key."""

import datetime as dt
import ipaddress
from dataclasses import dataclass
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

LIFETIME = dt.timedelta(hours=2)
"""From an hour ago, for clock skew, to an hour from now."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Pair:
    """PEM files of a certificate and its key."""

    cert: Path
    key: Path


class Authority:
    """A new CA.

    Args:
        folder: the folder of its files.
        name: its common name, and its file's name.
    """

    def __init__(self, folder: Path, name: str) -> None:
        self._folder = folder
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        self._key = ec.generate_private_key(ec.SECP256R1())
        constraints = x509.BasicConstraints(ca=True, path_length=0)
        usage = x509.KeyUsage(
            digital_signature=True, content_commitment=False, key_encipherment=False, data_encipherment=False,
            key_agreement=False, key_cert_sign=True, crl_sign=True, encipher_only=False, decipher_only=False,
        )  # fmt: skip
        built = self._builder(self._name, self._key).add_extension(constraints, critical=True)
        self.cert = folder / f"{name}.pem"
        self.cert.write_bytes(_pem(built.add_extension(usage, critical=True).sign(self._key, hashes.SHA256())))

    def issue(self, name: str) -> Pair:
        """A certificate for ``localhost`` and 127.0.0.1, for servers and clients, and its key.

        Args:
            name: its common name and its files' name; replaces existing files.
        """
        key = ec.generate_private_key(ec.SECP256R1())
        names = x509.SubjectAlternativeName(
            [x509.DNSName("localhost"), x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]
        )
        uses = x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH])
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        built = self._builder(subject, key).add_extension(names, critical=False).add_extension(uses, critical=False)
        pair = Pair(cert=self._folder / f"{name}.pem", key=self._folder / f"{name}-key.pem")
        written = key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
        _replace(pair.key, written)
        _replace(pair.cert, _pem(built.sign(self._key, hashes.SHA256())))
        return pair

    def _builder(self, subject: x509.Name, key: ec.EllipticCurvePrivateKey) -> x509.CertificateBuilder:
        now = dt.datetime.now(dt.UTC)
        issuer_key = x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key())
        return (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self._name)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - LIFETIME / 2)
            .not_valid_after(now + LIFETIME / 2)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
            .add_extension(issuer_key, critical=False)
        )


def _pem(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(serialization.Encoding.PEM)


def _replace(path: Path, content: bytes) -> None:
    """Replace a file atomically, so that a worker never reads half of it."""
    fresh = path.with_suffix(".new")
    fresh.write_bytes(content)
    fresh.replace(path)
