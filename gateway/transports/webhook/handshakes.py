"""What goes wrong with TLS to a webhook: Go's words for it, and what to do; a table.

Python tells of a certificate by OpenSSL's numbers (X509_V_ERR_…), and of everything else by a name. Go names the names
that a certificate has; these are not to be had here once it was refused, so where it has none, or others, is one
sentence. Where the webhook refuses, TLS 1.3 has it do so after the gateway believes that the handshake is done.
"""

import ssl
from typing import Final

_VERIFYING: Final = "tls: failed to verify certificate: x509: "

_UNKNOWN_AUTHORITY: Final = (
    "certificate signed by unknown authority",
    (
        "its certificate is not of an authority in caBundle (without one: of the system's); put the authority there "
        "that issued it, or find out who listens there"
    ),
)
_OUT_OF_TIME: Final = (
    "certificate has expired or is not yet valid",
    "its own or one of the authorities above it; renew it at the webhook, and compare the clocks",
)

_CERTIFICATE: Final = {
    9: _OUT_OF_TIME,  # CERT_NOT_YET_VALID
    10: _OUT_OF_TIME,  # CERT_HAS_EXPIRED
    18: _UNKNOWN_AUTHORITY,  # DEPTH_ZERO_SELF_SIGNED_CERT
    19: _UNKNOWN_AUTHORITY,  # SELF_SIGNED_CERT_IN_CHAIN
    20: _UNKNOWN_AUTHORITY,  # UNABLE_TO_GET_ISSUER_CERT_LOCALLY
    21: _UNKNOWN_AUTHORITY,  # UNABLE_TO_VERIFY_LEAF_SIGNATURE
    26: ("certificate specifies an incompatible key usage", "it is no certificate for a server; issue one that is"),
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
        "it speaks no TLS; a webhook is called over HTTPS only",
    ),
    (
        ("NO_APPLICATION_PROTOCOL",),
        "remote error: tls: no application protocol",
        "it takes HTTP/2 only; webhooks are called over HTTP/1.1",
    ),
    (
        ("CERTIFICATE_REQUIRED", "BAD_CERTIFICATE", "UNKNOWN_CA", "CERTIFICATE_EXPIRED", "CERTIFICATE_UNKNOWN"),
        "remote error: tls: {alert}",
        "{proof}",
    ),
    (
        ("UNSUPPORTED_PROTOCOL", "PROTOCOL_VERSION", "NO_SHARED_CIPHER", "HANDSHAKE_FAILURE", "NO_PROTOCOLS_AVAILABLE"),
        "remote error: tls: handshake failure",
        (
            "it agrees on no version or cipher with the gateway; it needs TLS 1.2 or newer. Or it asks for a client "
            "certificate: {proof}"
        ),
    ),
)

_ENDED: Final = (
    "it ended the connection in or after the TLS handshake: does it speak TLS 1.2 or newer? does it want a client "
    "certificate? {proof}; its log says more"
)

_SHOWN: Final = "it does not take the gateway's certificate: does it know its authority?"
_NOT_SHOWN: Final = "the gateway has none for it: give one with --webhook-kubeconfig"


def ended_hint(*, shows_certificate: bool) -> str:
    """What to do where the webhook only ends a new connection, as many do instead of saying what they do not like."""
    return _ENDED.format(proof=_SHOWN if shows_certificate else _NOT_SHOWN)


def handshake_words(error: Exception, host: str, *, shows_certificate: bool) -> tuple[str, str]:
    """Go's words, and what to do.

    Args:
        error: an ssl.SSLError, or a certificate error of another kind.
        host: what the certificate was to be for.
        shows_certificate: whether the gateway has one to prove itself with.
    """
    if isinstance(error, ssl.SSLCertVerificationError):
        known = _CERTIFICATE.get(error.verify_code)
        if known is None:
            return _VERIFYING + (error.verify_message or str(error)), "see what is wrong with its certificate"
        return _VERIFYING + known[0].format(host=host), known[1].format(host=host)
    proof = _SHOWN if shows_certificate else _NOT_SHOWN
    said = (getattr(error, "reason", None) or str(error)).upper()
    for names, words, hint in _OTHERS:
        found = next((name for name in names if name in said), None)
        if found is not None:
            return words.format(alert=found.lower().replace("_", " ")), hint.format(proof=proof)
    if isinstance(error, ssl.SSLEOFError | ssl.SSLZeroReturnError):
        return "EOF", ended_hint(shows_certificate=shows_certificate)
    return f"tls: {getattr(error, 'reason', None) or error}".lower(), "see the webhook's log"
