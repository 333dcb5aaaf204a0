"""A connection to a real server: what goes by stream and what by call, and what becomes of calls when streams break."""

import asyncio
from contextlib import asynccontextmanager

import grpc
import pytest

from gateway.documents.documents import hashed
from gateway.engine.verdicts import Allow, Deny
from gateway.reasons import Reason
from gateway.transports.grpc import connection as module
from gateway.transports.grpc import failures
from gateway.transports.grpc import health as health_module
from gateway.transports.grpc.retries import MAX_SENT
from gateway.transports.proto.admission.worker.v1 import worker_pb2 as pb
from tests.integration.conversations import Health, Streams, answering, for_ever, response, silence
from tests.integration.process import WAIT_SECONDS
from tests.integration.running import until
from tests.integration.workers import ALLOW, Gate, Hanging, always, answer, deny, description, scripted, status
from tests.transports.reaching import Reply, availability, called, configured, judge, question, working

CULPRIT, VICTIMS = judge("culprit"), [judge(f"victim-{number}", index=number) for number in range(1, 4)]


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    """Pauses too short to wait for."""
    monkeypatch.setattr(module, "STREAM_SECONDS", (0.001, 0.002))
    monkeypatch.setattr(health_module, "RETRY_SECONDS", 0.001)


@asynccontextmanager
async def reached(*policies, limits=None, **worker):
    """A scripted worker with these policies, reached."""
    names = [about.policy for about in policies]
    async with (
        scripted(*names, **worker) as target,
        working(configured(*policies, labels=target), **(limits or {})) as workers,
    ):
        yield workers


def connection(workers):
    (found,) = workers._leased["labels"].connection._endpoints.connections()
    return found


def has_stream(workers):
    return connection(workers)._stream is not None


def changed(policy_call, **fields):
    """The same call, but for these fields."""
    return type(policy_call)(**{name: getattr(policy_call, name) for name in policy_call.__struct_fields__} | fields)


async def send(workers, *policies, content=b"{}"):
    """Put a question about one document to each of them in one turn, and wait for all answers."""
    replies, document = [Reply() for _ in policies], hashed(content)
    for about, reply in zip(policies, replies, strict=True):
        workers.call(changed(question(about), document=document), reply)
    return await asyncio.wait_for(asyncio.gather(*(reply.first() for reply in replies)), WAIT_SECONDS)


# --------------------------------------------------------------------------------------------- stream or call


async def test_calls_go_by_stream():
    """Where the worker has one, nothing goes by call."""
    review, streams = Hanging(), Streams(answering(deny()))
    async with reached(judge(), review=review, stream=streams) as workers:
        assert isinstance(await called(workers, judge()), Deny)
    assert streams.policies == ["judge"]
    assert not review.called.is_set()


async def test_a_large_document_goes_by_call():
    """So that small ones do not wait behind it: one byte more than worker_stream_bytes."""
    review, streams = Gate(), Streams(answering())
    review.open.set()
    async with reached(judge(), review=review, stream=streams, limits={"worker_stream_bytes": 100}) as workers:
        for size in (100, 101):
            await called(workers, judge(), content=bytes(size))
    assert [len(document) for document in streams.last.documents.values()] == [100]
    assert [len(policy_call.document) for policy_call in review.calls] == [101]


async def test_side_effects_go_by_call():
    """No other policy's error can break that call."""
    review, streams = Gate(deny("by call")), Streams(answering())
    review.open.set()
    async with reached(judge(), review=review, stream=streams) as workers:
        reply = Reply()
        workers.call(changed(question(judge()), cancellable=False), reply)
        assert (await asyncio.wait_for(reply.first(), WAIT_SECONDS)).message == "by call"
    assert streams.policies == []


@pytest.mark.parametrize(("clocks", "reason"), [(2e9, Reason.WORKER_TIMEOUT), (0.005, Reason.WORKER_FAILURE)])
async def test_a_call_that_a_worker_cancels_at_its_deadline_is_late(monkeypatch, clocks, reason):
    """A server in Go resets it with CANCEL when its own clock says so; long before the deadline it is a failure."""

    async def review(request, context):
        await context.abort(grpc.StatusCode.CANCELLED, "RST_STREAM")

    monkeypatch.setattr(failures, "CLOCKS_SECONDS", clocks)
    async with reached(judge(), review=review) as workers:
        reply = Reply()
        workers.call(changed(question(judge()), cancellable=False), reply)
        assert (await asyncio.wait_for(reply.first(), WAIT_SECONDS)).reason is reason


