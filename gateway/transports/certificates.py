"""Checks the content of a Worker's TLS files: certificates, their validity, a key and its kind.

gRPC reports unusable files only as "Failed to create security handshaker". So the gateway reads the certificates,
compares key and certificate, and checks the validity first. Each error names the file, and never quotes its content,
which may be a secret.
"""

from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Any, Final

import grpc
from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from msgspec import Struct

from gateway.policies.workers.targets import GrpcTls

SYSTEM: Final = "the system's authorities"
"""The label of their file, beside ``caFile``, ``certFile`` and ``keyFile``."""

_BEGIN: Final = b"-----BEGIN CERTIFICATE-----"
_CURVES: Final = (ec.SECP256R1, ec.SECP384R1, ec.SECP521R1)
"""The curves that gRPC's TLS can sign with; it cannot load others."""

Content = bytes | str
"""The content of a file; or why it cannot be read."""


class CredentialsError(Exception):
    """Files cannot be used. ``str(error)``: which worker, which file, why, and what the operator can do."""


class Loaded(Struct, frozen=True, kw_only=True):
    """The credentials and options of a channel.

    ``credentials``: None for plain text. ``options``: channel options; they set the name that the worker's certificate
    must have, which is the authority of the calls too, so do not combine them with ``grpc.default_authority``.
    ``fingerprint``: equal for equal contents of all files. ``expires``: the end of the validity of the gateway's own
    certificate; None without one.
    """

    credentials: grpc.ChannelCredentials | None = None
    options: tuple[tuple[str, str], ...] = ()
    fingerprint: str = ""
    expires: datetime | None = None


class TooEarlyError(CredentialsError):
    """A certificate that is not valid yet."""

    def __init__(self, message: str, begins: datetime) -> None:
        super().__init__(message)
        self.begins = begins


class CertificateReading:
    """The content of a Worker's files at one moment, and its checks."""

    def __init__(self, worker: str, paths: Mapping[str, str], contents: Mapping[str, Content], now: datetime) -> None:
        self._worker = worker
        self._paths = paths
        self._contents = contents
        self._now = now

    def loaded(self, tls: GrpcTls, fingerprint: str) -> Loaded:
        """The credentials. Raises CredentialsError."""
        authorities = self._authorities(tls)
        chain = key = expires = None
        if tls.cert_file:
            chain, key = self._content("certFile"), self._content("keyFile")
            expires = self._require_pair(chain, key)
        return Loaded(
            credentials=grpc.ssl_channel_credentials(authorities, key, chain),
            # gRPC would require the name of the address that it connects to. Its documentation calls this option one
            # for tests, because it can weaken the check; here it requires the name in the configuration.
            options=(("grpc.ssl_target_name_override", tls.server_name),),
            fingerprint=fingerprint,
            expires=expires,
        )

    def _authorities(self, tls: GrpcTls) -> bytes:
        if SYSTEM in self._paths:
            return self._system()
        label = "caFile" if tls.ca_file else "caBundle"
        content = self._content(label) if tls.ca_file else tls.ca_bundle
        ends = max(certificate.not_valid_after_utc for certificate in self._certificates(label, content))
        if ends < self._now:
            raise self._error(label, f"expired on {ends.isoformat()}", "replace it with the authority that is in use")
        return content

    def _system(self) -> bytes:
        if not self._paths[SYSTEM]:
            raise self._error(SYSTEM, "no file found at any of the known paths", "set caFile")
        content = self._content(SYSTEM)
        # Not checked one by one: a single unusual certificate of 150 is no error of this worker.
        if _BEGIN not in content:
            raise self._error(SYSTEM, f"no PEM certificate in it ({_observed(content)})", "set caFile or caBundle")
        return content

    def _require_pair(self, chain: bytes, key: bytes) -> datetime:
        """When the certificate expires."""
        certificate = self._certificates("certFile", chain)[0]
        private = self._private_key(key)
        if private.public_key() != certificate.public_key():
            raise self._error(
                "keyFile",
                f"it does not belong to the first certificate in {self._paths['certFile']} (subject "
                f"{certificate.subject.rfc4514_string()!r})",
                "use the pair that was issued together; during a replacement, both files are read again",
            )
        begins, ends = certificate.not_valid_before_utc, certificate.not_valid_after_utc
        if self._now > ends:
            raise self._error(
                "certFile", f"expired on {ends.isoformat()}", "renew it; it is read again when it changes"
            )
        if self._now < begins:
            raise TooEarlyError(
                str(self._error("certFile", f"is valid only from {begins.isoformat()}", "check this machine's clock")),
                begins,
            )
        return ends

    def _certificates(self, label: str, content: bytes) -> list[x509.Certificate]:
        """All of a file, at least one, each with a key that can be read."""
        try:
            certificates = x509.load_pem_x509_certificates(content)
            for certificate in certificates:
                certificate.public_key()
        except (ValueError, UnsupportedAlgorithm) as error:
            raise self._error(
                label,
                f"no readable PEM certificate in it ({_observed(content)})",
                "it must begin with -----BEGIN CERTIFICATE-----",
            ) from error
        # The reader skips a truncated block, and a missing authority would cause an error much later.
        if len(certificates) < content.count(_BEGIN):
            raise self._error(label, "a PEM block in it does not end", "write it again, or wait until it is written")
        return certificates

    def _private_key(self, content: bytes) -> Any:
        try:
            # Checking that an RSA key's numbers are prime takes up to 200 ms; the handshake fails if they are not.
            key = serialization.load_pem_private_key(content, password=None, unsafe_skip_rsa_key_validation=True)
        except TypeError as error:
            raise self._error(
                "keyFile",
                "it is encrypted, and the gateway has no password for it",
                "remove it with 'openssl pkey -in FILE -out FILE' and protect the file instead",
            ) from error
        except (ValueError, UnsupportedAlgorithm) as error:
            raise self._error(
                "keyFile",
                f"no readable PEM private key in it ({_observed(content)})",
                "it must begin with -----BEGIN PRIVATE KEY-----",
            ) from error
        is_curve = isinstance(key, ec.EllipticCurvePrivateKey) and isinstance(key.curve, _CURVES)
        if not is_curve and not isinstance(key, rsa.RSAPrivateKey | ed25519.Ed25519PrivateKey):
            raise self._error(
                "keyFile", "TLS in gRPC cannot use a key of this kind", "use ECDSA with P-256 or P-384, or RSA"
            )
        return key

    def _content(self, label: str) -> bytes:
        content = self._contents[label]
        if isinstance(content, str):
            raise self._error(label, content, "put a PEM file there that this user can read")
        return content

    def _error(self, label: str, observed: str, advice: str) -> CredentialsError:
        path = self._paths.get(label, "")
        shown = f" {Path(path)}".encode(errors="replace").decode() if path else ""
        return CredentialsError(f"worker {self._worker!r}: {label}{shown}: {observed}; {advice}")


def _observed(content: bytes) -> str:
    """A description of a file's content that quotes none of it: it may be a secret."""
    if not content.strip():
        return "it is empty"
    if content.startswith(b"0"):
        return "it looks like DER, the binary form"
    return f"{len(content)} bytes without one"
