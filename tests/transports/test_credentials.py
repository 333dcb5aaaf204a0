"""The files of a worker's TLS: which can be used, what is wrong with the others, and which are taken up when."""

import os
import re
import shutil
from datetime import timedelta

import pytest
from cryptography.hazmat.primitives.asymmetric import ec, ed448, ed25519

from gateway.policies.workers.targets import GrpcTls
from gateway.transports import credentials as module
from gateway.transports.credentials import CredentialsError, WorkerCredentials
from tests.authorities import DAY, Authority, now, private_pem

AUTHORITY = Authority()
BUNDLED = GrpcTls(ca_bundle=AUTHORITY.pem, server_name="labels")


@pytest.fixture
def files(tmp_path):
    """An authority, a certificate and a key in files."""
    (tmp_path / "ca.crt").write_bytes(AUTHORITY.pem)
    AUTHORITY.issue("gateway").write(tmp_path)
    return tmp_path


FILES = GrpcTls(ca_file="ca.crt", cert_file="tls.crt", key_file="tls.key", server_name="labels")


def of_files(directory, **clock):
    return WorkerCredentials("labels", FILES, str(directory), **clock)


def reported(credentials):
    with pytest.raises(CredentialsError) as caught:
        credentials.load()
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_relative_files(files):
    """A relative file begins in the directory of the Worker's own file, an absolute one at the root."""
    absolute = GrpcTls(ca_file=str(files / "ca.crt"), server_name="labels")
    assert of_files(files).load().credentials is not None
    assert WorkerCredentials("labels", absolute, "/elsewhere").load().credentials is not None
    assert "caFile /elsewhere/ca.crt: cannot be read: No such file" in reported(of_files("/elsewhere"))


def test_what_is_loaded(files):
    """The name is an option of the channel; the end of the gateway's certificate is known."""
    ends = now() + 3 * DAY
    AUTHORITY.issue("gateway", ends=ends).write(files)
    loaded = of_files(files).load()
    assert loaded.options == (("grpc.ssl_target_name_override", "labels"),)
    assert loaded.expires == ends
    assert re.fullmatch("[0-9a-f]{32}", loaded.fingerprint)
    plain = WorkerCredentials("labels", None).load()
    assert (plain.credentials, plain.options, plain.fingerprint, plain.expires) == (None, (), "", None)


def test_equal_contents(files):
    """Loading the same again gives the same, so that nothing is connected anew; another content does not."""
    credentials = of_files(files)
    loaded = credentials.load()
    assert credentials.load() is loaded
    assert of_files(files).load().fingerprint == loaded.fingerprint
    AUTHORITY.issue("gateway").write(files)
    assert credentials.load().fingerprint != loaded.fingerprint


def _chain(files):
    (files / "tls.crt").write_bytes(AUTHORITY.pem + (files / "tls.crt").read_bytes())


BROKEN = {
    "no authority": (lambda files: (files / "ca.crt").unlink(), "caFile DIR/ca.crt: cannot be read: No such file"),
    "no certificate": (
        lambda files: (files / "tls.crt").unlink(),
        "certFile DIR/tls.crt: cannot be read: No such file",
    ),
    "no key": (lambda files: (files / "tls.key").unlink(), "keyFile DIR/tls.key: cannot be read: No such file"),
    "a directory": (
        lambda files: ((files / "ca.crt").unlink(), (files / "ca.crt").mkdir()),
        "caFile DIR/ca.crt: cannot be read: Is a directory",
    ),
    "a pipe": (
        lambda files: ((files / "ca.crt").unlink(), os.mkfifo(files / "ca.crt")),
        "caFile DIR/ca.crt: is not a regular file",
    ),
    "too large": (
        lambda files: (files / "ca.crt").write_bytes(b" " * 2**20 + AUTHORITY.pem),
        "caFile DIR/ca.crt: has more than 1048576 bytes",
    ),
    "empty": (lambda files: (files / "ca.crt").write_bytes(b"\n"), "no readable PEM certificate in it (it is empty)"),
    "DER": (
        lambda files: (files / "tls.crt").write_bytes(b"0\x82"),
        "certFile DIR/tls.crt: no readable PEM certificate",
    ),
    "half an authority": (
        lambda files: (files / "ca.crt").write_bytes(AUTHORITY.pem + AUTHORITY.pem[:-30]),
        "caFile DIR/ca.crt: a PEM block in it does not end",
    ),
    "all authorities over": (
        lambda files: (files / "ca.crt").write_bytes(Authority(ends=now() - DAY).pem),
        "caFile DIR/ca.crt: expired on ",
    ),
    "half a key": (
        lambda files: (files / "tls.key").write_bytes((files / "tls.key").read_bytes()[:100]),
        "keyFile DIR/tls.key: no readable PEM private key in it",
    ),
    "another key": (
        lambda files: (files / "tls.key").write_bytes(AUTHORITY.issue().key),
        "keyFile DIR/tls.key: it does not belong to the first certificate in DIR/tls.crt (subject 'CN=certificate')",
    ),
    "the chain in the wrong order": (_chain, "keyFile DIR/tls.key: it does not belong to the first certificate"),
    "a password": (
        lambda files: (files / "tls.key").write_bytes(private_pem(ec.generate_private_key(ec.SECP256R1()), b"secret")),
        "keyFile DIR/tls.key: it is encrypted",
    ),
    "expired": (
        lambda files: AUTHORITY.issue("gateway", ends=now() - DAY).write(files),
        "certFile DIR/tls.crt: expired on ",
    ),
    "not begun": (
        lambda files: AUTHORITY.issue("gateway", begins=now() + DAY).write(files),
        "certFile DIR/tls.crt: is valid only from ",
    ),
    "a key of a rare kind": (
        lambda files: AUTHORITY.issue("gateway", key=ed448.Ed448PrivateKey.generate()).write(files),
        "keyFile DIR/tls.key: TLS in gRPC cannot use a key of this kind",
    ),
    "a rare curve": (
        lambda files: AUTHORITY.issue("gateway", key=ec.generate_private_key(ec.SECP256K1())).write(files),
        "keyFile DIR/tls.key: TLS in gRPC cannot use a key of this kind",
    ),
}


