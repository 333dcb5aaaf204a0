"""Workers that do their worst on their streams, through a whole gateway: a named failure of that policy alone.

Each review calls a culprit, another policy of its worker, and another worker's policy; both of those must answer.
"""

import asyncio
import base64
from contextlib import asynccontextmanager

import grpc
import pytest

from gateway.reasons import Reason
from gateway.transports.grpc import connection as module
from gateway.transports.limits import TransportLimits
from gateway.transports.proto.admission.worker.v1 import worker_pb2 as pb
from tests.authorities import Authority
from tests.integration.client import message
from tests.integration.conversations import Streams, answering, response, silence
from tests.integration.running import configuration, policy, source, until
from tests.integration.workers import Hanging, always, answer, deny, garbage, scripted, status
from tests.traffic import recording

VALIDATING = message(recording("pod-create.1v")).replace(b"timeout=10s", b"timeout=30s")
SEEN = answer(allow=pb.Allow(), audit_annotations={"seen": "yes"})
PATIENT = {"timeoutSeconds": 28}
HASTY = {"timeoutSeconds": 0.2}


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    """Streams that broke are opened again soon."""
    monkeypatch.setattr(module, "STREAM_SECONDS", (0.001, 0.002))


@pytest.fixture
def judged(gateway):
    """A gateway with a culprit and two others: ``async with judged(bad, good) as served``."""

    @asynccontextmanager
    async def serve(bad, good, *, wait=30.0, limits=None, other=PATIENT, **fields):
        policies = [
            policy("culprit", worker="bad", failurePolicy="Ignore", **fields),
            policy("other", worker="bad", failurePolicy="Ignore", **other),
            policy("bystander", worker="good", **PATIENT),
        ]
        known = configuration(source(workers={"bad": bad, "good": good}, validating=policies))
        async with gateway(known, wait=wait, transport_limits=limits or TransportLimits()) as served:
            await until(lambda: served.availability("bystander") == "1")
            yield served

    return serve


def good():
    """Another worker, which is well."""
    return scripted("bystander", stream=Streams(answering(SEEN)))


def annotations(answered):
    """What is in the audit log, by policy and key."""
    return {key.replace(".test.example.com", ""): text for key, text in answered.response["auditAnnotations"].items()}


def failed(reason, *others):
    """The audit log of a review in which the culprit failed so, and these were judged."""
    return {"culprit_failed-open": reason} | {f"{other}_seen": "yes" for other in others}


# --------------------------------------------------------------------------------------------- on the stream


async def lies(conversation, item):
    await conversation.answer(item.id, content=answer(allow=pb.Allow(json_patch=b"[]"), audit_annotations={"a": "b"}))
    return True


async def says_nothing(conversation, item):
    await conversation.answer(item.id, content=answer())
    return True


async def answers_others(conversation, item):
    """Past, future and unknown ids, and never its own."""
    await conversation.answer(0, item.id + 1000, 2**64 - 1, content=deny("not yours to say"))
    return True


async def ends(conversation, item):
    return False


async def breaks(conversation, item):
    await conversation.context.abort(grpc.StatusCode.DATA_LOSS, "dead")


async def raises(conversation, item):
    raise RuntimeError("of the worker's own")


async def sends_garbage(conversation, item):
    await conversation.send(b"\xff" * 1000)
    return True


async def sends_too_much(conversation, item):
    await conversation.answer(item.id, content=HUGE)
    return True


async def says_too_much(conversation, item):
    await conversation.answer(item.id, content=TALKATIVE)
    return True


async def rambles(conversation, item):
    await conversation.answer(item.id, content=RAMBLING)
    return True


async def floods(conversation, item):
    while True:
        await conversation.answer(*[2**63] * 1000)


async def floods_at_once(conversation, item):
    await conversation.send(b"\x0a\x00" * 5_000_000)
    return True


HUGE = deny("x" * 100_000_000)
TALKATIVE = answer(allow=pb.Allow(), warnings=[""] * 1_000_000)
RAMBLING = answer(deny=pb.Deny(details=pb.StatusDetails(causes=[pb.StatusCause()] * 1_000_000)))

