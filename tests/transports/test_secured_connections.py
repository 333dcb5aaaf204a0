"""Secured connections to real gRPC servers: which servers are trusted, the gateway's identity, and the errors."""

import asyncio
from contextlib import asynccontextmanager

import grpc
import grpc.aio
import pytest
from cryptography.hazmat.primitives.asymmetric import ec, rsa

from gateway.policies.workers.targets import GrpcTls
from gateway.transports.connection_errors import handshake_failure
from gateway.transports.credentials import WorkerCredentials
from tests.authorities import DAY, Authority, now

AUTHORITY = Authority()
LABELS = AUTHORITY.issue("labels")
WAIT_SECONDS = 30.0
"""Seconds until a call is given up; none is expected to take one."""


class _Echo(grpc.GenericRpcHandler):
    """Any method answers with what it is sent."""

    def service(self, details):
        async def echo(request, context):
            return request

        return grpc.unary_unary_rpc_method_handler(echo)


@asynccontextmanager
async def served(pair=LABELS, *, clients=None, secure=True, bind="127.0.0.1:0"):
    """A worker with this certificate, that takes no clients but those of an authority if one is given; its target."""
    server = grpc.aio.server(handlers=[_Echo()])
    if secure:
        made = grpc.ssl_server_credentials(
            [(pair.key, pair.certificate)], clients and clients.pem, require_client_auth=clients is not None
        )
        port = server.add_secure_port(bind, made)
    else:
        port = server.add_insecure_port(bind)
    await server.start()
    try:
        yield bind if bind.startswith("unix:") else f"127.0.0.1:{port}"
    finally:
        await server.stop(None)


async def called(target, credentials):
    """Call over a new connection: what comes back, or what gRPC says and what we make of it."""
    loaded = credentials.load()
    options = (*loaded.options, ("grpc.use_local_subchannel_pool", 1))
    channel = (
        grpc.aio.insecure_channel(target, options=options)
        if loaded.credentials is None
        else grpc.aio.secure_channel(target, loaded.credentials, options=options)
    )
    async with channel:
        try:
            return (await channel.unary_unary("/a/b")(b"hello", timeout=WAIT_SECONDS)).decode()
        except grpc.aio.AioRpcError as error:
            if error.code() is not grpc.StatusCode.UNAVAILABLE:
                raise
            return handshake_failure(error.details(), credentials.tls) or error.details()


def trusting(pem=AUTHORITY.pem, name="labels", pair=None, directory=None):
    """Credentials with an authority in the configuration, and a certificate in files."""
    cert_file, key_file = pair.write(directory) if pair else ("", "")
    return WorkerCredentials(
        "labels", GrpcTls(ca_bundle=pem, cert_file=cert_file, key_file=key_file, server_name=name), str(directory or "")
    )


# ------------------------------------------------------------------------------------------- who is believed


async def test_the_right_worker():
    """A worker with a certificate of the authority for the name is called."""
    async with served() as target:
        assert await called(target, trusting()) == "hello"


async def test_a_socket(tmp_path):
    """A worker behind a Unix socket proves its name like any other."""
    async with served(bind=f"unix:{tmp_path}/w.sock") as target:
        assert await called(target, trusting()) == "hello"
        assert "is not valid for the DNS name 'other'" in await called(target, trusting(name="other"))


async def test_plain_text():
    """Without tls a worker is called in plain text."""
    async with served(secure=False) as target:
        assert await called(target, WorkerCredentials("labels", None)) == "hello"


async def test_the_systems_authorities(tmp_path, monkeypatch):
    """``tls: {}`` believes the authorities of this machine, and not those that come with gRPC's package."""
    (tmp_path / "system.crt").write_bytes(AUTHORITY.pem)
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "system.crt"))
    async with served() as target:
        assert await called(target, WorkerCredentials("labels", GrpcTls(server_name="labels"))) == "hello"


@pytest.mark.parametrize("names", [["labels"], ["LABELS"], ["other", "labels"], ["labels", "127.0.0.1"]])
async def test_names_that_do(names):
    """The name is one of the DNS names of the certificate, in upper or lower case."""
    async with served(AUTHORITY.issue(*names)) as target:
        assert await called(target, trusting()) == "hello"


@pytest.mark.parametrize("pair", [AUTHORITY.issue(subject="labels.policies.svc"), AUTHORITY.issue("*.policies.svc")])
async def test_names_that_do_in_grpc(pair):
    """gRPC takes the subject of a certificate without alternative names, and a wildcard for the first label."""
    async with served(pair) as target:
        assert await called(target, trusting(name="labels.policies.svc")) == "hello"
        assert "is not valid for the DNS name 'labels'" in await called(target, trusting())


