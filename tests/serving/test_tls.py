"""What the TLS of the front offers, and how it speaks of files that cannot serve."""

import socket
import ssl
import threading
from datetime import UTC, datetime, timedelta

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa

from gateway.serving.development_certificates import ensure_development_certificates
from gateway.serving.tls import TlsError, read_pair, server_context, validity_of

ALWAYS = (datetime(2000, 1, 1, tzinfo=UTC), datetime(2100, 1, 1, tzinfo=UTC))
"""For what is made when tests are collected: the run may end much later."""
NOW = datetime(2020, 2, 2, tzinfo=UTC)
KEY = ec.generate_private_key(ec.SECP256R1())


def certificate(key=KEY, *, begins=ALWAYS[0], ends=ALWAYS[1], alternative=True, authority=False):
    """A self-signed certificate."""
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "localhost")])
    builder = x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(key.public_key())
    builder = builder.serial_number(1).not_valid_before(begins).not_valid_after(ends)
    if alternative:
        names = x509.SubjectAlternativeName([x509.DNSName("localhost")])
        builder = builder.add_extension(names, critical=False)
    if authority:
        builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
    return builder.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)


def pem(key=KEY, password=None):
    protection = serialization.BestAvailableEncryption(password) if password else serialization.NoEncryption()
    return key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, protection)


@pytest.fixture
def files(tmp_path):
    """Writes a certificate and a key: their paths."""

    def write(cert, key):
        cert_file, key_file = tmp_path / "tls.crt", tmp_path / "tls.key"
        if cert is not None:
            cert_file.write_bytes(cert)
        if key is not None:
            key_file.write_bytes(key)
        return cert_file, key_file

    return write


def handshake(server, client):
    """A handshake over a socket pair: what the client's side has agreed on."""
    ours, theirs = socket.socketpair()

    def serve():
        try:
            with server.wrap_socket(ours, server_side=True) as connection:
                connection.sendall(connection.recv(1))
        except OSError:
            ours.close()

    thread = threading.Thread(target=serve)
    thread.start()
    try:
        with client.wrap_socket(theirs, server_hostname="localhost") as connection:
            connection.settimeout(20)
            connection.sendall(b"x")
            # Under TLS 1.3 a client learns of its own refusal only with the server's first byte.
            assert connection.recv(1) == b"x"
            return connection.version(), connection.selected_alpn_protocol(), connection.session
    finally:
        theirs.close()
        thread.join()


@pytest.fixture
def client(certificates):
    return ssl.create_default_context(cafile=certificates.ca_file)


@pytest.fixture
def server(certificates):
    return server_context(read_pair(certificates.cert_file, certificates.key_file))


def test_tls_1_3_and_http_1_1(server, client):
    """TLS 1.3 is chosen, and of h2 and http/1.1 the latter."""
    client.set_alpn_protocols(["h2", "http/1.1"])
    version, protocol, session = handshake(server, client)
    assert (version, protocol) == ("TLSv1.3", "http/1.1")
    assert not session.has_ticket


def test_tls_1_2_with_forward_secrecy(server, client):
    """TLS 1.2 is enough, but not with a cipher of old."""
    client.maximum_version = ssl.TLSVersion.TLSv1_2
    version, _, session = handshake(server, client)
    assert version == "TLSv1.2"
    assert not session.has_ticket
    client.set_ciphers("ECDHE-ECDSA-AES128-SHA")
    with pytest.raises(OSError):
        handshake(server, client)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_tls_1_1_is_refused(server, client):
    """Nothing older than 1.2 is spoken."""
    client.minimum_version = client.maximum_version = ssl.TLSVersion.TLSv1_1
    client.set_ciphers("ALL:@SECLEVEL=0")
    with pytest.raises(OSError):
        handshake(server, client)


def test_no_compression_no_renegotiation(server):
    """What has been attacked before is off."""
    assert server.options & ssl.OP_NO_COMPRESSION
    assert server.options & ssl.OP_NO_RENEGOTIATION
    assert server.num_tickets == 0


def test_a_client_certificate_is_required_where_there_is_a_ca(certificates, client, files, tmp_path):
    """With a client CA, a client without a certificate is refused, and one of that CA is served."""
    own = certificate(authority=True)
    (tmp_path / "clients.pem").write_bytes(own)
    server = server_context(read_pair(certificates.cert_file, certificates.key_file), [tmp_path / "clients.pem"])
    assert server.verify_mode is ssl.CERT_REQUIRED
    with pytest.raises(OSError):
        handshake(server, client)
    client.load_cert_chain(*files(own, pem()))
    assert handshake(server, client)[0] == "TLSv1.3"