ATTACKS = {
    "lies": (lies, always(answer(allow=pb.Allow(json_patch=b"[]"))), Reason.INVALID_RESPONSE, PATIENT),
    "says nothing": (says_nothing, always(answer()), Reason.INVALID_RESPONSE, PATIENT),
    "says too much": (says_too_much, always(TALKATIVE), Reason.INVALID_RESPONSE, PATIENT),
    "says too much in what it says": (rambles, always(RAMBLING), Reason.INVALID_RESPONSE, PATIENT),
    "hangs": (silence, None, Reason.WORKER_TIMEOUT, HASTY),
    "answers others' ids": (answers_others, None, Reason.WORKER_TIMEOUT, HASTY),
    "ends the stream, and hangs": (ends, None, Reason.WORKER_TIMEOUT, HASTY),
    "breaks the stream": (breaks, status(grpc.StatusCode.DATA_LOSS, "dead"), Reason.WORKER_FAILURE, PATIENT),
    "raises": (raises, status(grpc.StatusCode.UNKNOWN, "raised"), Reason.WORKER_FAILURE, PATIENT),
    "sends garbage": (sends_garbage, always(b"\xff" * 1000), Reason.INVALID_RESPONSE, PATIENT),
    "sends 100 MB": (sends_too_much, always(HUGE), Reason.WORKER_FAILURE, PATIENT),
    "floods": (floods, always(answer()), Reason.INVALID_RESPONSE, PATIENT),
    "floods at once": (floods_at_once, always(answer()), Reason.INVALID_RESPONSE, PATIENT),
}


def called_alone(review):
    """Review: the culprit answers so, the other one as it should."""

    async def call(request, context):
        if pb.ReviewRequest.FromString(request).call.policy == "culprit":
            return await review(request, context)
        return SEEN

    return call


@pytest.mark.parametrize("name", ATTACKS)
async def test_an_attack_is_a_failure_of_that_policy_alone(judged, name):
    """By stream and then by call, the culprit does what it does; reviews in a row see the others judged."""
    part, review, reason, time = ATTACKS[name]
    streams = Streams(answering(SEEN, culprit=part))
    worker = {"stream": streams, "review": called_alone(review or Hanging())}
    async with scripted("culprit", "other", **worker) as bad, good() as well, judged(bad, well, **time) as served:
        for _ in range(1 if name == "sends 100 MB" else 3):
            answered = await served.send(VALIDATING)
            assert annotations(answered) == failed(reason, "other", "bystander"), answered
    assert "culprit" in streams.policies


async def test_answers_that_come_twice(judged):
    """The first one counts, the others are dropped and counted."""

    async def twice(conversation, item):
        await conversation.send(response((item.id, SEEN), (item.id, deny("too late"))))
        await conversation.answer(item.id, content=deny("too late"))
        return True

    streams = Streams(answering(SEEN, culprit=twice))
    async with scripted("culprit", "other", stream=streams) as bad, good() as well, judged(bad, well) as served:
        for _ in range(3):
            answered = await served.send(VALIDATING)
            assert answered.response["allowed"]
            assert annotations(answered) == {f"{name}_seen": "yes" for name in ("culprit", "other", "bystander")}


async def test_many_reviews_at_once_while_one_policy_breaks_every_stream(judged):
    """The others that share the stream are judged all the same, in each of them."""
    streams = Streams(answering(SEEN, culprit=breaks))
    review = called_alone(status(grpc.StatusCode.DATA_LOSS, "dead"))
    limits = TransportLimits(worker_circuit_calls=10_000)
    async with (
        scripted("culprit", "other", stream=streams, review=review) as bad,
        good() as well,
        judged(bad, well, limits=limits, **PATIENT) as served,
    ):
        clients = [await served.client() for _ in range(8)]
        for _ in range(4):
            for answered in await asyncio.gather(*(client.send(VALIDATING) for client in clients)):
                assert annotations(answered) == failed(Reason.WORKER_FAILURE, "other", "bystander"), answered


async def test_few_reviews_wait_for_a_culprit_that_hangs(judged):
    """Its circuit opens: as many calls as worker_circuit_in_flight wait for it, others fail at once, and its worker's
    other policy is called as before.
    """
    streams = Streams(answering(SEEN, culprit=silence))
    limits = TransportLimits(worker_circuit_calls=2, worker_circuit_in_flight=1)
    async with (
        scripted("culprit", "other", stream=streams) as bad,
        good() as well,
        judged(bad, well, limits=limits, timeoutSeconds=0.5) as served,
    ):
        for _ in range(2):
            answered = await served.send(VALIDATING)
            assert annotations(answered) == failed(Reason.WORKER_TIMEOUT, "other", "bystander"), answered
        clients = [await served.client() for _ in range(2)]
        found = [annotations(each) for each in await asyncio.gather(*(client.send(VALIDATING) for client in clients))]
        for reason in (Reason.WORKER_TIMEOUT, Reason.WORKER_UNAVAILABLE):
            assert failed(reason, "other", "bystander") in found
        assert streams.policies.count("culprit") == 3
        assert streams.policies.count("other") == 4


