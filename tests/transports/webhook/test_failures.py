"""Webhooks in trouble: each is a failure with a name, within bounds, and leaves no connection behind."""

import asyncio
import gzip
import socket

import pytest

from gateway.engine.verdicts import Allow, Failure
from gateway.policies.workers.targets import ServiceReference
from gateway.reasons import Reason
from tests.deadlines import longer_and_longer
from tests.integration.running import until
from tests.transports.webhook.caller import WAIT_SECONDS, called, policy_caller
from tests.transports.webhook.servers import allows, frozen, http, review, server_context

AGAIN = {"retry_after": "0"}


def failing(count, status=429, **headers):
    """A script that fails so often, then allows."""
    left = iter(range(count))
    return lambda got: allows(got) if next(left, None) is None else http(status, b"busy", **headers)


# ---------------------------------------------------------------------------------------------------- Retry-After


@pytest.mark.parametrize("status", [429, 500, 503])
async def test_retry_after_is_followed_with_the_same_bytes(calling, status):
    """The same request, uid and timeout included, on the same connection."""
    async with calling(failing(2, status, **AGAIN)) as (hook, caller):
        assert isinstance(await caller.call(), Allow)
        assert caller.events["retry"] == 2
    assert len(hook.got) == 3
    assert len({(got.target, got.headers, got.body, got.connection) for got in hook.got}) == 1


async def test_retries_are_bounded(calling):
    """As many calls as kube-apiserver makes: eleven."""
    async with calling(failing(1000, **AGAIN)) as (hook, caller):
        answer = await caller.call()
    assert len(hook.got) == 11
    assert answer.reason is Reason.WORKER_FAILURE
    assert answer.message.endswith("the server has received too many requests and has asked us to try again later")


@pytest.mark.parametrize("headers", [{}, {"retry_after": "Wed, 21 Oct 2015 07:28:00 GMT"}, {"retry_after": "100"}])
async def test_without_seconds_or_without_time_there_is_no_retry(calling, headers):
    """No header, a date, or more seconds than are left: the failure comes at once."""
    async with calling(failing(1, 503, **headers)) as (hook, caller):
        answer = await caller.call()
    assert (len(hook.got), answer.reason) == (1, Reason.WORKER_FAILURE)


async def test_a_call_with_side_effects_is_never_repeated(calling):
    """Not even if the webhook requests it."""
    async with calling(failing(1, 503, **AGAIN)) as (hook, caller):
        answer = await caller.call(cancellable=False)
    assert (len(hook.got), answer.reason) == (1, Reason.WORKER_FAILURE)


# ------------------------------------------------------------------------------------------------------ redirects


@pytest.mark.parametrize("status", [307, 308])
@pytest.mark.parametrize("location", ["/elsewhere", "elsewhere", "https://127.0.0.1:{port}/elsewhere"])
async def test_a_redirect_to_the_same_place_is_followed(calling, status, location):
    """The review is sent again, to the path that it says."""

    async with calling() as (hook, caller):
        hook.script = lambda got: (
            allows(got) if got.target == "/elsewhere" else http(status, location=location.format(port=hook.port))
        )
        assert isinstance(await caller.call(), Allow)
    assert hook.got[0].body == hook.got[1].body


@pytest.mark.parametrize(
    ("status", "location"),
    [
        (307, "https://elsewhere.example.com/judge"),
        (308, "https://127.0.0.1:1/judge"),
        (307, "http://127.0.0.1/judge"),
        (307, "//elsewhere.example.com"),
        (308, "https://[bad"),
        (301, "/judge"),
        (302, "/judge"),
        (303, "/judge"),
    ],
)
async def test_any_other_redirect_is_a_failure(calling, status, location):
    """To another place neither review nor credentials are sent, and a review is never turned into a GET."""
    async with calling(lambda _: http(status, location=location)) as (hook, caller):
        answer = await caller.call()
    assert (len(hook.got), answer.reason) == (1, Reason.WORKER_FAILURE)
    assert f'redirected with status {status} to "{location}"' in answer.message


async def test_redirects_without_end_are_a_failure(calling):
    """After ten."""
    async with calling(lambda _: http(307, location="/again")) as (hook, caller):
        answer = await caller.call()
    assert len(hook.got) == 11
    assert answer.message.endswith("stopped after 10 redirects")


# ------------------------------------------------------------------------------------------------------ the answer