@pytest.mark.parametrize("what", BROKEN)
def test_files_that_cannot_be_used(files, what):
    """The error says whose and which file, and why; and nothing of what stands in it."""
    spoil, expected = BROKEN[what]
    spoil(files)
    error = reported(of_files(files))
    assert error.startswith("worker 'labels': ")
    assert expected.replace("DIR", str(files)) in error
    assert "BEGIN" not in error or "must begin with" in error


def test_a_bundle_that_is_no_certificate():
    """What has a certificate's form only is found when it is loaded."""
    hollow = b"-----BEGIN CERTIFICATE-----\nMAYwADAAAwA=\n-----END CERTIFICATE-----\n"
    assert reported(WorkerCredentials("labels", GrpcTls(ca_bundle=hollow, server_name="labels"))).startswith(
        "worker 'labels': caBundle: no readable PEM certificate in it"
    )


def test_a_machine_without_authorities(monkeypatch, tmp_path):
    """Where the system's authorities are not found, that is said, and gRPC's own are not taken in their place."""
    monkeypatch.delenv("SSL_CERT_FILE", raising=False)
    monkeypatch.setattr(module, "SYSTEM_FILES", (str(tmp_path / "none"),))
    credentials = WorkerCredentials("labels", GrpcTls(server_name="labels"))
    assert "the system's authorities: no file found" in reported(credentials)
    monkeypatch.setattr(module, "SYSTEM_FILES", (str(tmp_path / "none"), str(tmp_path / "some")))
    (tmp_path / "some").write_bytes(AUTHORITY.pem)
    assert credentials.load().credentials is not None


def test_some_authorities_over(files):
    """An authority that has expired beside one that has not is no error: that is a rotation."""
    (files / "ca.crt").write_bytes(Authority(ends=now() - DAY).pem + AUTHORITY.pem)
    assert of_files(files).load().credentials is not None


@pytest.mark.parametrize("key", [ed25519.Ed25519PrivateKey.generate(), ec.generate_private_key(ec.SECP521R1())])
def test_keys_that_some_servers_take(files, key):
    """Kinds that gRPC can sign with are left to the worker to judge."""
    AUTHORITY.issue("gateway", key=key).write(files)
    assert of_files(files).load().credentials is not None


# ----------------------------------------------------------------------------------------------- rotation


def test_nothing_has_changed(files):
    """Look after look, the same files are no change; nor are files without any."""
    credentials = of_files(files)
    credentials.load()
    assert not any(credentials.changed() for _ in range(5))
    for without_files in (WorkerCredentials("labels", None), WorkerCredentials("labels", BUNDLED)):
        without_files.load()
        assert not any(without_files.changed() for _ in range(5))


def test_a_change_rests_first(files):
    """A change is reported at the second look that finds it, and only once, whether or not it is loaded then."""
    credentials = of_files(files)
    credentials.load()
    AUTHORITY.issue("gateway").write(files)
    assert [credentials.changed() for _ in range(2)] == [False, True]
    credentials.load()
    assert [credentials.changed() for _ in range(3)] == [False, False, False]


def test_a_change_that_is_loaded_at_once(files):
    """A new connection takes the files as they are; the change is reported all the same, for those that are open."""
    credentials = of_files(files)
    before = credentials.load().fingerprint
    AUTHORITY.issue("gateway").write(files)
    assert credentials.load().fingerprint != before
    assert [credentials.changed() for _ in range(3)] == [False, True, False]


def test_before_anything_is_loaded(files):
    """Who has loaded nothing has nothing that could have changed."""
    credentials = of_files(files)
    assert [credentials.changed() for _ in range(2)] == [False, False]


