"""What the Secret with the gateway's certificate holds: cert-manager's keys, and the private keys of its own CA.

    ===========  ===================================================================================================
    key          PEM
    ===========  ===================================================================================================
    ``tls.crt``  the leaf, which is the certificate that the gateway serves, and its chain
    ``tls.key``  the leaf's private key
    ``ca.crt``   the bundle: the CAs that clients have to trust; ``caBundle`` in what registers the gateway
    ``ca.key``   the private keys of those CAs in the bundle that may still sign; the gateway's own Secret only
    ===========  ===================================================================================================

One Secret, so that all of it changes at once. Beside the leaf's key, the CA's gives a reader no further power: nothing
trusts this CA but the webhooks that call this Service. The replicas, any of which may rotate, share a service account.
"""

import hashlib
import re
from collections.abc import Iterable, Mapping
from typing import Final

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec
from msgspec import Struct

from gateway.certificates.authority import CertificateAuthority, certificate_pem, is_ca, is_issued_by, key_pem
from gateway.quoting import Redacted

CERTIFICATE: Final = "tls.crt"
KEY: Final = "tls.key"
BUNDLE: Final = "ca.crt"
CA_KEYS: Final = "ca.key"

_KEY_BLOCK: Final = re.compile(rb"-----BEGIN [A-Z ]*PRIVATE KEY-----.+?-----END [A-Z ]*PRIVATE KEY-----", re.DOTALL)


class SecretContent(Redacted, Struct, frozen=True, kw_only=True):
    """What can be used of the gateway's own Secret.

    ``authorities``: the CAs of the bundle whose keys are there, the newest first. ``problems``: why a part of the
    Secret cannot be used; empty: it is intact, though it may have expired.
    """

    leaf: x509.Certificate | None = None
    key: ec.EllipticCurvePrivateKey | None = None
    bundle: tuple[x509.Certificate, ...] = ()
    authorities: tuple[CertificateAuthority, ...] = ()
    problems: tuple[str, ...] = ()

    @property
    def issuer(self) -> x509.Certificate | None:
        """The CA of the bundle that issued the leaf."""
        if self.leaf is None:
            return None
        return next((ca for ca in self.bundle if is_issued_by(self.leaf, ca)), None)

    @property
    def waiting(self) -> bool:
        """Whether the newest CA does not sign yet."""
        return bool(self.authorities) and self.issuer != self.authorities[0].certificate

    def data(self) -> dict[str, bytes]:
        """The Secret's data."""
        assert self.leaf is not None  # noqa: S101 - what is written is complete
        assert self.key is not None  # noqa: S101 - see above
        return {
            CERTIFICATE: certificate_pem(self.leaf),
            KEY: key_pem(self.key),
            BUNDLE: b"".join(map(certificate_pem, self.bundle)),
            CA_KEYS: b"".join(key_pem(each.key) for each in self.authorities),
        }


def read_content(data: Mapping[str, bytes]) -> SecretContent:
    """The content of a Secret's data, whatever is in it."""
    problems: list[str] = []
    leaves, bundle = _certificates(data, CERTIFICATE, problems), _certificates(data, BUNDLE, problems)
    keys, ca_keys = _keys(data, KEY, problems), _keys(data, CA_KEYS, problems)
    leaf, key = (leaves[0], keys[0]) if leaves and keys else (None, None)
    if leaf is not None and key is not None and leaf.public_key() != key.public_key():
        problems.append(f"{KEY} does not belong to the first certificate in {CERTIFICATE}")
        leaf = key = None
    authorities = [
        CertificateAuthority(certificate=ca, key=ca_key)
        for ca in bundle
        for ca_key in ca_keys
        if is_ca(ca) and ca.public_key() == ca_key.public_key()
    ]
    if bundle and ca_keys and not authorities:
        problems.append(f"{CA_KEYS} has no key of a CA in {BUNDLE}")
    return SecretContent(
        leaf=leaf,
        key=key,
        bundle=bundle,
        authorities=tuple(sorted(authorities, key=lambda each: each.certificate.not_valid_before_utc, reverse=True)),
        problems=tuple(problems),
    )


def fingerprint(certificate: x509.Certificate) -> bytes:
    """The SHA-256 of a certificate."""
    return hashlib.sha256(certificate.public_bytes(serialization.Encoding.DER)).digest()


def fingerprints(bundle: bytes) -> frozenset[bytes]:
    """Those of the certificates in a bundle; empty if it cannot be read."""
    return frozenset(map(fingerprint, _certificates({BUNDLE: bundle}, BUNDLE, [])))


def _certificates(data: Mapping[str, bytes], name: str, problems: list[str]) -> tuple[x509.Certificate, ...]:
    content = data.get(name, b"")
    try:
        found = x509.load_pem_x509_certificates(content)
        for each in found:
            each.public_key(), each.extensions, each.issuer
    except (ValueError, TypeError, UnsupportedAlgorithm, x509.DuplicateExtension, x509.UnsupportedGeneralNameType):
        problems.append(f"{name} has no readable PEM certificate ({len(content)} bytes)")
        return ()
    return _unique(found)


def _unique(certificates: Iterable[x509.Certificate]) -> tuple[x509.Certificate, ...]:
    return tuple(dict.fromkeys(certificates))


def _keys(data: Mapping[str, bytes], name: str, problems: list[str]) -> tuple[ec.EllipticCurvePrivateKey, ...]:
    content = data.get(name, b"")
    try:
        found = [serialization.load_pem_private_key(block, password=None) for block in _KEY_BLOCK.findall(content)]
    except (ValueError, TypeError, UnsupportedAlgorithm):
        found = []
    keys = tuple(each for each in found if isinstance(each, ec.EllipticCurvePrivateKey))
    if not keys or len(keys) < len(found):
        problems.append(f"{name} has no readable PEM private key with ECDSA ({len(content)} bytes)")
        return ()
    return keys
