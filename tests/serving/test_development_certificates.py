"""Development certificates: made once, kept while they are good, and never over a foreign one."""

import base64
import ssl
import stat
import subprocess
import sys
from datetime import UTC, datetime, timedelta

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.x509.oid import ExtendedKeyUsageOID
from cryptography.x509.verification import PolicyBuilder, Store

from gateway.certificates.authority import general_name
from gateway.serving.development_certificates import (
    CA_LIFETIME,
    SERVER_LIFETIME,
    CertificateError,
    ensure_development_certificates,
)

SERVICE = "admission-gateway.admission-gateway.svc"
NOW = datetime(2026, 1, 1, tzinfo=UTC)
FILES = ("ca.crt", "ca.key", "tls.crt", "tls.key")


def contents(directory):
    return {path.name: path.read_bytes() for path in directory.iterdir()}


def read(path):
    return x509.load_pem_x509_certificate(path.read_bytes())


def names(certificate):
    alternatives = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    return {str(name.value) for name in alternatives}


def verify(made, name, now):
    """As a strict client would: chain, time, name, purpose."""
    store = Store([read(made.ca_file)])
    PolicyBuilder().store(store).time(now).build_server_verifier(general_name(name)).verify(read(made.cert_file), [])


@pytest.fixture
def directory(tmp_path):
    return tmp_path / "new" / "dev"


@pytest.mark.parametrize("name", ["localhost", "127.0.0.1", "::1", SERVICE, "10.1.2.3"])
def test_a_strict_client_accepts_them(directory, name):
    """Chain, time, purpose and every name pass the checks of a strict verifier (as Go's and Python 3.13's are)."""
    made = ensure_development_certificates(directory, [SERVICE, "10.1.2.3"], now=NOW)
    verify(made, name, NOW)
    verify(made, name, NOW - timedelta(minutes=4))
    verify(made, name, NOW + SERVER_LIFETIME - timedelta(days=2))


def test_what_is_in_them(directory):
    """ECDSA P-256, server authentication only, no name in the subject; a CA that outlives what it signed."""
    made = ensure_development_certificates(directory, now=NOW)
    ca, server = read(made.ca_file), read(made.cert_file)
    assert isinstance(server.public_key().curve, ec.SECP256R1)
    usage = server.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value
    assert list(usage) == [ExtendedKeyUsageOID.SERVER_AUTH]
    assert not server.subject.get_attributes_for_oid(x509.NameOID.COMMON_NAME)
    assert server.not_valid_after_utc < ca.not_valid_after_utc
    assert names(server) == {"localhost", "127.0.0.1", "::1"}
    assert ca.serial_number != server.serial_number


def test_the_ca_bundle_is_what_a_webhook_configuration_wants(directory):
    """The caBundle is the base64 of the CA's PEM, and OpenSSL loads it."""
    made = ensure_development_certificates(directory)
    pem = base64.b64decode(made.ca_bundle, validate=True)
    assert pem == made.ca_file.read_bytes()
    assert ssl.create_default_context(cadata=pem.decode()).cert_store_stats()["x509_ca"] >= 1


def test_keys_are_for_their_owner_only(directory):
    """The directory is 0700, keys 0600; keys that were left open are closed again."""
    ensure_development_certificates(directory, now=NOW)
    assert stat.S_IMODE(directory.stat().st_mode) == 0o700
    (directory / "tls.key").chmod(0o644)
    ensure_development_certificates(directory, now=NOW)
    assert {stat.S_IMODE((directory / name).stat().st_mode) for name in ("ca.key", "tls.key")} == {0o600}
    assert sorted(contents(directory)) == list(FILES)


@pytest.mark.parametrize("called", [[SERVICE], ["LOCALHOST"], [], [SERVICE, "::1", "0:0:0:0:0:0:0:1"]])
def test_good_ones_are_kept(directory, called):
    """Called again for names that are covered, in whatever spelling, nothing is written."""
    ensure_development_certificates(directory, [SERVICE], now=NOW)
    before = contents(directory)
    ensure_development_certificates(directory, called, now=NOW + timedelta(days=100))
    assert contents(directory) == before


def test_a_new_name_keeps_the_old_ones_and_the_ca(directory):
    """Two gateways with different names do not take turns, and a caBundle once copied stays valid."""
    first = ensure_development_certificates(directory, ["a.svc"], now=NOW)
    second = ensure_development_certificates(directory, ["b.svc"], now=NOW)
    assert first.ca_bundle == second.ca_bundle
    assert {"a.svc", "b.svc", "localhost"} <= names(read(second.cert_file))
    before = contents(directory)
    ensure_development_certificates(directory, ["a.svc"], now=NOW)
    assert contents(directory) == before


@pytest.mark.parametrize("left", [timedelta(hours=23), timedelta(), timedelta(days=-100)])
def test_they_are_renewed_in_time(directory, left):
    """With less than a day left, a server certificate is made again, for the same key, by the same CA."""
    first = ensure_development_certificates(directory, [SERVICE], now=NOW)
    before = contents(directory)
    later = NOW + SERVER_LIFETIME - left
    second = ensure_development_certificates(directory, now=later)
    after = contents(directory)
    assert {name for name in FILES if before[name] != after[name]} == {"tls.crt"}
    assert first.ca_bundle == second.ca_bundle
    verify(second, SERVICE, later)


