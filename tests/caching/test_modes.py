"""Redis behind TLS, a socket, Sentinels, or as a cluster: the same cache, through losses of servers."""

import datetime as dt
import ssl

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from gateway.caching.cache_keys import cache_key_of, prefix_of
from gateway.caching.names import marker_name
from gateway.engine.answer_source import Source
from gateway.engine.verdicts import Deny
from gateway.redis.faults import RedisFault
from tests.caching import servers
from tests.caching.world import ALLOW, policy_call, until

DENY = Deny(message="no")


async def written(gateway):
    """Wait until Redis has what it is to have."""
    await until(lambda: not gateway.store._writes._queue and gateway.store._writes._task is None)


async def shared(first, second, count=1):
    """Whether the first gateway's verdict reaches the second through Redis."""
    for number in range(count):
        await first.answer(policy_call(f"[{number}]"))
    await written(first)
    return [(await second.answer(policy_call(f"[{number}]")))[1] for number in range(count)]


@pytest.fixture(scope="module")
def certificate(tmp_path_factory):
    """A certificate for 127.0.0.1 that signs itself, and its key."""
    folder = tmp_path_factory.mktemp("tls")
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "redis")])
    now = dt.datetime.now(dt.UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - dt.timedelta(days=1))
        .not_valid_after(now + dt.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    (folder / "tls.crt").write_bytes(made.public_bytes(serialization.Encoding.PEM))
    (folder / "tls.key").write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    return folder


async def test_tls(gateway, redis, certificate):
    """rediss:// verifies the server's certificate; with the right one everything works."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(certificate / "tls.crt", certificate / "tls.key")
    async with servers.behind_tls(redis.port, context) as port:
        url = f"rediss://localhost:{port}?ssl_ca_certs={certificate / 'tls.crt'}"
        first, second = await gateway(DENY, url=url), await gateway(url=url)
        assert await shared(first, second, 3) == [Source.REDIS] * 3
        for each in (first, second):
            await each.cache.close()


async def test_tls_that_is_not_trusted(gateway, redis, certificate, logs):
    """With an untrusted certificate, or one for another name, the link does not come up, and the log has the reason."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(certificate / "tls.crt", certificate / "tls.key")
    async with servers.behind_tls(redis.port, context) as port:
        for url in (f"rediss://localhost:{port}", f"rediss://127.0.0.1:{port}?ssl_ca_certs={certificate / 'tls.crt'}"):
            made = await gateway(ALLOW, url=url, connected=False)
            await until(lambda made=made: made.events.faults[RedisFault.CONNECTION])
            assert await made.answer(policy_call()) == (ALLOW, Source.CALLED)
            await made.cache.close()
    assert "self-signed certificate" in str([entry.get("why") for entry in logs])
    assert any("not valid for '127.0.0.1'" in entry.get("why", "") for entry in logs)


async def test_a_socket(gateway, tmp_path):
    """unix:///PATH works as a port does."""
    with servers.server(tmp_path, "--unixsocket", str(tmp_path / "s")) as made:
        assert made.process is not None
        url = f"unix://{tmp_path / 's'}?db=2"
        first, second = await gateway(DENY, url=url), await gateway(url=url)
        assert await shared(first, second) == [Source.REDIS]
        for each in (first, second):
            await each.cache.close()


async def test_a_cluster(gateway, tmp_path, monkeypatch):
    """Entries spread over three masters; purges reach all; when one master dies the others' entries still serve."""
    # The link does not reconnect while sources are counted.
    monkeypatch.setattr("gateway.redis.link.SETTLED_SECONDS", 3600.0)
    with servers.cluster(tmp_path) as nodes:
        url = f"redis+cluster://127.0.0.1:{nodes[0].port},127.0.0.1:{nodes[1].port}"
        first, second, third = await gateway(DENY, url=url), await gateway(url=url), await gateway(ALLOW, url=url)
        assert await shared(first, second, 60) == [Source.REDIS] * 60
        held = []
        for node in nodes:
            with node.client as client:
                held.append(client.dbsize())
        assert all(held)
        assert sum(held) == 60
        # Not the one that would say whether the policy was purged.
        marker = marker_name(first.store._seals.keys[0], prefix_of(cache_key_of(policy_call())))
        home = first.store._link._client.get_node_from_key(marker).port
        victim = max(number for number, node in enumerate(nodes) if node.port != home)
        nodes[victim].kill()
        sources = [(await third.answer(policy_call(f"[{number}]")))[1] for number in range(60)]
        assert sources.count(Source.REDIS) == 60 - held[victim]
        assert sources.count(Source.CALLED) == held[victim]
        await first.cache.purge(["test/p.test.example.com"])
        for node in (node for number, node in enumerate(nodes) if number != victim):
            with node.client as client:
                await until(lambda client=client: all(b":purged:" in name for name in client.scan_iter()))
        for each in (first, second, third):
            await each.cache.close()


async def test_a_failover(gateway, tmp_path):
    """When Sentinels make another server the master, the cache goes on with that one, and what it has."""
    with servers.sentinels(tmp_path) as (master, replica, watchers):
        url = f"redis+sentinel://{','.join(f'127.0.0.1:{each.port}' for each in watchers)}/main"
        first, second = await gateway(DENY, url=url), await gateway(ALLOW, url=url)
        await first.answer(policy_call())
        with replica.client as client:
            await until(client.dbsize)
        master.kill()
        assert await second.answer(policy_call("[2]")) == (ALLOW, Source.CALLED), "no review waits for a failover"
        await until(lambda: not second.store.up)
        with replica.client as client:
            await until(lambda: client.info("replication")["role"] == "master")
        await until(lambda: second.store.up and first.store.up)
        assert await second.answer(policy_call()) == (DENY, Source.REDIS)
        await second.answer(policy_call("[3]"))
        await written(second)
        assert (await first.answer(policy_call("[3]")))[0] == ALLOW
        for each in (first, second):
            await each.cache.close()


async def test_nothing_at_the_address(gateway):
    """Sentinels and cluster nodes that are not there are a link that does not come up, and is closed at once."""
    for url in ("redis+sentinel://127.0.0.1:1/main", "redis+cluster://127.0.0.1:1"):
        made = await gateway(ALLOW, url=url, connected=False)
        await until(lambda made=made: made.events.faults)
        assert await made.answer(policy_call()) == (ALLOW, Source.CALLED)
        await made.cache.close()
