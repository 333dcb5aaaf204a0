"""gRPC's words about connections: what they mean is reported, and nothing more."""

import pytest

from gateway.policies.workers.targets import GrpcTls
from gateway.transports.connection_errors import handshake_failure

TLS = GrpcTls(server_name="labels")
OURS = GrpcTls(server_name="labels", ca_file="ca.crt", cert_file="tls.crt", key_file="tls.key")
LAST = "failed to connect to all addresses; last error: UNKNOWN: ipv4:10.0.0.1:50051: "
SSL = LAST + "Tls handshake failed (TSI_PROTOCOL_FAILURE): SSL_ERROR_SSL: error:1:SSL routines:OPENSSL_internal:"


@pytest.mark.parametrize(
    ("details", "expected"),
    [
        (LAST + "Cannot check peer: missing selected ALPN property.", "speaks TLS, but not HTTP/2,"),
        (SSL + "UNSUPPORTED_PROTOCOL: Invalid certificate verification context: OK", "has no TLS version"),
        (SSL + "TLSV1_ALERT_UNKNOWN_CA: OK", "closes the connection during the TLS handshake"),
        (LAST + "Handshake read failed (Socket closed)", "closes the connection during the TLS handshake"),
        (LAST + "recvmsg:Connection reset by peer (104)", "closes the connection during the TLS handshake"),
        (SSL + "CERTIFICATE_VERIFY_FAILED: self signed certificate: OK", "that is not in the system's authorities"),
        (LAST + "Failed to create security handshaker.", "gRPC cannot use the content of the system's authorities"),
    ],
)
def test_meanings(details, expected):
    """Each of gRPC's words has one meaning."""
    assert expected in handshake_failure(details, TLS)


@pytest.mark.parametrize(
    "details",
    [
        "",
        "Socket closed",
        "the certificate has expired",
        "Hostname Verification Check failed",
        LAST + "Failed to connect to remote host: Connection refused",
        LAST + "connect timed out",
    ],
)
@pytest.mark.parametrize("tls", [None, TLS, OURS])
def test_nothing_to_do_with_tls(details, tls):
    """A call that failed, in whatever words of the worker's, and a worker that is away, are not about certificates."""
    assert handshake_failure(details, tls) is None


def test_plain_text():
    """Without TLS only a connection that is ended at once has to do with it."""
    assert "if it speaks TLS" in handshake_failure(LAST + "Socket closed", None)
    assert handshake_failure(SSL + "WRONG_VERSION_NUMBER", None) is None


def test_files_are_named():
    """A hint names the files that the Worker names."""
    assert "in caFile ca.crt; add" in handshake_failure(SSL + "CERTIFICATE_VERIFY_FAILED: no issuer", OURS)
    assert "certificate in tls.crt" in handshake_failure(LAST + "Socket closed", OURS)
    assert "certFile tls.crt and caFile ca.crt" in handshake_failure(
        LAST + "Failed to create security handshaker.", OURS
    )
