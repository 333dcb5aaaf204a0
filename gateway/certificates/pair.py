"""A certificate and its private key, wherever they come from."""

from msgspec import Struct

from gateway.quoting import Redacted


class CertificatePair(Redacted, Struct, frozen=True, kw_only=True):
    """PEM of both, and what messages call each: ``TLS certificate /etc/tls/tls.crt``."""

    certificate: bytes
    key: bytes
    certificate_name: str
    key_name: str
