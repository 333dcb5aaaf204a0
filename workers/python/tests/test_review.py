"""Review, over a real connection: whatever a policy does, the answer is an outcome."""

import asyncio
import json
import threading

import grpc
import msgspec
import pytest

from admission_worker import Limits, Worker, deny, fail, merge, mutated, patch
from admission_worker.proto.admission.worker.v1 import worker_pb2
from workers.python.tests.client import MUTATING, PATIENCE, VALIDATING, connected, policy_call


class Wanted(msgspec.Struct, forbid_unknown_fields=True):
    """Settings of a policy that answers by them."""

    answer: str


class Odd(BaseException):
    """An exception that is no Exception."""


ANSWERS = {
    "allow": lambda: None,
    "deny": lambda: deny("no", code=422),
    "fail": lambda: fail("cannot tell"),
    "patch": lambda: patch([{"op": "add", "path": "/a", "value": 1}]),
    "merge": lambda: merge({"a": 1}),
    "mutated": lambda: mutated({"a": 1}),
}

ABSURD = {
    "a text": lambda: "yes",
    "a boolean": lambda: True,
    "the class of an answer": lambda: type(deny("no")),
    "a patch that is no list": lambda: patch({"op": "add"}),
    "a patch with an unknown operation": lambda: patch([{"op": "frob", "path": "/a"}]),
    "a warning that is no text": lambda: deny("no", warnings=[1]),
    "one text for a list of warnings": lambda: deny("no", warnings="careful"),
    "an object that is not JSON": lambda: mutated({"a": object()}),
    "no number": lambda: merge({"a": float("nan")}),
    "an unpaired surrogate": lambda: deny("\ud800"),
    "an awaitable": lambda: asyncio.sleep(0),
}

RAISED = {
    "ValueError": ValueError("secret"),
    "SystemExit": SystemExit(3),
    "StopIteration": StopIteration("secret"),
    "Odd": Odd("secret"),
    "CancelledError": asyncio.CancelledError("secret"),
    "RecursionError": RecursionError("secret"),
}


def _respond(settings):
    if settings.answer in RAISED:
        raise RAISED[settings.answer]
    return {**ANSWERS, **ABSURD}[settings.answer]()


@pytest.fixture
def worker():
    made = Worker("test", version="1.2.3")

    @made.validating("validating", settings=Wanted)
    @made.mutating("mutating", settings=Wanted, version="7")
    def inline(request, settings):
        return _respond(settings)

    @made.mutating("async", settings=Wanted)
    async def coroutine(request, settings):
        await asyncio.sleep(0)
        return _respond(settings)

    @made.mutating("blocking", settings=Wanted, blocking=True)
    def blocking(request, settings):
        return _respond(settings)

    return made


def _call(policy, answer, **fields):
    phase = VALIDATING if policy == "validating" else MUTATING
    return policy_call(policy, phase=phase, settings={"answer": answer}, **fields)


@pytest.mark.parametrize("address", ["127.0.0.1:0", "unix"])
async def test_a_verdict_crosses_tcp_and_unix_sockets_alike(worker, address, tmp_path):
    """A policy's answer arrives as its outcome, whatever carries it."""
    where = f"unix:{tmp_path}/w.sock" if address == "unix" else address
    async with connected(worker, address=where) as client:
        outcome = await client.review(_call("validating", "deny"))
    assert outcome == worker_pb2.Outcome(
        deny=worker_pb2.Deny(code=422, message="no", reason="Invalid"), version="1.2.3"
    )


@pytest.mark.parametrize("policy", ["mutating", "async", "blocking"])
@pytest.mark.parametrize("answer", ANSWERS)
async def test_every_style_of_function_gives_every_answer(worker, policy, answer):
    """Plain functions, coroutines and threads answer alike."""
    async with connected(worker) as client:
        outcome = await client.review(_call(policy, answer))
    change = {"patch": "json_patch", "merge": "merge_patch", "mutated": "object"}.get(answer)
    expected = {"deny": "deny", "fail": "failure"}.get(answer, "allow")
    assert outcome.WhichOneof("verdict") == expected
    assert (outcome.allow.WhichOneof("change") if expected == "allow" else None) == change


async def test_an_outcome_names_the_version_that_judged(worker):
    """The policy's own version where it has one, otherwise the worker's."""
    async with connected(worker) as client:
        assert (await client.review(_call("mutating", "allow"))).version == "7"
        assert (await client.review(_call("async", "allow"))).version == "1.2.3"