async def test_a_worker_without_streams_is_called_by_calls():
    """From the first call on, and nothing is lost: those that were on the stream before it said so are calls too."""
    review = Gate(deny())
    review.open.set()

    async def describe(request, context):
        return description("judge")

    async with reached(judge(), review=review, describe=describe) as workers:
        await send(workers, *[judge()] * 20)
        await until(lambda: not has_stream(workers))
        await send(workers, *[judge()] * 20)
    assert len(review.calls) == 40


async def test_what_was_put_to_a_stream_that_is_unimplemented_is_not_lost():
    """Also those calls that were sent before the worker said so are judged, by call."""
    review = Gate(deny())
    review.open.set()

    async def unimplemented(context):
        await context.read()
        await context.abort(grpc.StatusCode.UNIMPLEMENTED, "not here")

    async with reached(judge(), review=review, stream=unimplemented) as workers:
        assert has_stream(workers)
        assert all(isinstance(each, Deny) for each in await send(workers, *[judge()] * 20))
        assert not has_stream(workers)
        assert len(await send(workers, *[judge()] * 5)) == 5
    assert len(review.calls) == 25


# ---------------------------------------------------------------------------------------------- broken streams


async def ends(conversation, item):
    return False


async def with_status(conversation, item):
    await conversation.context.abort(grpc.StatusCode.INTERNAL, "the culprit's own")


async def with_garbage(conversation, item):
    await conversation.send(b"\xff\xff\xff")
    return True


async def with_too_much(conversation, item):
    await conversation.send(response((item.id, deny("x" * 200_000))))
    return True


async def with_a_flood(conversation, item):
    while True:
        await conversation.answer(*[2**63] * 10)


CULPRITS = {
    "ends the stream": (ends, always(deny("by call")), None),
    "a status": (with_status, status(grpc.StatusCode.INTERNAL, "the culprit's own"), Reason.WORKER_FAILURE),
    "garbage": (with_garbage, always(b"\xff\xff\xff"), Reason.INVALID_RESPONSE),
    "too large a message": (with_too_much, always(deny("x" * 200_000)), Reason.WORKER_FAILURE),
    "a flood": (with_a_flood, always(answer()), Reason.INVALID_RESPONSE),
}


def culpable(review):
    """A Review in which the culprit does this, and all others deny."""

    async def call(request, context):
        if pb.ReviewRequest.FromString(request).call.policy == "culprit":
            return await review(request, context)
        return deny("a verdict")

    return call


@pytest.mark.parametrize("name", CULPRITS)
async def test_who_breaks_the_stream_fails_alone(name):
    """Several policies' calls are open when one policy breaks the stream: that one has its failure, by name; the others
    are judged, by call.
    """
    part, review, reason = CULPRITS[name]
    streams = Streams(answering(culprit=part, victim_1=silence, victim_2=silence, victim_3=silence))
    limits = {"answer_message_bytes": 100_000, "worker_unsolicited": 20}
    policies = (*VICTIMS, CULPRIT)
    async with reached(*policies, stream=streams, review=culpable(review), limits=limits) as workers:
        *victims, culprit = await send(workers, *policies)
    assert [victim.message for victim in victims] == ["a verdict"] * 3
    if reason is None:
        assert culprit.message == "by call"
    else:
        assert culprit.reason is reason, culprit
    assert len(streams.conversations[0].items) == 4


@pytest.mark.parametrize("name", CULPRITS)
async def test_with_several_replicas_it_breaks_one_stream_only(name):
    """It is not sent on the next endpoint's stream: the calls moved there with it would fail twice."""
    part, review, reason = CULPRITS[name]
    scripts = [Streams(answering(culprit=part, victim_1=silence, victim_2=silence, victim_3=silence)) for _ in range(2)]
    policies = (*VICTIMS, CULPRIT)
    names = [about.policy for about in policies]
    limits = {"answer_message_bytes": 100_000, "worker_unsolicited": 20}
    async with (
        scripted(*names, stream=scripts[0], review=culpable(review)) as one,
        scripted(*names, stream=scripts[1], review=culpable(review)) as two,
        working(configured(*policies, labels=f"ipv4:{one},{two}"), **limits) as workers,
    ):
        await until(lambda: len(workers._leased["labels"].connection._ring) == 2)
        *victims, culprit = await send(workers, *policies)
    assert [victim.message for victim in victims] == ["a verdict"] * 3
    assert culprit.message == "by call" if reason is None else culprit.reason is reason
    assert [name for streams in scripts for name in streams.policies].count("culprit") == 1


async def test_a_broken_stream_is_opened_again():
    """After a pause; meanwhile calls are calls."""
    streams = Streams(answering(deny("by stream"), culprit=ends))
    async with reached(CULPRIT, judge(), stream=streams, review=always(deny("by call"))) as workers:
        assert (await called(workers, CULPRIT)).message == "by call"
        await until(lambda: len(streams.conversations) == 2)
        assert (await called(workers, judge())).message == "by stream"


