"""What the files of a Worker's TLS hold, and whether it can be used: certificates, their times, a key and its kind.

Nothing is handed to gRPC that it could not use: it would say no more than "Failed to create security handshaker". So
certificates are read, key and certificate compared, times looked at; each mistake is told with its file, and nothing of
what stands there, which may be a secret.
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
"""What their file is called, beside ``caFile``, ``certFile`` and ``keyFile``."""

_BEGIN: Final = b"-----BEGIN CERTIFICATE-----"
_CURVES: Final = (ec.SECP256R1, ec.SECP384R1, ec.SECP521R1)
"""What gRPC's TLS signs with; rarer ones it cannot even load."""

Content = bytes | str
"""What a file holds; or why that is not known."""


class CredentialsError(Exception):
    """Files that cannot be used: the operator's to solve. ``str(error)``: whose, which file, why, what to do."""


class Loaded(Struct, frozen=True, kw_only=True):
    """What a channel is made with.

    ``credentials``: None for plain text. ``options``: of the channel, beside others; they name whom the certificate
    must be for, and set the authority of the calls: give no ``grpc.default_authority`` beside them. ``fingerprint``:
    equal for equal contents of all files. ``expires``: when the gateway's own certificate does, None without one.
    """

    credentials: grpc.ChannelCredentials | None = None
    options: tuple[tuple[str, str], ...] = ()
    fingerprint: str = ""
    expires: datetime | None = None


class TooEarlyError(CredentialsError):
    """A certificate whose time has not begun."""

    def __init__(self, message: str, begins: datetime) -> None:
        super().__init__(message)
        self.begins = begins


class CertificateReading:
    """What the files of a Worker held at one moment, and whether it can be used."""

    def __init__(self, worker: str, paths: Mapping[str, str], contents: Mapping[str, Content], now: datetime) -> None:
        self._worker = worker
        self._paths = paths
        self._contents = contents
        self._now = now

    def loaded(self, tls: GrpcTls, fingerprint: str) -> Loaded:
        """Raises CredentialsError."""
        authorities = self._authorities(tls)
        chain = key = expires = None
        if tls.cert_file:
            chain, key = self._content("certFile"), self._content("keyFile")
            expires = self._require_pair(chain, key)
        return Loaded(
            credentials=grpc.ssl_channel_credentials(authorities, key, chain),
            # gRPC would ask for the address that we connect to. Its documents call this option one for tests, because
            # it can ask for less than the target says; here it asks for what the configuration says.
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
            raise self._error(label, f"expired on {ends.isoformat()}", "put the authority there that is in use")
        return content

    def _system(self) -> bytes:
        if not self._paths[SYSTEM]:
            raise self._error(SYSTEM, "this machine has no file of them in a place known here", "set caFile")
        content = self._content(SYSTEM)
        # Not read one by one: it is not this worker's to say that one of 150 is unusual.
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
                "give the pair that was issued together; where it is being replaced, both files will be read again",
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
        # What is cut off is passed over by the reader, and an authority that is missing shows much later.
        if len(certificates) < content.count(_BEGIN):
            raise self._error(label, "a PEM block in it does not end", "write it anew, or wait until it is written")
        return certificates

    def _private_key(self, content: bytes) -> Any:
        try:
            # Whether an RSA key's numbers are prime takes up to 200 ms, and the handshake shows it.
            key = serialization.load_pem_private_key(content, password=None, unsafe_skip_rsa_key_validation=True)
        except TypeError as error:
            raise self._error(
                "keyFile",
                "it is protected by a password, which nobody is there to type",
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
    """What a file seems to be, without repeating any of it: it may be a secret."""
    if not content.strip():
        return "it is empty"
    if content.startswith(b"0"):
        return "it looks like DER, the binary form"
    return f"{len(content)} bytes of something else"