@pytest.mark.parametrize("policy", ["mutating", "async", "blocking"])
@pytest.mark.parametrize("absurdity", ABSURD)
async def test_an_absurd_answer_is_a_failure(worker, policy, absurdity, caplog):
    """An invalid answer is a failure that names the policy and the error."""
    async with connected(worker) as client:
        outcome = await client.review(_call(policy, absurdity))
    assert outcome.failure.message.startswith(f"policy {policy} raised ")
    assert "InvalidAnswerError: " in outcome.failure.message


@pytest.mark.parametrize("answer", ["patch", "merge", "mutated"])
async def test_a_validating_policy_must_not_change_anything(worker, answer):
    """A change in the validating phase is a failure, as kube-apiserver makes it one."""
    async with connected(worker) as client:
        outcome = await client.review(_call("validating", answer))
    assert "only a mutating policy may change the object" in outcome.failure.message


@pytest.mark.parametrize("policy", ["mutating", "async", "blocking"])
@pytest.mark.parametrize("raised", RAISED)
async def test_a_policy_that_raises_has_failed(worker, policy, raised, caplog):
    """Any exception is a failure with its type; its text stays in the log; the worker goes on."""
    async with connected(worker) as client:
        outcome = await client.review(_call(policy, raised, uid="u-1"))
        assert (await client.review(_call(policy, "allow"))).HasField("allow")
    # Python itself lets no StopIteration out of a coroutine (PEP 479).
    seen = "RuntimeError" if (policy, raised) == ("async", "StopIteration") else raised
    assert outcome.failure.message == f"policy {policy} raised {seen}; see the worker's log"
    assert "Traceback" in caplog.text
    assert "u-1" in caplog.text


@pytest.mark.parametrize(
    ("phase", "named"),
    [(MUTATING, "the mutating phase"), (worker_pb2.PHASE_UNSPECIFIED, "no phase (0)"), (17, "no phase (17)")],
)
async def test_a_policy_in_another_phase_is_unknown(worker, phase, named):
    """A phase that is not the policy's is a failure UNKNOWN_POLICY, and so is none."""
    async with connected(worker) as client:
        outcome = await client.review(policy_call("validating", phase=phase, settings={"answer": "allow"}))
    assert outcome.failure.reason == worker_pb2.FAILURE_REASON_UNKNOWN_POLICY
    assert outcome.failure.message == f"policy validating is for the validating phase and was called in {named}"


async def test_an_unknown_policy_is_a_failure_that_names_the_known_ones(worker):
    """The failure for an unknown policy names those of the worker."""
    async with connected(worker) as client:
        outcome = await client.review(policy_call("validatin"))
    assert outcome.failure.reason == worker_pb2.FAILURE_REASON_UNKNOWN_POLICY
    assert "it holds: async, blocking, mutating, validating" in outcome.failure.message


@pytest.mark.parametrize(
    "settings",
    [b"", b"{", b"[]", b"null", b'"x"', b"{}", b'{"answer": 1}', b'{"answer": "allow", "x": 1}', b"\xff", b"[" * 9999],
)
async def test_settings_that_cannot_be_used_are_a_failure(worker, settings):
    """Settings are converted before anything is judged; what cannot be is INVALID_SETTINGS."""
    async with connected(worker) as client:
        outcome = await client.review(policy_call("validating", settings=settings))
    assert outcome.failure.reason == worker_pb2.FAILURE_REASON_INVALID_SETTINGS
    assert outcome.failure.message.startswith("settings of policy validating: ")


@pytest.mark.parametrize(
    "document", [b"", b"{", b"[]", b"null", b"1", b'{"a": 1} x', b"\xff", b'{"a":' + b"[" * 99999, None]
)
async def test_a_document_that_is_no_json_object_is_a_failure(worker, document):
    """A policy never sees a document that cannot be read."""
    async with connected(worker) as client:
        outcome = await client.review(_call("validating", "allow", document=document))
    assert outcome.failure.message.startswith("policy validating")
    assert outcome.failure.reason == worker_pb2.FAILURE_REASON_UNSPECIFIED


async def test_a_member_of_another_shape_is_a_failure_when_it_is_read():
    """A policy that reads a member of the wrong type fails, and the failure names the member."""
    worker = Worker("test", version="1")

    @worker.validating("reads-the-kind")
    def reads_the_kind(request):
        return deny("no") if request.kind else None

    async with connected(worker) as client:
        outcome = await client.review(policy_call("reads-the-kind", document={"kind": {"kind": 5}}))
        assert (await client.review(policy_call("reads-the-kind", document={"object": 5}))).HasField("allow")
    assert "InvalidDocumentError: the document's kind cannot be read" in outcome.failure.message