async def test_streams_that_break_again_and_again_are_given_up_for_a_while(log):
    """After some that brought no answer at all, everything goes by calls for worker_stream_pause_seconds."""

    async def breaks(conversation):
        await conversation.context.abort(grpc.StatusCode.INTERNAL, "no")

    streams = Streams(breaks)
    async with reached(judge(), stream=streams, review=always(deny("by call"))) as workers:
        await until(lambda: len(_broken(log)) == module.MAX_STREAM_BREAKS + 1)
        assert not has_stream(workers)
        assert (await called(workers, judge())).message == "by call"
        assert connection(workers)._reopening is not None
    assert len(streams.conversations) == module.MAX_STREAM_BREAKS + 1
    assert [entry["next"].split(",")[0] for entry in _broken(log)][-1] == "reopened in 60 s"


def _broken(log):
    return [entry for entry in log if entry["event"] == "a stream to a worker broke"]


async def test_it_is_tried_again_after_that_while():
    """However often it has broken before, and it is used again when it holds."""
    calm, holds = asyncio.Event(), asyncio.Event()

    async def breaks(conversation):
        if not calm.is_set():
            await conversation.context.abort(grpc.StatusCode.INTERNAL, "no")
        holds.set()
        await answering(deny("by stream"))(conversation)

    streams = Streams(breaks)
    limits = {"worker_stream_pause_seconds": 0.001}
    async with reached(judge(), stream=streams, review=always(deny("by call")), limits=limits) as workers:
        connection(workers)._breaks = 100_000
        await until(lambda: len(streams.conversations) > module.MAX_STREAM_BREAKS + 3)
        calm.set()
        await asyncio.wait_for(holds.wait(), 30)
        assert (await called(workers, judge())).message == "by stream"


async def test_a_flood_is_given_up_at_once(log):
    """An endpoint that abuses a stream gets unary calls for a while."""
    streams = Streams(answering(culprit=with_a_flood))
    async with reached(CULPRIT, stream=streams, limits={"worker_unsolicited": 10}) as workers:
        assert isinstance(await called(workers, CULPRIT), Allow)
        assert not has_stream(workers)
    (entry,) = _broken(log)
    assert entry["next"].startswith("reopened in 60 s")


async def test_a_call_for_which_there_was_no_connection_is_sent_again():
    """gRPC says so in the status; the call was not sent, so this counts as no attempt."""
    calls = []

    async def unconnected(request, context):
        calls.append(request)
        if len(calls) <= MAX_SENT:
            await context.abort(grpc.StatusCode.UNAVAILABLE, f"{module.NOT_CONNECTED}; last error: refused")
        return ALLOW

    async with reached(judge(), review=unconnected) as workers:
        assert isinstance(await called(workers, judge()), Allow)
    assert len(calls) == MAX_SENT + 1


# -------------------------------------------------------------------------------------------------- bounds


async def test_a_server_that_closes_each_connection_causes_no_storm(monkeypatch):
    """After the second one there is a pause, in which calls fail at once with the reason."""
    monkeypatch.setattr(module, "RECONNECT_SECONDS", (1000.0, 1000.0))
    settings_frame = bytes([0, 0, 0, 4, 0, 0, 0, 0, 0])
    connections = []

    async def close(reader, writer):
        connections.append(writer)
        writer.write(settings_frame)
        # Closed while there is something to read, the kernel would send a reset, which may overtake the frame.
        writer.write_eof()
        while await reader.read(1 << 16):
            pass
        writer.close()

    server = await asyncio.start_server(close, "127.0.0.1", 0)
    async with server, working(configured(judge(), labels=address(server)), wait=0.0) as workers:
        channel = workers._leased["labels"].connection
        await until(lambda: "closes connections as soon as they are open" in channel.why)
        # A call that finds its connection lost opens one more, so there may be two of each.
        assert len(connections) <= 6
        before = len(connections)
        for _ in range(20):
            refused = await called(workers, judge())
            assert refused.reason is Reason.WORKER_UNAVAILABLE
            assert "closes connections" in refused.message
        assert len(connections) <= before + 1


def address(server):
    return f"127.0.0.1:{server.sockets[0].getsockname()[1]}"