# ------------------------------------------------------------------------------------------ the whole worker


async def test_a_worker_that_dies_in_mid_stream(judged):
    """Its own policies fail as WORKER_UNAVAILABLE; another worker's is judged."""
    streams = Streams(answering(SEEN, culprit=silence, other=silence))
    async with good() as well:
        dying = scripted("culprit", "other", stream=streams)
        bad = await dying.__aenter__()
        async with judged(bad, well, **PATIENT) as served:
            client = await served.client()
            client.sendall(VALIDATING)
            await until(lambda: sorted(streams.policies) == ["culprit", "other"])
            await dying.__aexit__(None, None, None)
            said = annotations(await asyncio.wait_for(client.answer(), 30))
            assert said == failed(Reason.WORKER_UNAVAILABLE, "bystander") | {
                "other_failed-open": Reason.WORKER_UNAVAILABLE
            }


async def test_a_worker_that_does_not_read(judged):
    """What it is sent waits up to a limit; the answers of others do not wait."""

    async def deaf(context):
        await asyncio.get_running_loop().create_future()

    limits = TransportLimits(worker_in_flight=1)  # of one review's two
    async with (
        scripted("culprit", "other", stream=deaf, review=Hanging()) as bad,
        good() as well,
        judged(bad, well, limits=limits, other=HASTY, **HASTY) as served,
    ):
        for _ in range(4):
            said = failed(Reason.WORKER_TIMEOUT, "bystander") | {"other_failed-open": Reason.OVERLOADED}
            assert annotations(await served.send(VALIDATING)) == said


HELLO = b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n"


@pytest.mark.parametrize("content", [HELLO, b"\x00" * 100, b""], ids=["HTTP/1", "zeros", "nothing"])
async def test_a_worker_that_speaks_something_else(judged, content):
    """It is never described: its policies fail by name, and another worker's is judged."""
    limits = TransportLimits(worker_connect_seconds=0.1)
    async with garbage(content) as (bad, met), good() as well, judged(bad, well, wait=0.0, limits=limits) as served:
        await asyncio.wait_for(met.wait(), 30)
        answered = await served.send(VALIDATING)
        said = failed(Reason.CONFIGURATION, "bystander") | {"other_failed-open": Reason.CONFIGURATION}
        assert annotations(answered) == said


async def test_a_worker_with_a_wrong_certificate(judged):
    """Nothing is put to it; the failure names the certificate, and another worker's policy is judged."""
    trusted, unknown = Authority(), Authority()
    pair = unknown.issue("labels")
    credentials = grpc.ssl_server_credentials([(pair.key, pair.certificate)])
    review = Hanging()
    async with scripted("culprit", "other", review=review, credentials=credentials) as target, good() as well:
        tls = {"caBundle": base64.b64encode(trusted.pem).decode(), "serverName": "labels"}
        async with judged({"target": target, "tls": tls}, well, wait=0.0) as served:
            await until(lambda: "certificate" in getattr(served.availability("culprit"), "message", ""))
            answered = await served.send(VALIDATING)
            said = failed(Reason.CONFIGURATION, "bystander") | {"other_failed-open": Reason.CONFIGURATION}
            assert annotations(answered) == said
            assert not review.called.is_set()


async def test_a_worker_with_the_right_certificate(judged):
    """The same, trusted, is called by stream."""
    authority = Authority()
    pair = authority.issue("labels")
    credentials = grpc.ssl_server_credentials([(pair.key, pair.certificate)])
    streams = Streams(answering(SEEN))
    async with scripted("culprit", "other", stream=streams, credentials=credentials) as target, good() as well:
        tls = {"caBundle": base64.b64encode(authority.pem).decode(), "serverName": "labels"}
        async with judged({"target": target, "tls": tls}, well) as served:
            answered = await served.send(VALIDATING)
            assert annotations(answered) == {f"{name}_seen": "yes" for name in ("culprit", "other", "bystander")}
    assert sorted(streams.policies) == ["culprit", "other"]
