"""Each kind of Redis that a URL can name carries a queue: a cluster, a socket, TLS, a user with few rights."""

import contextlib
import ssl

import pytest

from gateway.engine.verdicts import Allow
from gateway.reasons import Reason
from gateway.redis.addresses import redis_address
from gateway.transports.limits import ConsumerLimits
from gateway.transports.queue import abandoned_streams
from tests.authorities import Authority
from tests.caching import servers
from tests.docs.pages import blocks
from tests.transports.queue.consumers import ANSWER_SECONDS, FakeHandler, Queue, consuming, until
from tests.transports.queue.gateways import running_gateway

pytestmark = pytest.mark.faults

(_BLOCK,) = [each for each in blocks("text", pages_of="docs/queues.md") if each.text.startswith("user gateway")]
NEEDED = _BLOCK.text.split()[5:]
"""The rights of a gateway's user, as documented."""


async def test_a_cluster(tmp_path, key_file):
    """All keys of a queue are in one slot, on any node."""
    with servers.cluster(tmp_path) as nodes:
        url = f"redis+cluster://127.0.0.1:{nodes[0].port}"
        queue = Queue(nodes[0].url, key_file)
        queue.address = redis_address(url)
        async with consuming(queue), running_gateway(url, key_file) as gateway:
            await gateway.sees_bridges()
            waiting = [gateway.put() for _ in range(20)]
            assert {type(await each.answer()) for each in waiting} == {Allow}
            assert gateway.events["redis_lost"] == 0
        await queue.client.aclose()


async def test_tls(redis, queue, key_file, tmp_path):
    """rediss:// with a private CA."""
    authority = Authority()
    files = authority.issue("localhost").write(tmp_path)
    ca = tmp_path / "ca.pem"
    ca.write_bytes(authority.pem)
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(*files)
    async with servers.behind_tls(redis.port, context) as port:
        url = f"rediss://localhost:{port}?ssl_ca_certs={ca}"
        async with consuming(queue), running_gateway(url, key_file) as gateway:
            await gateway.sees_bridges()
            assert isinstance(await gateway.call(), Allow)


async def test_a_user_with_the_documented_rights(redis, queue, key_file, monkeypatch):
    """The ACL of docs/queues.md permits all that a gateway does, abandoned lanes included."""
    monkeypatch.setattr(abandoned_streams, "GRACE_SECONDS", 0.1)
    await queue.client.execute_command("ACL", "SETUSER", "gate", "on", ">secret", "~{test}:*", *NEEDED)
    try:
        url = f"redis://gate:secret@127.0.0.1:{redis.port}"
        limits = ConsumerLimits(in_flight=1, answer_seconds=ANSWER_SECONDS)
        async with (
            consuming(queue, FakeHandler(), limits=limits) as consumer,
            running_gateway(url, key_file) as gateway,
        ):
            await gateway.sees_bridges()
            assert isinstance(await gateway.call(), Allow)
            consumer.handler.holds = True
            gateway.put()
            await until(lambda: len(consumer.handler.calls) == 2)
            waiting = gateway.put()
            cancelled = gateway.put()
            await until(lambda: gateway.worker._exchange.outbox.unsent == 0)
            cancelled.cancel()
            consumer.handler.become(None)
            assert (await waiting.answer()).reason is Reason.WORKER_UNAVAILABLE
            assert gateway.events["redis_lost"] == 0
    finally:
        await queue.client.execute_command("ACL", "DELUSER", "gate")


async def test_a_user_without_the_right_to_write(redis, queue, key_file):
    """Without XADD calls fail with a reason, which contains nothing of Redis' own text."""
    rights = [each for each in NEEDED if each != "+xadd"]
    await queue.client.execute_command("ACL", "SETUSER", "gate", "on", ">secret", "~{test}:*", *rights)
    try:
        url = f"redis://gate:secret@127.0.0.1:{redis.port}"
        async with running_gateway(url, key_file) as gateway:
            await until(lambda: gateway.worker.why)
            assert "its ACL does not permit this user" in gateway.worker.why
            assert "secret" not in gateway.worker.why
    finally:
        await queue.client.execute_command("ACL", "DELUSER", "gate")


async def test_data_of_a_killed_gateway_expires(redis, queue, key_file):
    """Reply stream and lane expire, and a gateway that runs renews them each second."""
    async with contextlib.AsyncExitStack() as stack:
        consumer = await stack.enter_async_context(consuming(queue))
        gateway = await stack.enter_async_context(running_gateway(redis, key_file))
        await gateway.sees_bridges()
        await gateway.call()
        replies = queue.names.replies(gateway.worker._exchange.instance)
        assert 0 < await queue.client.pttl(replies) <= 60_000
        await consumer.stop()
        (lane,) = [name async for name in queue.client.scan_iter("{test}:calls:*")]
        assert 0 < await queue.client.pttl(lane) <= 600_000
