"""TLS errors of a webhook: Go's message, and what to do; a table.

Python reports certificate errors by OpenSSL's numbers (X509_V_ERR_…), and others by name. Go's message lists the names
in the certificate; Python does not have them after it rejected the certificate, so a certificate without names and one
with other names have the same message. In TLS 1.3, the webhook rejects a handshake after the gateway's side is
complete.
"""

import ssl
from typing import Final

_VERIFYING: Final = "tls: failed to verify certificate: x509: "

_UNKNOWN_AUTHORITY: Final = (
    "certificate signed by unknown authority",
    (
        "its certificate is not of an authority in caBundle (without one: of the system's); add the authority that "
        "issued it, or check which server listens at this address"
    ),
)
_OUTSIDE_VALIDITY: Final = (
    "certificate has expired or is not yet valid",
    "its own or that of an authority in its chain; renew it at the webhook, and compare the clocks",
)

_CERTIFICATE: Final = {
    9: _OUTSIDE_VALIDITY,  # CERT_NOT_YET_VALID
    10: _OUTSIDE_VALIDITY,  # CERT_HAS_EXPIRED
    18: _UNKNOWN_AUTHORITY,  # DEPTH_ZERO_SELF_SIGNED_CERT
    19: _UNKNOWN_AUTHORITY,  # SELF_SIGNED_CERT_IN_CHAIN
    20: _UNKNOWN_AUTHORITY,  # UNABLE_TO_GET_ISSUER_CERT_LOCALLY
    21: _UNKNOWN_AUTHORITY,  # UNABLE_TO_VERIFY_LEAF_SIGNATURE
    26: ("certificate specifies an incompatible key usage", "it is no server certificate; issue one"),
    62: (
        "certificate is not valid for {host}",
        "issue one with the DNS name {host} as subjectAltName; a common name does not count",
    ),
    64: (
        "cannot validate certificate for {host} because it doesn't contain any IP SANs with it",
        "issue one with the address {host} as subjectAltName, or call the webhook by a name that its certificate has",
    ),
}

_OTHERS: Final = (
    (
        ("WRONG_VERSION_NUMBER", "HTTP_REQUEST", "RECORD_LAYER_FAILURE", "PACKET_LENGTH_TOO_LONG"),
        "tls: first record does not look like a TLS handshake",
        "it does not speak TLS; webhooks are called over HTTPS only",
    ),
    (
        ("NO_APPLICATION_PROTOCOL",),
        "remote error: tls: no application protocol",
        "it accepts HTTP/2 only; webhooks are called over HTTP/1.1",
    ),
    (
        ("CERTIFICATE_REQUIRED", "BAD_CERTIFICATE", "UNKNOWN_CA", "CERTIFICATE_EXPIRED", "CERTIFICATE_UNKNOWN"),
        "remote error: tls: {alert}",
        "{advice}",
    ),
    (
        ("UNSUPPORTED_PROTOCOL", "PROTOCOL_VERSION", "NO_SHARED_CIPHER", "HANDSHAKE_FAILURE", "NO_PROTOCOLS_AVAILABLE"),
        "remote error: tls: handshake failure",
        (
            "it has no TLS version or cipher in common with the gateway, and needs TLS 1.2 or newer; or it requires a "
            "client certificate: {advice}"
        ),
    ),
)

_ENDED: Final = (
    "it closed the connection in or after the TLS handshake: does it speak TLS 1.2 or newer? does it require a client "
    "certificate? {advice}; see its log"
)

_CERTIFICATE_REJECTED: Final = "it does not accept the gateway's certificate: does it trust its authority?"
_NO_CERTIFICATE: Final = "the gateway has none for it: set one with --webhook-kubeconfig"


def ended_hint(*, has_client_certificate: bool) -> str:
    """What to do if the webhook closes a new connection without a TLS alert, as many servers do."""
    return _ENDED.format(advice=_CERTIFICATE_REJECTED if has_client_certificate else _NO_CERTIFICATE)


def handshake_message(error: Exception, host: str, *, has_client_certificate: bool) -> tuple[str, str]:
    """Go's message, and what to do.

    Args:
        error: an ssl.SSLError, or a certificate error of another kind.
        host: the name that the certificate must have.
        has_client_certificate: whether the gateway presents one.
    """
    if isinstance(error, ssl.SSLCertVerificationError):
        known = _CERTIFICATE.get(error.verify_code)
        if known is None:
            return _VERIFYING + (error.verify_message or str(error)), "check the webhook's certificate"
        return _VERIFYING + known[0].format(host=host), known[1].format(host=host)
    advice = _CERTIFICATE_REJECTED if has_client_certificate else _NO_CERTIFICATE
    reason = (getattr(error, "reason", None) or str(error)).upper()
    for names, message, hint in _OTHERS:
        found = next((name for name in names if name in reason), None)
        if found is not None:
            return message.format(alert=found.lower().replace("_", " ")), hint.format(advice=advice)
    if isinstance(error, ssl.SSLEOFError | ssl.SSLZeroReturnError):
        return "EOF", ended_hint(has_client_certificate=has_client_certificate)
    return f"tls: {getattr(error, 'reason', None) or error}".lower(), "see the webhook's log"
