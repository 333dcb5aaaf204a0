"""Explains gRPC's errors about a failed connection: a table, for TLS and for plain text.

gRPC repeats BoringSSL's errors. If the server refuses, gRPC reports only that the connection ended, because in TLS 1.3
the server refuses after the client's handshake is complete. So the last row is a guess, and is worded as a question.
Each explanation completes a sentence that begins with ``worker 'labels' at TARGET``.
"""

import re
from typing import Final

from gateway.policies.workers.targets import GrpcTls

_CONNECTING: Final = "last error: "
"""Part of gRPC's errors about connections. A worker may fail a call with any text, which must not be explained here."""

_TABLE: Final = tuple(
    (re.compile(pattern), meaning)
    for pattern, meaning in (
        (
            r"Hostname Verification Check failed",
            (
                "presents a certificate that is not valid for the DNS name {name!r}: issue one with this name as "
                "subjectAltName, or set spec.grpc.tls.serverName"
            ),
        ),
        (
            r"certificate has expired",
            "presents an expired certificate, its own or that of an authority in its chain; renew it at the worker",
        ),
        (r"certificate is not yet valid", "presents a certificate that is not valid yet; compare the clocks"),
        (
            r"CERTIFICATE_VERIFY_FAILED|certificate signature failure",
            (
                "presents a certificate of an authority that is not in {authorities}; add the authority that issued "
                "it, or check which server listens at this address"
            ),
        ),
        (
            r"WRONG_VERSION_NUMBER|HTTP_REQUEST|HTTPS_PROXY_REQUEST",
            "does not speak TLS; give it a certificate (--tls-cert and --tls-key of the SDKs), or remove spec.grpc.tls",
        ),
        (r"ALPN", "speaks TLS, but not HTTP/2, so it is no gRPC server; check which server listens at this address"),
        (
            r"UNSUPPORTED_PROTOCOL|NO_SHARED_CIPHER|NO_COMMON_SIGNATURE_ALGORITHMS|WRONG_SIGNATURE_TYPE",
            (
                "has no TLS version, cipher or signature algorithm in common with the gateway; it needs TLS 1.2 or "
                "newer, and a certificate with ECDSA (P-256, P-384) or RSA"
            ),
        ),
        (
            r"Failed to create security handshaker",
            "cannot be connected to, because gRPC cannot use the content of {files}; issue new certificates",
        ),
        (
            r"_ALERT_|Handshake read failed|Socket closed|Connection reset|Broken pipe",
            "closes the connection during the TLS handshake: {client} see its log",
        ),
    )
)

_PLAIN: Final = re.compile(r"Socket closed|Connection reset|Broken pipe")


def handshake_failure(details: str, tls: GrpcTls | None) -> str | None:
    """Why a connection failed, and what to do; None: the error is not about TLS.

    Args:
        details: of the status UNAVAILABLE with which gRPC ended a call.
        tls: the TLS configuration; None: plain text.
    """
    if _CONNECTING not in details:
        return None
    if tls is None:
        if _PLAIN.search(details) is None:
            return None
        return "closes the connection before the first response: if it speaks TLS, set spec.grpc.tls; see its log"
    meaning = next((meaning for pattern, meaning in _TABLE if pattern.search(details)), None)
    if meaning is None:
        return None
    return meaning.format(
        name=tls.server_name, authorities=_authorities(tls), files=_files(tls), client=_client_certificate(tls)
    )


def _authorities(tls: GrpcTls) -> str:
    if tls.ca_file:
        return f"caFile {tls.ca_file}"
    return "caBundle" if tls.ca_bundle else "the system's authorities (caFile and caBundle are not set)"


def _files(tls: GrpcTls) -> str:
    return f"certFile {tls.cert_file} and {_authorities(tls)}" if tls.cert_file else _authorities(tls)


def _client_certificate(tls: GrpcTls) -> str:
    if tls.cert_file:
        return f"does it accept the client certificate in {tls.cert_file}, and trust its authority (--client-ca)?"
    return "if it requires a client certificate, set spec.grpc.tls.certFile and keyFile;"