NOT_BELIEVED = {
    "another worker": (AUTHORITY.issue("other"), "a certificate that is not valid for the DNS name 'labels'"),
    "an address": (AUTHORITY.issue("127.0.0.1"), "a certificate that is not valid for the DNS name 'labels'"),
    "the subject counts for nothing beside names": (
        AUTHORITY.issue("other", subject="labels"),
        "a certificate that is not valid for the DNS name 'labels'",
    ),
    "another authority": (Authority("x").issue("labels"), "a certificate of an authority that is not in caBundle"),
    "an authority of the same name": (Authority().issue("labels"), "of an authority that is not in caBundle"),
    "expired": (AUTHORITY.issue("labels", ends=now() - DAY), "an expired certificate"),
    "not begun": (AUTHORITY.issue("labels", begins=now() + DAY), "a certificate that is not valid yet"),
}


@pytest.mark.parametrize("who", NOT_BELIEVED)
async def test_who_is_not_believed(who):
    """Another server is not called, and the failure has the reason."""
    pair, expected = NOT_BELIEVED[who]
    async with served(pair) as target:
        reported = await called(target, trusting())
    assert reported.startswith("presents ")
    assert expected in reported


async def test_a_worker_without_tls():
    """A worker that serves plain text is distinguished from one that is away."""
    async with served(secure=False) as target:
        assert (await called(target, trusting())).startswith("does not speak TLS; give it a certificate")


async def test_tls_where_plain_text_was_expected():
    """A worker that serves TLS is not called in plain text, and the hint says so."""
    async with served() as target:
        assert "if it speaks TLS, set spec.grpc.tls" in await called(target, WorkerCredentials("labels", None))


async def test_a_worker_that_is_away():
    """A refused connection is no error of certificates."""
    async with served() as target:
        pass
    assert "Connection refused" in await called(target, trusting())


# ----------------------------------------------------------------------------------- who the gateway is itself


async def test_a_client_certificate(tmp_path):
    """A worker that requests a certificate of its authority gets the gateway's."""
    async with served(clients=AUTHORITY) as target:
        assert await called(target, trusting(pair=AUTHORITY.issue("gateway"), directory=tmp_path)) == "hello"


async def test_no_client_certificate():
    """Without one, the hint says how to give one."""
    async with served(clients=AUTHORITY) as target:
        reported = await called(target, trusting())
    assert "if it requires a client certificate, set spec.grpc.tls.certFile" in reported


async def test_an_unknown_client_certificate(tmp_path):
    """One of an authority that the worker does not know is refused, and named."""
    async with served(clients=AUTHORITY) as target:
        reported = await called(target, trusting(pair=Authority("x").issue("gateway"), directory=tmp_path))
    assert f"does it accept the client certificate in {tmp_path}/tls.crt" in reported


@pytest.mark.parametrize(
    "key",
    [
        ec.generate_private_key(ec.SECP256R1()),
        ec.generate_private_key(ec.SECP384R1()),
        rsa.generate_private_key(65537, 2048),
    ],
    ids=["P-256", "P-384", "RSA"],
)
async def test_keys_that_do(tmp_path, key):
    """The usual kinds of keys are usable on both sides."""
    async with served(AUTHORITY.issue("labels", key=key), clients=AUTHORITY) as target:
        assert await called(target, trusting(pair=AUTHORITY.issue("gateway", key=key), directory=tmp_path)) == "hello"


# ------------------------------------------------------------------------------------------------ rotation


async def test_rotation_of_everything(tmp_path):
    """While a worker with a certificate of the new authority is up, the files are replaced: then it is called."""
    new = Authority("new")
    (tmp_path / "ca.crt").write_bytes(AUTHORITY.pem)
    AUTHORITY.issue("gateway").write(tmp_path)
    tls = GrpcTls(ca_file="ca.crt", cert_file="tls.crt", key_file="tls.key", server_name="labels")
    credentials = WorkerCredentials("labels", tls, str(tmp_path))
    async with served(clients=AUTHORITY) as old, served(new.issue("labels"), clients=new) as target:
        assert await called(old, credentials) == "hello"
        assert "of an authority that is not in caFile ca.crt" in await called(target, credentials)
        (tmp_path / "ca.crt").write_bytes(new.pem)
        new.issue("gateway").write(tmp_path)
        assert [credentials.changed() for _ in range(2)] == [False, True]
        assert await called(target, credentials) == "hello"


async def test_connections_do_not_share_credentials():
    """A new connection with other credentials is made even while one with the old ones is open to the same address."""
    async with served() as target:
        good = trusting()
        loaded = good.load()
        async with grpc.aio.secure_channel(target, loaded.credentials, options=loaded.options) as channel:
            await asyncio.wait_for(channel.channel_ready(), WAIT_SECONDS)
            assert "of an authority that is not in" in await called(target, trusting(Authority("x").pem))
            assert await channel.unary_unary("/a/b")(b"hello", timeout=WAIT_SECONDS) == b"hello"