async def test_more_calls_than_may_be_open_wait():
    """One more than worker_in_flight waits, and fails with OVERLOADED; when one has ended, the next is sent."""
    streams, limits = Streams(answering(judge=silence)), {"worker_in_flight": 2, "worker_wait_seconds": 0.1}
    async with reached(judge(), stream=streams, limits=limits) as workers:
        cancels = [workers.call(question(judge()), Reply()) for _ in range(2)]
        refused = await called(workers, judge())
        assert refused.reason is Reason.OVERLOADED
        assert "has 2 open calls, the limit worker_in_flight" in refused.message
        reply = Reply()
        workers.call(question(judge()), reply)
        cancels[0]()
        await until(lambda: len(streams.last.items) == 3)
        assert reply.answers == []


@pytest.mark.parametrize("by", ["stream", "call"])
async def test_a_worker_that_does_not_read_is_not_written_to_for_ever(by):
    """worker_backlog_bytes bounds what waits for it, by stream and by call; further calls fail with OVERLOADED."""
    size = 200_000

    async def deaf(context):
        await for_ever()

    limits = {"worker_backlog_bytes": 10 * size, "worker_stream_bytes": size if by == "stream" else 1}
    async with reached(judge(), stream=deaf, review=Hanging(), limits=limits) as workers:
        replies = []

        def refused():
            replies.append(Reply())
            workers.call(question(judge(), content=bytes(size)), replies[-1])
            return any(reply.answers for reply in replies)

        await until(refused)
        (answer_,) = [reply.answers[0] for reply in replies if reply.answers][:1]
        assert answer_.reason is Reason.OVERLOADED
        assert "worker_backlog_bytes" in answer_.message


async def test_the_backlog_is_empty_again():
    """Whatever became of the calls: answered, cancelled, failed, by stream and by call."""
    streams = Streams(answering(judge=ends))
    limits = {"worker_stream_bytes": 100}
    async with reached(judge(), stream=streams, limits=limits) as workers:
        for content in (b"{}", bytes(1000)):
            await send(workers, *[judge()] * 5, content=content)
            workers.call(question(judge(), content=content), Reply())()
        backlog = workers._leased["labels"].connection._backlog
        await until(lambda: backlog.bytes == 0)


# -------------------------------------------------------------------------------------------------- health


async def test_who_is_not_serving_is_not_called():
    """What is open is answered, its stream is half-closed, and calls fail by name until it serves again."""
    health, gate = Health(), asyncio.Event()

    async def slowly(conversation, item):
        await gate.wait()
        await conversation.answer(item.id, content=deny("still"))
        return True

    streams = Streams(answering(judge=slowly))
    async with reached(judge(), stream=streams, health=health) as workers:
        reply = Reply()
        workers.call(question(judge()), reply)
        await until(lambda: streams.conversations and streams.last.items)
        health.become(Health.NOT_SERVING)
        await until(lambda: not connection(workers).is_serving)
        assert (await called(workers, judge())).reason is Reason.WORKER_UNAVAILABLE
        assert availability(workers) == "1"
        gate.set()
        assert (await asyncio.wait_for(reply.first(), WAIT_SECONDS)).message == "still"
        await until(lambda: streams.last.has_half_closed)
        health.become(Health.SERVING)
        await until(lambda: connection(workers).can_be_called)
        assert (await called(workers, judge())).message == "still"


async def test_a_worker_that_has_never_served_is_waited_for():
    """It is described, and not called until it says SERVING."""
    health = Health(Health.NOT_SERVING)
    async with reached(judge(), health=health, review=always(deny())) as workers:
        await until(lambda: not connection(workers).is_serving)
        assert "NOT_SERVING" in (await called(workers, judge())).message
        health.become(Health.SERVING)
        await until(lambda: connection(workers).can_be_called)
        assert isinstance(await called(workers, judge()), Deny)


@pytest.mark.parametrize("says", [Health.SERVING, 3, 0, 77])
async def test_all_else_is_serving(says):
    """SERVICE_UNKNOWN, UNKNOWN, and what a later contract may say."""
    health = Health(says)
    async with reached(judge(), health=health, review=always(deny())) as workers:
        await until(lambda: health.watchers)
        assert isinstance(await called(workers, judge()), Deny)


async def test_a_watch_that_ends_or_is_garbage_is_begun_again():
    """And says nothing until then."""
    met = []

    async def watch(context):
        await context.read()
        met.append(1)
        if len(met) % 2:
            await context.write(b"\xff\xff")

    async with reached(judge(), health=watch, review=always(deny())) as workers:
        await until(lambda: len(met) > 4)
        assert isinstance(await called(workers, judge()), Deny)


async def test_a_document_is_shared_on_the_wire():
    """Two policies that are shown the same are sent it once."""
    streams = Streams(answering())
    policies = (judge(), judge("other", index=1))
    async with reached(*policies, stream=streams) as workers:
        await send(workers, *policies, content=b'{"x":1}')
    (batch,) = streams.last.batches
    assert list(batch.documents) == [b'{"x":1}']