async def test_a_document_index_means_nothing_on_review(worker):
    """Review carries its document itself; an index refers to nothing there."""
    async with connected(worker) as client:
        outcome = await client.review(_call("validating", "allow", index=0))
    assert "without a document" in outcome.failure.message


async def test_the_deadline_cancels_the_work():
    """At the gRPC deadline the coroutine is cancelled, and the worker goes on."""
    worker = Worker("test", version="1")
    begun, cancelled, seconds = asyncio.Event(), asyncio.Event(), 0.05

    @worker.validating("never")
    async def never(request):
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.set()

    async with connected(worker) as client:
        while not begun.is_set():  # on a busy machine the time may be over before anything has begun
            with pytest.raises(grpc.aio.AioRpcError) as error:
                await client.review(policy_call("never"), seconds=seconds)
            assert error.value.code() is grpc.StatusCode.DEADLINE_EXCEEDED
            seconds *= 2
        await asyncio.wait_for(cancelled.wait(), PATIENCE)
        assert len((await client.describe()).policies) == 1


async def test_more_calls_than_may_be_in_flight_are_refused():
    """At its limit a worker rejects a call with the next step, and below it accepts the next one."""
    worker = Worker("test", version="1")
    begun, go_on = asyncio.Event(), asyncio.Event()

    @worker.validating("waits")
    async def waits(request):
        begun.set()
        await go_on.wait()

    async with connected(worker, limits=Limits(in_flight=1)) as client:
        first = asyncio.create_task(client.review(policy_call("waits")))
        await begun.wait()
        with pytest.raises(grpc.aio.AioRpcError) as error:
            await client.review(policy_call("waits"))
        go_on.set()
        assert (await first).HasField("allow")
        assert (await client.review(policy_call("waits"))).HasField("allow")
    assert error.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
    assert "limit of 1 calls in flight" in error.value.details()


async def test_a_message_over_the_limit_is_refused_and_the_next_one_served(worker):
    """A huge call ends its call and nothing else."""
    async with connected(worker, limits=Limits(message_bytes=10_000)) as client:
        with pytest.raises(grpc.aio.AioRpcError) as error:
            await client.review(_call("validating", "allow", document={"object": "x" * 10_000}))
        assert error.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
        assert (await client.review(_call("validating", "allow"))).HasField("allow")


async def test_an_answer_over_the_limit_is_a_failure():
    """An answer beyond the size of a message is a failure with the next step, and breaks no connection."""
    worker = Worker("test", version="1")

    @worker.mutating("grows")
    def grows(request):
        return mutated({"data": "x" * 10_000})

    async with connected(worker, limits=Limits(message_bytes=10_000)) as client:
        outcome = await client.review(policy_call("grows", phase=MUTATING))
    assert "answer with a patch" in outcome.failure.message


@pytest.mark.parametrize("method", ["Describe", "ValidateSettings", "Review"])
async def test_bytes_that_are_no_message_are_refused(worker, method):
    """Garbage is INVALID_ARGUMENT, and the worker goes on."""
    async with connected(worker) as client:
        with pytest.raises(grpc.aio.AioRpcError) as error:
            await client.call(method, b"\xff\xff\xff", worker_pb2.ReviewResponse)
        assert (await client.review(_call("validating", "allow"))).HasField("allow")
    assert error.value.code() is grpc.StatusCode.INVALID_ARGUMENT


async def test_blocking_functions_leave_the_loop_free():
    """While one waits in its thread, plain functions answer."""
    worker = Worker("test", version="1")
    go_on = threading.Event()

    @worker.validating("blocks", blocking=True)
    def blocks(request):
        assert go_on.wait(PATIENCE)

    @worker.validating("plain")
    def plain(request):
        return None

    async with connected(worker) as client:
        slow = asyncio.create_task(client.review(policy_call("blocks")))
        assert (await client.review(policy_call("plain"))).HasField("allow")
        go_on.set()
        assert (await slow).HasField("allow")


async def test_settings_are_converted_once_for_equal_bytes():
    """A worker that is called a thousand times with the same settings parses them once."""
    worker, seen = Worker("test", version="1"), []

    @worker.validating("counts", settings=Wanted, validate=seen.append)
    def counts(request, settings):
        return deny(settings.answer)

    async with connected(worker) as client:
        for text in ("a", "a", "b", "a"):
            outcome = await client.review(policy_call("counts", settings=json.dumps({"answer": text}).encode()))
            assert outcome.deny.message == text
    assert [settings.answer for settings in seen] == ["a", "b"]