@pytest.mark.parametrize("coding", ["br", "deflate", "gzip, gzip"])
async def test_another_coding_than_gzip_is_a_failure(calling, coding):
    """It was not requested."""
    async with calling(lambda got: http(body=review(got), content_encoding=coding)) as (_, caller):
        answer = await caller.call()
    assert answer.reason is Reason.INVALID_RESPONSE
    assert f'the answer has Content-Encoding "{coding}"' in answer.message


@pytest.mark.parametrize("body", [b"no gzip", gzip.compress(b"{}" * 1000)[:-9]], ids=["other", "cut"])
async def test_broken_gzip_is_a_failure(calling, body):
    """Something else, or cut off."""
    async with calling(lambda _: http(body=body, content_encoding="gzip")) as (_, caller):
        answer = await caller.call()
    assert answer.reason is Reason.INVALID_RESPONSE
    assert "gzip: invalid header, checksum or end" in answer.message


async def test_a_bomb_ends_at_the_bound(calling):
    """A megabyte that would unpack to a gigabyte."""
    bomb = gzip.compress(bytes(1_000_000)) * 1000
    async with calling(lambda _: http(body=bomb, content_encoding="gzip")) as (_, caller):
        answer = await caller.call()
        await until_disconnected(caller)
    assert answer.reason is Reason.INVALID_RESPONSE
    assert "more than 32000000 bytes, which is the limit webhook_answer_bytes" in answer.message