def test_a_file_that_is_being_written(files):
    """As long as each look finds something else, nothing is taken up."""
    credentials = of_files(files)
    credentials.load()
    for size in range(1, 5):
        (files / "ca.crt").write_bytes(AUTHORITY.pem + AUTHORITY.pem[:size])
        assert not credentials.changed()
    (files / "ca.crt").write_bytes(AUTHORITY.pem)
    assert [credentials.changed() for _ in range(3)] == [False, False, False]


def test_the_same_again(files):
    """Files that are written anew with the same contents, or touched, are no change."""
    credentials = of_files(files)
    credentials.load()
    for file in files.iterdir():
        content = file.read_bytes()
        file.unlink()
        file.write_bytes(content)
    assert [credentials.changed() for _ in range(3)] == [False, False, False]


def test_old_files_are_not_read_at_each_look(files, monkeypatch):
    """If the times are unchanged, a look reads nothing; and a later write is seen all the same."""
    old = (now() - DAY).timestamp()
    credentials = of_files(files, now=lambda: now() + timedelta(seconds=10))
    credentials.load()
    credentials.changed()
    for file in files.iterdir():
        os.utime(file, (old, old))
    credentials.changed()
    with monkeypatch.context() as blind:
        blind.setattr(module, "file_content", lambda path: pytest.fail("read"))
        assert not credentials.changed()
    AUTHORITY.issue("gateway").write(files)
    assert [credentials.changed() for _ in range(2)] == [False, True]


def test_half_a_pair(files):
    """A certificate whose key is not there yet is reported and not loaded; the pair is, when it is whole."""
    credentials = of_files(files)
    before = credentials.load()
    renewed = AUTHORITY.issue("gateway")
    (files / "tls.crt").write_bytes(renewed.certificate)
    assert [credentials.changed() for _ in range(2)] == [False, True]
    assert "it does not belong to the first certificate" in reported(credentials)
    assert [credentials.changed() for _ in range(2)] == [False, False]
    (files / "tls.key").write_bytes(renewed.key)
    assert [credentials.changed() for _ in range(2)] == [False, True]
    assert credentials.load().fingerprint != before.fingerprint


def test_files_that_vanish(files):
    """Missing files are reported once; their return too, and then they are the same as before."""
    credentials = of_files(files)
    before = credentials.load()
    shutil.move(files / "tls.key", files / "away")
    assert [credentials.changed() for _ in range(2)] == [False, True]
    assert "cannot be read: No such file" in reported(credentials)
    assert [credentials.changed() for _ in range(2)] == [False, False]
    shutil.move(files / "away", files / "tls.key")
    assert [credentials.changed() for _ in range(2)] == [False, True]
    assert credentials.load() is before


def test_files_that_come_later(tmp_path):
    """A Worker may be configured before its files are there."""
    credentials = of_files(tmp_path)
    assert "cannot be read" in reported(credentials)
    (tmp_path / "ca.crt").write_bytes(AUTHORITY.pem)
    AUTHORITY.issue("gateway").write(tmp_path)
    assert [credentials.changed() for _ in range(2)] == [False, True]
    assert credentials.load().credentials is not None


def test_a_certificate_whose_time_comes(files):
    """A certificate that is too early is another one as soon as it is valid, though its file is the same."""
    begins = now() + DAY
    AUTHORITY.issue("gateway", begins=begins).write(files)
    clock = [now()]
    credentials = of_files(files, now=lambda: clock[0])
    assert "is valid only from" in reported(credentials)
    assert not credentials.changed()
    clock[0] = begins
    assert [credentials.changed() for _ in range(2)] == [True, False]
    assert credentials.load().credentials is not None


def test_a_certificate_whose_time_ends(files):
    """What was good when it was loaded is not used for another connection once it has expired."""
    ends = now() + DAY
    AUTHORITY.issue("gateway", ends=ends).write(files)
    clock = [now()]
    credentials = of_files(files, now=lambda: clock[0])
    credentials.load()
    clock[0] = ends + DAY
    assert f"expired on {ends.isoformat()}; renew it" in reported(credentials)


def test_a_mounted_secret(tmp_path):
    """A Secret is swapped by the rename of a link two links away from its files."""

    def put(number, authority):
        (tmp_path / number).mkdir()
        (tmp_path / number / "ca.crt").write_bytes(authority.pem)
        authority.issue("gateway").write(tmp_path / number)
        (tmp_path / "new").symlink_to(number)
        (tmp_path / "new").rename(tmp_path / "..data")

    put("..1", AUTHORITY)
    for name in ("ca.crt", "tls.crt", "tls.key"):
        (tmp_path / name).symlink_to(f"..data/{name}")
    credentials = of_files(tmp_path)
    before = credentials.load().fingerprint
    put("..2", Authority())
    assert [credentials.changed() for _ in range(2)] == [False, True]
    assert credentials.load().fingerprint != before