def test_the_ca_never_ends_first(directory):
    """A CA that would end before a new server certificate is made again; what its key signed before stays good."""
    first = ensure_development_certificates(directory, now=NOW)
    server = first.cert_file.read_bytes()
    later = NOW + CA_LIFETIME - SERVER_LIFETIME + timedelta(days=1)
    second = ensure_development_certificates(directory, now=later)
    assert first.ca_bundle != second.ca_bundle
    assert read(second.cert_file).not_valid_after_utc <= read(second.ca_file).not_valid_after_utc
    read_before = x509.load_pem_x509_certificate(server)
    read_before.verify_directly_issued_by(read(second.ca_file))


def test_a_clock_that_went_back_is_no_reason_to_fail(directory):
    """Certificates from the future are made again."""
    ensure_development_certificates(directory, now=NOW)
    earlier = NOW - timedelta(days=400)
    verify(ensure_development_certificates(directory, now=earlier), "localhost", earlier)


@pytest.mark.parametrize("missing", FILES)
def test_what_is_missing_is_made(directory, missing):
    """Whichever file is lost, also by a crash between two writes, the set is whole and consistent again."""
    ensure_development_certificates(directory, now=NOW)
    (directory / missing).unlink()
    made = ensure_development_certificates(directory, now=NOW)
    verify(made, "localhost", NOW)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(made.cert_file, made.key_file)


def somebody_elses(key):
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "Another Issuer")])
    builder = x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(key.public_key())
    builder = builder.serial_number(1).not_valid_before(NOW).not_valid_after(NOW + timedelta(days=1))
    return builder.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)


def pem(key, password=None):
    protection = serialization.BestAvailableEncryption(password) if password else serialization.NoEncryption()
    return key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, protection)


EC_KEY = ec.generate_private_key(ec.SECP256R1())
RSA_KEY = rsa.generate_private_key(65537, 2048)


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"nonsense",
        b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n",
        b"-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n",
        somebody_elses(EC_KEY),
        pem(RSA_KEY),
        pem(EC_KEY, b"secret"),
    ],
    ids=["empty", "nonsense", "broken certificate", "broken key", "foreign certificate", "RSA key", "protected key"],
)
def test_what_we_did_not_make_is_never_overwritten(directory, name, content):
    """A file that is not ours, or is broken, is an error that names it, before anything is written."""
    directory.mkdir(parents=True)
    (directory / name).write_bytes(content)
    with pytest.raises(CertificateError, match=rf"{name} .*not overwritten; move it away"):
        ensure_development_certificates(directory, now=NOW)
    assert (directory / name).read_bytes() == content
    if name.endswith(".crt"):
        assert list(contents(directory)) == [name]


def test_a_foreign_key_is_used_but_not_changed(directory):
    """A private key that fits is only read: the certificate is made for it."""
    directory.mkdir(parents=True)
    (directory / "tls.key").write_bytes(pem(EC_KEY))
    made = ensure_development_certificates(directory, now=NOW)
    assert made.key_file.read_bytes() == pem(EC_KEY)
    assert read(made.cert_file).public_key() == EC_KEY.public_key()


@pytest.mark.parametrize(
    "name", ["", "with blank", "ümlaut.svc", "a..b", "-a.svc", "a" * 64, "a.b/c", "*", "1.2.3.4/8"]
)
def test_a_name_that_is_none_is_an_error(directory, name):
    """What can stand in no certificate is said, and nothing is written."""
    with pytest.raises(CertificateError, match="neither an IP address nor a DNS name"):
        ensure_development_certificates(directory, [name])
    assert not directory.exists()


def test_a_wildcard_is_a_name(directory):
    """``*.NAMESPACE.svc`` may be requested."""
    assert "*.policies.svc" in names(read(ensure_development_certificates(directory, ["*.policies.svc"]).cert_file))


def test_a_file_in_the_directorys_place_is_an_error(tmp_path):
    """The error says what is in the way and what to do."""
    (tmp_path / "dev").write_text("")
    with pytest.raises(CertificateError, match="--tls-dev-dir"):
        ensure_development_certificates(tmp_path / "dev")


MAKE = """
import pathlib, sys
from gateway.serving.development_certificates import ensure_development_certificates
sys.stdin.readline()
print(ensure_development_certificates(pathlib.Path(sys.argv[1]), sys.argv[2:]).ca_bundle)
"""


@pytest.mark.integration
def test_processes_that_start_together_agree(directory):
    """Processes at the same moment end up with one CA, one key, and a certificate that covers all their names."""
    called = [f"gateway-{number}.svc" for number in range(6)]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    processes = [subprocess.Popen([sys.executable, "-c", MAKE, str(directory), each], **pipes) for each in called]
    for process in processes:
        process.stdin.write("now\n")
        process.stdin.flush()
    bundles = {process.communicate(timeout=120)[0] for process in processes}
    made = ensure_development_certificates(directory)
    assert bundles == {made.ca_bundle + "\n"}
    assert set(called) <= names(read(made.cert_file))
    verify(made, called[-1], datetime.now(UTC))
    assert sorted(contents(directory)) == list(FILES)
