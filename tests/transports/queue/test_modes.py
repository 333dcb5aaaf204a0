"""Each kind of Redis that a URL can name carries a queue: a cluster, a socket, TLS, a user who may do little."""

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
from tests.transports.queue.gateways import gateway

pytestmark = pytest.mark.faults

(_BLOCK,) = [each for each in blocks("text", pages_of="docs/queues.md") if each.text.startswith("user gateway")]
NEEDED = _BLOCK.text.split()[5:]
"""What a gateway needs to be allowed, as operators are told."""


async def test_a_cluster(tmp_path, key_file):
    """All that belongs to a queue is in one slot, on whichever node that is."""
    with servers.cluster(tmp_path) as nodes:
        url = f"redis+cluster://127.0.0.1:{nodes[0].port}"
        queue = Queue(nodes[0].url, key_file)
        queue.address = redis_address(url)
        async with consuming(queue), gateway(url, key_file) as made:
            await made.met()
            waiting = [made.put() for _ in range(20)]
            assert {type(await each.answer()) for each in waiting} == {Allow}
            assert made.events["redis_lost"] == 0
        await queue.client.aclose()


async def test_tls(redis, queue, key_file, tmp_path):
    """rediss:// with an authority of one's own."""
    authority = Authority()
    files = authority.issue("localhost").write(tmp_path)
    ca = tmp_path / "ca.pem"
    ca.write_bytes(authority.pem)
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(*files)
    async with servers.behind_tls(redis.port, context) as port:
        url = f"rediss://localhost:{port}?ssl_ca_certs={ca}"
        async with consuming(queue), gateway(url, key_file) as made:
            await made.met()
            assert isinstance(await made.call(), Allow)


async def test_a_user_who_may_do_no_more_than_is_needed(redis, queue, key_file, monkeypatch):
    """The ACL of docs/queues.md is enough for all that a gateway does: also where nobody is any more."""
    monkeypatch.setattr(abandoned_streams, "GRACE_SECONDS", 0.1)
    await queue.client.execute_command("ACL", "SETUSER", "gate", "on", ">secret", "~{test}:*", *NEEDED)
    try:
        url = f"redis://gate:secret@127.0.0.1:{redis.port}"
        limits = ConsumerLimits(in_flight=1, answer_seconds=ANSWER_SECONDS)
        async with consuming(queue, FakeHandler(), limits=limits) as consumer, gateway(url, key_file) as made:
            await made.met()
            assert isinstance(await made.call(), Allow)
            consumer.handler.holds = True
            made.put()
            await until(lambda: len(consumer.handler.called) == 2)
            waiting = made.put()
            cancelled = made.put()
            await until(lambda: made.worker._exchange.outbox.unsent == 0)
            cancelled.cancel()
            consumer.handler.become(None)
            assert (await waiting.answer()).reason is Reason.WORKER_UNAVAILABLE
            assert made.events["redis_lost"] == 0
    finally:
        await queue.client.execute_command("ACL", "DELUSER", "gate")


async def test_a_user_who_may_not_call_is_told(redis, queue, key_file):
    """Without XADD: a named failure, and no word of Redis' own about it."""
    rights = [each for each in NEEDED if each != "+xadd"]
    await queue.client.execute_command("ACL", "SETUSER", "gate", "on", ">secret", "~{test}:*", *rights)
    try:
        url = f"redis://gate:secret@127.0.0.1:{redis.port}"
        async with gateway(url, key_file) as made:
            await until(lambda: made.worker.why)
            assert "its ACL does not permit this user" in made.worker.why
            assert "secret" not in made.worker.why
    finally:
        await queue.client.execute_command("ACL", "DELUSER", "gate")


async def test_what_a_killed_gateway_leaves_is_forgotten(redis, queue, key_file):
    """Its replies and its lane have an end, which is put off each second that it is there."""
    async with contextlib.AsyncExitStack() as stack:
        consumer = await stack.enter_async_context(consuming(queue))
        made = await stack.enter_async_context(gateway(redis, key_file))
        await made.met()
        await made.call()
        replies = queue.names.replies(made.worker._exchange.instance)
        assert 0 < await queue.client.pttl(replies) <= 60_000
        await consumer.stop()
        (lane,) = [name async for name in queue.client.scan_iter("{test}:calls:*")]
        assert 0 < await queue.client.pttl(lane) <= 600_000