async def test_fifty_megabytes_are_too_many(calling):
    """Even of blanks around a good answer, and even if the length is not said."""

    async def script(got, writer):
        writer.write(b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n" + review(got))
        for _ in range(50):
            writer.write(b" " * 1_000_000)
            await writer.drain()
        writer.close()

    async with calling(script) as (_, caller):
        answer = await caller.call()
        await until_disconnected(caller)
    assert answer.reason is Reason.INVALID_RESPONSE
    assert "webhook_answer_bytes" in answer.message


async def test_a_bound_of_ones_own(calling):
    """The limit counts what comes out; at the limit is not above it."""
    size = []

    def script(got):
        content = review(got)
        size.append(len(content))
        return http(body=gzip.compress(content), content_encoding="gzip")

    async with calling(script) as (_, caller):
        await caller.call()
    async with calling(script, webhook_answer_bytes=size[0]) as (_, caller):
        assert isinstance(await caller.call(), Allow)
    async with calling(script, webhook_answer_bytes=size[0] - 1) as (_, caller):
        assert (await caller.call()).reason is Reason.INVALID_RESPONSE


async def test_an_answer_of_a_million_values_is_not_read(calling):
    """32 MB of empty arrays would take twenty times as much memory."""
    many = b",[]" * 1_000_001
    async with calling(lambda _: http(body=b'{"x":[1' + many + b"]}")) as (_, caller):
        answer = await caller.call()
    assert answer.reason is Reason.INVALID_RESPONSE
    assert "more than 1000000 values, which is the limit webhook_answer_values" in answer.message


async def test_an_answer_with_large_headers_is_read(calling):
    """As a proxy in front of a webhook may set them."""
    async with calling(lambda got: http(body=review(got), x_from_a_proxy="x" * 60_000)) as (_, caller):
        assert isinstance(await caller.call(), Allow)


@pytest.mark.parametrize("endless", [False, True])
async def test_a_dripping_answer_ends_at_the_deadline(calling, endless):
    """Nothing, or a byte now and then: the connection is closed, and the webhook sees it."""

    async def script(got, writer):
        if len(hook.got) == 1:
            writer.write(allows(got))
            await writer.drain()
            return
        writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        while endless:
            writer.write(b"1\r\n \r\n")
            await writer.drain()
            await asyncio.sleep(0.01)

    async with calling(script) as (hook, caller):
        assert isinstance(await caller.call(), Allow)
        for seconds in longer_and_longer(1):
            answer = await caller.call(seconds=seconds)
            if len(hook.got) > 1:
                break
        await asyncio.wait_for(hook.ended.wait(), WAIT_SECONDS)
    assert answer.reason is Reason.WORKER_TIMEOUT
    assert answer.message.endswith(f'/judge?timeout={min(seconds, 30)}s": context deadline exceeded')


@pytest.mark.parametrize(
    "begun",
    [
        b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n{",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n{",
    ],
)
async def test_an_answer_that_is_cut_off_is_a_lost_connection(calling, begun):
    """Whatever it had said before."""

    async def script(_got, writer):
        writer.write(begun)
        await writer.drain()
        writer.close()

    async with calling(script) as (hook, caller):
        answer = await caller.call()
    assert (len(hook.got), answer.reason) == (1, Reason.WORKER_UNAVAILABLE)
    assert "unexpected EOF" in answer.message


# -------------------------------------------------------------------------------------------------- the connection


async def test_a_connection_that_closes_without_an_answer_is_a_failure(calling):
    """A new one is not retried: the result of the call is unknown."""

    async def script(_got, writer):
        writer.close()

    async with calling(script) as (hook, caller):
        answer = await caller.call()
    assert (len(hook.got), answer.reason) == (1, Reason.WORKER_UNAVAILABLE)
    assert answer.message.endswith('": EOF')


@pytest.mark.parametrize("cancellable", [True, False])
async def test_a_call_that_meets_the_close_of_an_idle_connection_is_repeated(calling, cancellable):
    """Once, on another connection; not if it has side effects."""
    met = []

    async def script(got, writer):
        if got.connection == 0 and len(hook.got) > 1:
            met.append(got)
            writer.close()
            return
        writer.write(allows(got))
        await writer.drain()

    async with calling(script) as (hook, caller):
        assert isinstance(await caller.call(), Allow)
        answer = await caller.call(cancellable=cancellable)
        assert len(met) == 1
        if cancellable:
            assert isinstance(answer, Allow)
            assert hook.got[-1].body == met[0].body
            assert caller.events["retry"] == 1
        else:
            assert answer.reason is Reason.WORKER_UNAVAILABLE
            assert hook.got[-1] is met[0]


async def test_a_call_whose_answer_has_begun_is_not_repeated(calling):
    """The first bytes of an answer say that it was received."""

    async def script(got, writer):
        if len(hook.got) == 1:
            writer.write(allows(got))
            await writer.drain()
            return
        writer.write(b"HTTP/1.1 200 OK\r\nContent-")
        await writer.drain()
        writer.close()

    async with calling(script) as (hook, caller):
        assert isinstance(await caller.call(), Allow)
        answer = await caller.call()
    assert (len(hook.got), answer.reason) == (2, Reason.WORKER_UNAVAILABLE)


async def test_a_second_idle_connection_that_is_closed_is_a_failure(calling):
    """One attempt more, not one for each idle connection."""

    async def script(got, writer):
        if len(hook.got) > 2:
            writer.close()
            return
        if len(hook.got) == 2:
            both.set()
        await both.wait()
        writer.write(allows(got))
        await writer.drain()

    both = asyncio.Event()
    async with calling(script) as (hook, caller):
        await asyncio.gather(caller.call(), caller.call())
        answer = await caller.call()
    assert answer.reason is Reason.WORKER_UNAVAILABLE
    assert len(hook.got) == 4


async def test_connections_are_kept(calling):
    """Sequential calls share one."""
    async with calling() as (hook, caller):
        for _ in range(20):
            await caller.call()
    assert hook.connections == 1


async def test_idle_connections_are_bounded(calling):
    """After a burst the webhook has as many left as the limit says, and calls go on over these."""
    registry = asyncio.Event()

    async def script(got, writer):
        if len(hook.got) == 20:
            registry.set()
        await registry.wait()
        writer.write(allows(got))
        await writer.drain()

    async with calling(script, webhook_idle_connections=5) as (hook, caller):
        await asyncio.gather(*(caller.call() for _ in range(20)))
        assert hook.connections == 20
        await until(lambda: caller.events.usable == 5)
        for _ in range(10):
            await caller.call()
    assert hook.connections == 20


async def test_idle_connections_are_closed_after_a_while(calling):
    """By the gateway, before another component does."""
    async with calling(webhook_idle_seconds=0.05) as (hook, caller):
        await caller.call()
        await asyncio.wait_for(hook.ended.wait(), WAIT_SECONDS)
        assert isinstance(await caller.call(), Allow)


async def test_connections_are_bounded(calling):
    """A call beyond waits for one."""
    async with calling(webhook_connections=2) as (hook, caller):
        answers = await asyncio.gather(*(caller.call() for _ in range(10)))
    assert all(isinstance(answer, Allow) for answer in answers)
    assert hook.connections <= 2


async def test_held_bytes_are_bounded(calling):
    """Of documents that are sent, and of answers that are read."""
    let_go = asyncio.Event()

    async def script(got, writer):
        await let_go.wait()
        writer.write(http(body=review(got, warnings=["w" * 3000])))
        await writer.drain()

    document = b'{"a":"%b"}' % (b"a" * 600)
    async with calling(script, worker_backlog_bytes=1000) as (_, caller):
        first = asyncio.ensure_future(caller.call(document=document))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        refused = await caller.call(document=document)
        let_go.set()
        answered = await first
    assert refused.reason is answered.reason is Reason.OVERLOADED
    assert "worker_backlog_bytes" in refused.message


async def test_a_deadline_that_is_over_is_no_call(calling):
    """Nothing is sent."""
    async with calling() as (hook, caller):
        answer = await caller.call(seconds=-1)
    assert answer.reason is Reason.WORKER_TIMEOUT
    assert not hook.got


async def test_connection_refused(authority):
    """In the words of kube-apiserver."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    answer = await called({"url": f"https://127.0.0.1:{port}", "ca_bundle": authority.pem})
    assert answer.reason is Reason.WORKER_UNAVAILABLE
    assert answer.message == (
        'failed calling webhook "judge.test.example.com": failed to call webhook: '
        f'Post "https://127.0.0.1:{port}/?timeout=30s": dial tcp 127.0.0.1:{port}: connect: connection refused'
    )


async def test_an_unknown_name(authority):
    """As a Service is outside of its cluster; the hint says what to do."""
    service = ServiceReference(name="judge", namespace="hooks")
    answer = await called({"service": service, "ca_bundle": authority.pem})
    assert answer.reason is Reason.WORKER_UNAVAILABLE
    assert 'Post "https://judge.hooks.svc:443/?timeout=30s": dial tcp: lookup judge.hooks.svc: ' in answer.message
    assert "--resolve" in answer.hint


async def test_a_silent_server(authority):
    """The TLS handshake is bounded by itself."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        target = {"url": f"https://127.0.0.1:{silent.getsockname()[1]}", "ca_bundle": authority.pem}
        async with policy_caller(target, webhook_connect_seconds=0.05) as caller:
            answer = await caller.call()
        late = await called(target, seconds=0.05)
    assert (answer.reason, late.reason) == (Reason.WORKER_UNAVAILABLE, Reason.WORKER_TIMEOUT)
    assert "i/o timeout" in answer.message


async def test_a_call_that_is_broken_off_takes_its_connection_with_it(authority, pair):
    """Also of a webhook that hangs, and never sends close_notify: the gateway does not wait for it."""
    with frozen(server_context(*pair)) as port:
        target = {"url": f"https://127.0.0.1:{port}", "ca_bundle": authority.pem}
        async with policy_caller(target) as caller:
            for seconds in longer_and_longer(1):
                answer = await caller.call(seconds=seconds)
                if "connected" in caller.events.counted:
                    break
            await until(lambda: caller.events.usable == 0)
            assert "disconnected" in caller.events.counted
    assert answer.reason is Reason.WORKER_TIMEOUT


@pytest.mark.parametrize(
    "url", ["https://127.0.0.1:99999/", "https://[::1]:443443/", "https://h:", "https://ä.example"]
)
async def test_a_url_that_cannot_be_called_is_a_failure(authority, url):
    """Kubernetes takes such urls, so they are met here first; the worker is made all the same."""
    answer = await called({"url": url, "ca_bundle": authority.pem})
    assert answer.reason in {Reason.CONFIGURATION, Reason.WORKER_UNAVAILABLE}


async def test_a_plain_text_server_is_a_failure_that_says_so(authority):
    """It speaks no TLS."""

    async def plain(_reader, writer):
        writer.write(http(400))
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(plain, "127.0.0.1", 0)
    async with server:
        port = server.sockets[0].getsockname()[1]
        answer = await called({"url": f"https://127.0.0.1:{port}", "ca_bundle": authority.pem})
    assert answer.reason is Reason.WORKER_UNAVAILABLE
    assert "first record does not look like a TLS handshake" in answer.message
    assert "HTTPS" in answer.hint


async def test_a_server_that_speaks_http_2_only_is_a_failure_that_says_so(calling, pair):
    """By ALPN; the gateway offers HTTP/1.1 only."""
    seen = []
    context = server_context(*pair, alpn=("h2",))

    async with calling(lambda got: seen.append(got) or b"\x00\x00\x00\x04\x00\x00\x00\x00\x00", context=context) as (
        _,
        caller,
    ):
        answer = await caller.call()
    assert isinstance(answer, Failure)
    assert answer.reason in {Reason.WORKER_UNAVAILABLE, Reason.INVALID_RESPONSE}
    assert "HTTP" in answer.hint


async def until_disconnected(caller):
    """Until no connection is left."""
    await until(lambda: caller.events.usable == 0)
