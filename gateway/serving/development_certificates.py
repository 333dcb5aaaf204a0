"""Development certificates, made on demand: a CA and a server certificate that it signed.

The rule for files that exist in the directory: **a private key is only read; a certificate is replaced only if its
issuer is the gateway's development CA; anything else is an error, before anything is written.** So the gateway never
overwrites a file that it did not make. Since keys stay, certificate and key match at every moment, even for a process
that reads them between two writes.

A certificate is kept as long as it is good, so that a copied caBundle stays valid:

    ======  ======================================================================================================
    CA      made by the gateway, for the key in the directory, valid now, and not expiring before the server certificate
    server  made by the gateway, for the key in the directory, signed by that CA, valid now and for another day, and
            covering every name required
    ======  ======================================================================================================

A renewed server certificate keeps the names of the previous one: two gateways with different names do not replace each
other's certificate for ever. Processes that start together wait on a lock of the directory; it leaves no file behind.
"""

import base64
import fcntl
import os
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from msgspec import Struct

from gateway.certificates.authority import (
    CertificateAuthority,
    Period,
    certificate_pem,
    covered_names,
    general_name,
    is_issued_by,
    key_pem,
    made_ca,
    made_server_certificate,
)

CA_NAME: Final = x509.Name(
    [
        x509.NameAttribute(NameOID.ORGANIZATION_NAME, "admission-gateway"),
        x509.NameAttribute(NameOID.COMMON_NAME, "admission-gateway development CA"),
    ]
)
"""The issuer by which the gateway recognizes certificates that it made."""

_SERVER_NAME: Final = x509.Name([x509.NameAttribute(NameOID.ORGANIZATION_NAME, "admission-gateway development")])

CA_LIFETIME: Final = timedelta(days=3650)
"""Ten times the server certificate's: when the CA expires, the server certificate is no longer trusted either."""

SERVER_LIFETIME: Final = timedelta(days=365)

_BACKDATED: Final = timedelta(minutes=5)
"""For clocks that are behind the gateway's, such as that of an API server on another machine."""

ALWAYS: Final = ("localhost", "127.0.0.1", "::1")
"""Names that every server certificate covers."""

_RENEW_BEFORE: Final = timedelta(days=1)


class CertificateError(Exception):
    """Development certificates cannot be made here. The message: which file, why, and what the operator can do."""


class DevelopmentCertificates(Struct, frozen=True, kw_only=True):
    """The paths of the certificates (PEM files).

    ``ca_bundle`` is the CA's PEM in base64, the format of ``clientConfig.caBundle``.
    """

    ca_file: Path
    cert_file: Path
    key_file: Path
    ca_bundle: str


def ensure_development_certificates(
    directory: Path, names: Sequence[str] = (), *, now: datetime | None = None
) -> DevelopmentCertificates:
    """Development certificates in ``directory``, kept or made: ``ca.crt``, ``ca.key``, ``tls.crt``, ``tls.key``.

    The server certificate covers ``names`` (DNS names or IP addresses) and ``ALWAYS``. ``now`` is timezone-aware;
    without it, the clock's. The directory is created if it is missing (0700); only the owner can read keys (0600).

    Raises CertificateError.
    """
    now = (now or datetime.now(UTC)).replace(microsecond=0)
    wanted = _wanted(names)
    try:
        with _locked(directory):
            ca = _ensure(directory, wanted, now)
    except OSError as error:
        raise CertificateError(
            f"development certificates in {directory}: {error.strerror or error}; "
            "choose a directory that this user can write with --tls-dev-dir, or bring --tls-cert and --tls-key"
        ) from error
    return DevelopmentCertificates(
        ca_file=directory / "ca.crt",
        cert_file=directory / "tls.crt",
        key_file=directory / "tls.key",
        ca_bundle=base64.b64encode(certificate_pem(ca)).decode(),
    )


def _wanted(names: Sequence[str]) -> frozenset[x509.GeneralName]:
    try:
        return frozenset(general_name(name) for name in (*ALWAYS, *names))
    except ValueError as error:
        raise CertificateError(f"development certificates: {error}") from error


# ---------------------------------------------------------------------------------------- keeping