OTHER = ec.generate_private_key(ec.SECP256R1())


@pytest.mark.parametrize(
    ("cert", "key", "says"),
    [
        (None, pem(), r"TLS certificate .*tls\.crt: No such file or directory; give --tls-cert"),
        (certificate(), None, r"TLS key .*tls\.key: No such file or directory; give --tls-key"),
        (b"", pem(), r"TLS certificate .*it is empty"),
        (b" \n", pem(), r"TLS certificate .*it is empty"),
        (b"nonsense", pem(), r"TLS certificate .*8 bytes of something else"),
        (b"0\x82\x01\x02", pem(), r"TLS certificate .*DER"),
        (pem(), pem(), r"TLS certificate .*BEGIN CERTIFICATE"),
        (b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----", pem(), r"TLS certificate .*no readable"),
        (certificate(), b"", r"TLS key .*it is empty"),
        (certificate(), certificate(), r"TLS key .*BEGIN PRIVATE KEY"),
        (certificate(), pem(OTHER), r"TLS key .*does not belong to the first certificate in .*CN=localhost"),
        (certificate(), pem(password=b"secret"), r"TLS key .*protected by a password"),
    ],
)
def test_files_that_cannot_serve_are_named(files, cert, key, says):
    """Each error says which file, what is wrong with it and what to do, and shows nothing of a key."""
    with pytest.raises(TlsError, match=says) as raised:
        server_context(read_pair(*files(cert, key)))
    assert "\n" not in str(raised.value)
    assert "secret" not in str(raised.value)


def test_a_directory_is_no_certificate(tmp_path):
    """The operating system's reason is passed on."""
    with pytest.raises(TlsError, match="Is a directory"):
        server_context(read_pair(tmp_path, tmp_path))


def test_what_openssl_refuses_is_an_error_of_ours(files):
    """A key too weak for OpenSSL ends in its reason, not in a traceback."""
    weak = rsa.generate_private_key(65537, 1024)  # noqa: S505 - so that it is refused
    with pytest.raises(TlsError, match="EE_KEY_TOO_SMALL"):
        server_context(read_pair(*files(certificate(weak), pem(weak))))


@pytest.mark.parametrize("content", [None, b"", b"nonsense", pem(), b"\xff\xfe"])
def test_a_client_ca_that_is_none_is_named(certificates, tmp_path, content):
    """Without a readable CA the start fails: no client is accepted by accident."""
    if content is not None:
        (tmp_path / "clients.pem").write_bytes(content)
    with pytest.raises(TlsError, match=r"CA for client certificates .*clients\.pem"):
        server_context(read_pair(certificates.cert_file, certificates.key_file), [tmp_path / "clients.pem"])


@pytest.mark.parametrize(
    ("begins", "ends", "problem"),
    [
        (-2, 2, None),
        (-3, -1, "expired on"),
        (1, 2, "valid only from"),
    ],
)
def test_an_expired_certificate_is_served_and_said(files, logs, begins, ends, problem):
    """Time is no reason to refuse the start: it is logged, and readiness reports it."""
    now = datetime.now(UTC)
    cert, key = files(certificate(begins=now + timedelta(days=begins), ends=now + timedelta(days=ends)), pem())
    server_context(read_pair(cert, key))
    found = validity_of(read_pair(cert, key)).problem(now)
    if problem is None:
        assert found is None
        assert logs == []
    else:
        assert problem in found
        assert [entry["why"] for entry in logs] == [found]


def test_what_is_served_expires_although_its_file_was_renewed(files):
    """The process that loaded the old one still serves it."""
    pair = files(certificate(begins=NOW - timedelta(days=2), ends=NOW + timedelta(days=1)), pem())
    served = validity_of(read_pair(*pair))
    files(certificate(begins=NOW, ends=NOW + timedelta(days=9)), pem())
    later = NOW + timedelta(days=2)
    assert validity_of(read_pair(*pair)).problem(later) is None
    assert "expired on" in served.problem(later)


def test_a_certificate_without_alternative_names_is_said(files, logs):
    """Go takes no names from the subject; the log says so before the API server does."""
    server_context(read_pair(*files(certificate(alternative=False), pem())))
    assert "subjectAltName" in logs[0]["why"]


def test_development_certificates_serve(tmp_path, logs):
    """What we make we accept, without a word."""
    made = ensure_development_certificates(tmp_path / "dev")
    server_context(read_pair(made.cert_file, made.key_file))
    assert logs == []
    assert validity_of(read_pair(made.cert_file, made.key_file)).problem(datetime.now(UTC)) is None
