"""TLS with real certificates over real sockets: the served clients, and changes of the files."""

import logging
from contextlib import asynccontextmanager

import grpc
import pytest
from cryptography.hazmat.primitives import serialization

from admission_worker import CertificateError, Tls, Worker, deny
from workers.python.tests.authorities import Authority
from workers.python.tests.client import Client, policy_call, quick


@pytest.fixture
def worker():
    made = Worker("test", version="1")

    @made.validating("plain")
    def plain(request):
        return deny("no")

    return made


@pytest.fixture(scope="module")
def authority():
    return Authority("ours")


@pytest.fixture(scope="module")
def stranger():
    return Authority("another CA")


@pytest.fixture
def files(tmp_path, authority):
    """A certificate, its key and its CA, as files."""
    tls = Tls(cert=tmp_path / "tls.crt", key=tmp_path / "tls.key", client_ca=tmp_path / "ca.crt")
    _write(tls, authority)
    tls.client_ca.write_bytes(authority.pem)
    return tls


def _write(tls, authority, name="worker"):
    """Replace certificate and key, as a renewal does."""
    for path, content in zip((tls.cert, tls.key), authority.issue(name), strict=True):
        _replace(path, content)


def _replace(path, content):
    """Replace the file: an overwritten one of the same size and modification time is not detected."""
    fresh = path.with_suffix(".new")
    fresh.write_bytes(content)
    fresh.replace(path)


def _without_clients(files):
    return Tls(cert=files.cert, key=files.key)


@asynccontextmanager
async def _client(target, trusted, issued=(None, None)):
    """A new connection that trusts one CA, perhaps with a client certificate."""
    certificate, key = issued
    credentials = grpc.ssl_channel_credentials(trusted.pem, private_key=key, certificate_chain=certificate)
    # Otherwise two channels with the same arguments share a connection, and there is no second handshake.
    options = [("grpc.use_local_subchannel_pool", 1), ("grpc.ssl_target_name_override", "localhost")]
    async with grpc.aio.secure_channel(target, credentials, options) as channel:
        yield Client(channel)


async def _is_served(target, trusted, issued=(None, None)):
    async with _client(target, trusted, issued) as client:
        try:
            await client.review(policy_call("plain"))
        except grpc.aio.AioRpcError as refused:
            return refused.code() is not grpc.StatusCode.UNAVAILABLE
        return True


async def test_a_client_that_trusts_its_ca_is_served(worker, files, authority, stranger):
    """A client that trusts the CA is served; one that trusts another, or has no TLS, is not."""
    async with worker.serve(tls=_without_clients(files), limits=quick()) as target:
        assert await _is_served(target, authority)
        assert not await _is_served(target, stranger)
        async with grpc.aio.insecure_channel(target) as channel:
            with pytest.raises(grpc.aio.AioRpcError, match="UNAVAILABLE"):
                await Client(channel).review(policy_call("plain"))


async def test_with_a_client_ca_only_its_clients_are_served(worker, files, authority, stranger):
    """A client without a certificate, or with one of another CA, fails in the handshake."""
    async with worker.serve(tls=files, limits=quick()) as target:
        assert await _is_served(target, authority, authority.issue("gateway"))
        assert not await _is_served(target, authority)
        assert not await _is_served(target, authority, stranger.issue("gateway"))


async def test_a_unix_socket_can_have_tls_too(worker, files, authority, tmp_path):
    """A worker serves TLS on a Unix socket too."""
    async with worker.serve(f"unix:{tmp_path}/w.sock", tls=_without_clients(files), limits=quick()) as target:
        assert await _is_served(target, authority)


async def test_a_new_certificate_is_used_without_a_restart(worker, files, authority, stranger):
    """New connections get the new certificate; existing ones stay open."""
    async with (
        worker.serve(tls=_without_clients(files), limits=quick()) as target,
        _client(target, authority) as before,
    ):
        assert (await before.review(policy_call("plain"))).deny.message == "no"
        _write(files, stranger)
        assert await _is_served(target, stranger)
        assert not await _is_served(target, authority)
        assert (await before.review(policy_call("plain"))).deny.message == "no"


async def test_new_client_cas_are_used_without_a_restart(worker, files, authority, stranger):
    """The client CAs can change while the worker serves."""
    async with worker.serve(tls=files, limits=quick()) as target:
        _replace(files.client_ca, stranger.pem)
        assert await _is_served(target, authority, stranger.issue("gateway"))
        assert not await _is_served(target, authority, authority.issue("gateway"))


@pytest.mark.parametrize("name", ["cert", "key"])
@pytest.mark.parametrize("content", [b"", b"garbage", None])
async def test_an_invalid_file_is_logged_once_and_the_old_one_stays(
    worker, files, authority, stranger, caplog, name, content
):
    """The worker keeps the old pair while a file is incomplete, of another key, or missing, and then uses the new
    one.
    """
    async with worker.serve(tls=_without_clients(files), limits=quick()) as target:
        path = getattr(files, name)
        if content is None:
            path.unlink()
        else:
            path.write_bytes(content)
        assert await _is_served(target, authority)
        assert await _is_served(target, authority)
        errors = [record.getMessage() for record in caplog.records if record.levelno == logging.ERROR]
        assert len(errors) == 1
        assert "what was used before stays" in errors[0]
        _write(files, stranger)
        assert await _is_served(target, stranger)


async def test_a_key_that_is_not_the_certificates_is_logged(worker, files, authority, stranger, caplog):
    """While only one of the files is replaced, the worker uses the old pair."""
    async with worker.serve(tls=_without_clients(files), limits=quick()) as target:
        _replace(files.key, stranger.issue("other")[1])
        assert await _is_served(target, authority)
        assert "key values mismatch" in caplog.text


@pytest.mark.parametrize("name", ["cert", "key", "client_ca"])
@pytest.mark.parametrize("content", [b"garbage", None])
async def test_files_that_cannot_be_used_at_the_start_are_an_error(worker, files, name, content):
    """An invalid file is an error of one line that names it, and the worker does not serve."""
    path = getattr(files, name)
    path.unlink() if content is None else path.write_bytes(content)
    with pytest.raises(CertificateError, match=str(path)) as raised:
        await worker.serve(tls=files).__aenter__()
    assert "\n" not in str(raised.value)


async def test_a_key_with_a_passphrase_is_an_error(worker, files):
    """A key with a passphrase is an error; the worker does not prompt for it."""
    key = serialization.load_pem_private_key(files.key.read_bytes(), None)
    encryption = serialization.BestAvailableEncryption(b"secret")
    pem = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, encryption)
    files.key.write_bytes(pem)
    with pytest.raises(CertificateError, match="without a passphrase"):
        await worker.serve(tls=files).__aenter__()