def _ensure(directory: Path, wanted: frozenset[x509.GeneralName], now: datetime) -> x509.Certificate:
    """Make the files of the locked directory good. Returns the CA's certificate."""
    # Read all files first: a file that the gateway did not make is an error before anything is written.
    ca, server = _certificate(directory / "ca.crt"), _certificate(directory / "tls.crt")
    ca_key, server_key = _key(directory / "ca.key"), _key(directory / "tls.key")
    if ca is None or not _is_good_ca(ca, ca_key, now):
        ca = made_ca(CA_NAME, ca_key, _period(now, CA_LIFETIME))
        _write(directory / "ca.crt", certificate_pem(ca))
    covered = frozenset[x509.GeneralName]() if server is None else covered_names(server)
    if server is None or not wanted <= covered or not _is_good_server(server, server_key, ca, now):
        authority = CertificateAuthority(certificate=ca, key=ca_key)
        period = _period(now, SERVER_LIFETIME)
        server = made_server_certificate(_SERVER_NAME, server_key, wanted | covered, authority, period)
        _write(directory / "tls.crt", certificate_pem(server))
    return ca


def _period(now: datetime, lifetime: timedelta) -> Period:
    return Period(begins=now - _BACKDATED, ends=now + lifetime)


def _is_good_ca(ca: x509.Certificate, key: ec.EllipticCurvePrivateKey, now: datetime) -> bool:
    outlives = ca.not_valid_before_utc <= now and ca.not_valid_after_utc >= now + SERVER_LIFETIME
    return outlives and ca.public_key() == key.public_key()


def _is_good_server(
    certificate: x509.Certificate, key: ec.EllipticCurvePrivateKey, ca: x509.Certificate, now: datetime
) -> bool:
    return (
        is_issued_by(certificate, ca)
        and certificate.public_key() == key.public_key()
        and certificate.not_valid_before_utc <= now < certificate.not_valid_after_utc - _RENEW_BEFORE
        and certificate.not_valid_after_utc <= ca.not_valid_after_utc
    )


# ------------------------------------------------------------------------------------------ files


@contextmanager
def _locked(directory: Path) -> Iterator[None]:
    """Lock the directory, created if it is missing, against other processes that make certificates in it."""
    for missing in reversed([each for each in (directory, *directory.parents) if not each.exists()]):
        # Not by parents=True, which gives the others what the umask leaves: who can write one replaces the keys.
        missing.mkdir(mode=0o700, exist_ok=True)
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _certificate(path: Path) -> x509.Certificate | None:
    """The certificate in a file; None without the file. Raises CertificateError if the gateway did not make it."""
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        return None
    try:
        certificate = x509.load_pem_x509_certificate(content)
        signer = certificate.issuer
    except ValueError as error:
        raise CertificateError(
            f"development certificates: {path} is no PEM certificate and is not overwritten; move it away"
        ) from error
    if signer != CA_NAME:
        raise CertificateError(
            f"development certificates: {path} was not made by admission-gateway (its signer is "
            f"{signer.rfc4514_string()!r}) and is not overwritten; move it away, choose another --tls-dev-dir, "
            "or serve it with --tls-cert and --tls-key"
        )
    return certificate


def _key(path: Path) -> ec.EllipticCurvePrivateKey:
    """The private key in a file, generated if the file is missing."""
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        key = ec.generate_private_key(ec.SECP256R1())
        _write(path, key_pem(key), mode=0o600)
        return key
    try:
        present = serialization.load_pem_private_key(content, password=None)
    except (ValueError, TypeError, UnsupportedAlgorithm) as error:
        raise CertificateError(
            f"development certificates: {path} is no PEM private key (or has a password) and is not overwritten; "
            "move it away"
        ) from error
    if not isinstance(present, ec.EllipticCurvePrivateKey):
        raise CertificateError(
            f"development certificates: {path} holds no ECDSA key and is not overwritten; move it away"
        )
    if path.stat().st_mode & 0o077:
        path.chmod(0o600)
    return present


def _write(path: Path, content: bytes, *, mode: int = 0o644) -> None:
    """Replace a file atomically: a process that opens it reads the old content or the new, also after a crash."""
    descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(descriptor, "wb") as file:
            os.fchmod(file.fileno(), mode)
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        Path(temporary).replace(path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise
