"""The rotation of the gateway's own CA and leaf: what the Secret should hold next.

    ====================================  =========================================================================
    what is found                         what the Secret holds next
    ====================================  =========================================================================
    no CA that can sign, or the newest    a new CA besides: trusted (in the bundle) before it signs
    has two thirds of its life behind it
    every caBundle has the newest CA      a leaf of the newest CA; the older CAs' private keys are dropped
    no usable leaf, or it has two thirds  a new leaf, of the CA that clients trust
    of its life behind it
    no Secret, or an unreadable part      what was in it when this process read it last, if it knows
    ====================================  =========================================================================

The bundle holds the newest CA and those of the new leaf and the leaf before it: a replica that is one leaf behind is
still trusted. So an old CA leaves the bundle with the first leaf after the one that replaced its own.

If it is not known which CAs the API server trusts, the newest CA signs when half of the time is over that its
predecessor had left at the change: an operator who copies caBundle by hand has the first half of it.

``now`` should be the API server's time (``KubernetesClient.now``): it judges certificates. Replicas whose ``now``
differs by less than BACKDATED do not undo each other's rotations, because a certificate that was just made is valid for
all of them, and due for none.
"""

from collections.abc import Sequence
from datetime import datetime, timedelta
from fractions import Fraction
from typing import Final

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from msgspec import Struct
from msgspec.structs import replace

from gateway.certificates.authority import (
    CertificateAuthority,
    Period,
    covered_names,
    general_name,
    made_ca,
    made_server_certificate,
)
from gateway.certificates.content import SecretContent, fingerprint

LEAF_LIFETIME: Final = timedelta(days=90)
"""A new leaf is made after 60 days, and 30 days are left in which the gateway may fail to."""

CA_LIFETIME: Final = timedelta(days=365)
"""A new CA is made after 243 days. For the 122 days that are left, its predecessor can sign: more than the life of a
leaf, so that no leaf is cut short, unless caBundle is not updated for a month."""

BACKDATED: Final = timedelta(hours=1)
"""Certificates are valid from an hour before they are made, for clocks that are behind."""

_DUE: Final = Fraction(2, 3)

_UNKNOWN_TRUST_ENDS: Final = Fraction(5, 6)
"""The middle between two thirds and the end."""

_ORGANIZATION: Final = "admission-gateway"

Trusted = Sequence[frozenset[bytes]]
"""The fingerprints of the CAs in the caBundle of each webhook that calls this gateway. Empty: none does, so that
nothing is known of what an API server will trust."""


class Rotation(Struct, frozen=True, kw_only=True):
    """What the Secret should hold, and why it changes."""

    content: SecretContent
    reasons: tuple[str, ...]


def service_names(namespace: str, service: str) -> tuple[str, ...]:
    """The names of a Service: the one by which the API server calls it, and the one that pods resolve."""
    return f"{service}.{namespace}.svc", f"{service}.{namespace}.svc.cluster.local"


def rotation(
    found: SecretContent | None,
    names: Sequence[str],
    trusted: Trusted,
    now: datetime,
    *,
    remembered: SecretContent | None = None,
) -> Rotation | None:
    """What the Secret should hold instead of what was found in it; None: it stays.

    Args:
        found: None: there is no Secret.
        remembered: what the Secret held when it was intact; None: not known.
        names: the DNS names that the leaf must cover. It keeps the names of the leaf before it.
        trusted: see Trusted.
        now: timezone-aware.
    """
    now = now.replace(microsecond=0)
    reasons: list[str] = []
    content = found or SecretContent()
    if remembered is not None and (found is None or found.problems):
        content = remembered
        reasons.append(
            f"the CA and the certificate as before: {'; '.join(found.problems) if found else 'it was deleted'}"
        )
    wanted = frozenset(map(general_name, names))
    alive = tuple(each for each in content.authorities if _is_valid(each.certificate, now))
    if not alive or _age(alive[0].certificate, now) >= _DUE:
        reasons.append(f"a new CA: {_reason(content.authorities, now)}")
        alive = (_new_authority(now), *alive)
        content = replace(content, bundle=(alive[0].certificate, *content.bundle), authorities=alive)
    signer, reason = _signer(content, alive, wanted, trusted, now)
    if signer is not None:
        reasons.append(f"a new certificate: {reason}")
        content = _with_new_leaf(content, signer, alive, wanted, now)
    if not reasons:
        return None
    return Rotation(content=replace(content, problems=()), reasons=tuple(reasons))


def _signer(
    content: SecretContent,
    alive: Sequence[CertificateAuthority],
    wanted: frozenset[x509.GeneralName],
    trusted: Trusted,
    now: datetime,
) -> tuple[CertificateAuthority | None, str]:
    """The CA that has to sign a new leaf now, and why; None: the leaf stays."""
    newest, issuer, leaf = alive[0], content.issuer, content.leaf
    problem = _problem(content, issuer, wanted, now)
    if leaf is None or issuer is None or problem is not None:
        # The CA that was made last is trusted last.
        known = (each for each in alive if _is_trusted(each.certificate, trusted))
        return next(known, alive[-1]), problem or "there is none"
    if issuer != newest.certificate and _may_sign(newest.certificate, issuer, trusted, now):
        return newest, "the new CA is trusted"
    if _age(leaf, now) < _DUE:
        return None, ""
    # A leaf ends with its CA at the latest: then another one of the same CA would last no longer.
    own = (each for each in alive if each.certificate == issuer and _ends(each, now) > leaf.not_valid_after_utc)
    return next(own, None), "two thirds of its life are over"


def _problem(
    content: SecretContent,
    issuer: x509.Certificate | None,
    wanted: frozenset[x509.GeneralName],
    now: datetime,
) -> str | None:
    """Why the leaf cannot be served; None: it can."""
    if content.leaf is None:
        return "; ".join(content.problems) or None
    if issuer is None:
        return "no CA in the bundle issued it"
    if not (_is_valid(content.leaf, now) and _is_valid(issuer, now)):
        return f"it is not valid now, at {now.isoformat()}"
    missing = sorted(str(name.value) for name in wanted - covered_names(content.leaf))
    return f"it does not cover {', '.join(missing)}" if missing else None


def _may_sign(newest: x509.Certificate, issuer: x509.Certificate, trusted: Trusted, now: datetime) -> bool:
    if not trusted:
        return _age(issuer, now) >= _UNKNOWN_TRUST_ENDS
    return _is_trusted(newest, trusted)


def _is_trusted(ca: x509.Certificate, trusted: Trusted) -> bool:
    return bool(trusted) and all(fingerprint(ca) in bundle for bundle in trusted)


def _with_new_leaf(
    content: SecretContent,
    signer: CertificateAuthority,
    alive: tuple[CertificateAuthority, ...],
    wanted: frozenset[x509.GeneralName],
    now: datetime,
) -> SecretContent:
    key = ec.generate_private_key(ec.SECP256R1())
    before = frozenset[x509.GeneralName]() if content.leaf is None else covered_names(content.leaf)
    covered = frozenset(name for name in before if isinstance(name, x509.DNSName | x509.IPAddress))
    period = Period(begins=now - BACKDATED, ends=_ends(signer, now))
    leaf = made_server_certificate(_name("admission-gateway"), key, wanted | covered, signer, period)
    authorities = alive[:1] if signer is alive[0] else alive
    kept = {signer.certificate, content.issuer, *(each.certificate for each in authorities)}
    bundle = tuple(ca for ca in content.bundle if ca in kept)
    return SecretContent(leaf=leaf, key=key, bundle=bundle, authorities=authorities)


def _new_authority(now: datetime) -> CertificateAuthority:
    key = ec.generate_private_key(ec.SECP256R1())
    # Each CA has a name of its own: in a list of certificates an operator can tell them apart.
    subject = _name(f"admission-gateway CA {now:%Y-%m-%d %H:%M:%S}")
    period = Period(begins=now - BACKDATED, ends=now + CA_LIFETIME)
    return CertificateAuthority(certificate=made_ca(subject, key, period), key=key)


def _name(common_name: str) -> x509.Name:
    attributes = ((NameOID.ORGANIZATION_NAME, _ORGANIZATION), (NameOID.COMMON_NAME, common_name))
    return x509.Name([x509.NameAttribute(oid, value) for oid, value in attributes])


def _reason(authorities: Sequence[CertificateAuthority], now: datetime) -> str:
    if not authorities:
        return "there is none whose private key is known"
    newest = authorities[0].certificate
    return "two thirds of its life are over" if _is_valid(newest, now) else f"it is not valid now, at {now.isoformat()}"


def _ends(signer: CertificateAuthority, now: datetime) -> datetime:
    """When a leaf that is signed now ends: no later than its CA."""
    return min(now + LEAF_LIFETIME, signer.certificate.not_valid_after_utc)


def _is_valid(certificate: x509.Certificate, now: datetime) -> bool:
    return certificate.not_valid_before_utc <= now < certificate.not_valid_after_utc


def _age(certificate: x509.Certificate, now: datetime) -> float:
    """The part of its life that is over: 0 to 1 while it is valid."""
    life = certificate.not_valid_after_utc - certificate.not_valid_before_utc
    return (now - certificate.not_valid_before_utc) / life
