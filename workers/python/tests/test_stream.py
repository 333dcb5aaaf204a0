"""ReviewStream, over a real connection: each open id gets exactly one outcome, as soon as it is known."""

import time

import grpc
import pytest

from admission_worker import Limits, Worker, deny, stream
from workers.python.tests.client import batch, connected, pass_time, policy_call
from workers.python.tests.gates import Gates, messages, plain, waits


@pytest.fixture
async def gates():
    return Gates()


@pytest.fixture
def endless_slice(monkeypatch):
    """A slice that does not end on a loaded machine."""
    monkeypatch.setattr(stream, "SLICE", 3600.0)


async def test_outcomes_come_back_by_id(gates):
    """Each outcome has the id of its call."""
    async with connected(gates.worker) as client:
        calls = client.stream()
        await calls.send(batch(plain("a"), plain("b"), first=2**64 - 2))
        assert messages(await calls.rest()) == {2**64 - 2: "a", 2**64 - 1: "b"}
        assert await calls.status() is grpc.StatusCode.OK


async def test_an_outcome_waits_for_no_other_one(gates):
    """An outcome is sent when it is known, before those of earlier calls."""
    async with connected(gates.worker) as client:
        calls = client.stream()
        await calls.send(batch(waits("slow"), waits("slower"), plain("fast")))
        assert messages(await calls.receive()) == {3: "fast"}
        gates.open("slower")
        assert messages(await calls.receive()) == {2: "slower"}
        gates.open("slow")
        assert messages(await calls.receive()) == {1: "slow"}


@pytest.mark.usefixtures("endless_slice")
async def test_answers_of_one_turn_travel_in_one_message(gates):
    """A batch of plain functions is answered by one message."""
    async with connected(gates.worker) as client:
        calls = client.stream()
        await calls.send(batch(plain("a"), plain("b"), plain("c")))
        assert messages(await calls.receive()) == {1: "a", 2: "b", 3: "c"}


async def test_plain_functions_do_not_hold_up_each_others_answers(gates, monkeypatch):
    """After a slice of time for plain functions, known outcomes are written before the next one runs."""
    monkeypatch.setattr(stream, "SLICE", 0.0)
    async with connected(gates.worker) as client:
        calls = client.stream()
        count = 500
        await calls.send(batch(*(plain(str(number)) for number in range(count))))
        assert len(await calls.receive()) < count
        assert len(await calls.rest()) > 0


@pytest.mark.usefixtures("endless_slice")
async def test_batches_respect_the_size_bound(gates):
    """Outcomes that do not fit one batch are sent in several; one larger than a batch is sent alone."""
    async with connected(gates.worker, limits=Limits(batch_bytes=400)) as client:
        calls = client.stream()
        names = ["x" * 100, "y" * 100, "z" * 1000, "a"]
        await calls.send(batch(*map(plain, names)))
        assert [list(await calls.receive()) for _ in range(3)] == [[1, 2], [3], [4]]


async def test_documents_are_shared_by_index(gates):
    """Calls of one message refer to its documents; the same one may serve several."""
    async with connected(gates.worker) as client:
        calls = client.stream()
        policy_calls = [
            policy_call("plain", index=1),
            policy_call("plain", index=0),
            policy_call("plain", index=1),
            plain("own"),
        ]
        await calls.send(batch(*policy_calls, documents=[b'{"name":"zero"}', b'{"name":"one"}']))
        assert messages(await calls.rest()) == {1: "one", 2: "zero", 3: "one", 4: "own"}


async def test_what_a_policy_does_to_its_document_no_other_sees():
    """Each policy reads a shared document separately."""
    worker = Worker("test", version="1")

    @worker.validating("spoils")
    def spoils(request):
        before = dict(request.object)
        request.object.clear()
        return deny(str(before))

    async with connected(worker) as client:
        calls = client.stream()
        document = b'{"object":{"a":1}}'
        await calls.send(batch(policy_call("spoils", index=0), policy_call("spoils", index=0), documents=[document]))
        assert set(messages(await calls.rest()).values()) == {"{'a': 1}"}


@pytest.mark.parametrize("count", [0, 2])
async def test_a_document_index_out_of_range_is_a_failure(gates, count):
    """An index refers to its own message only, from 0."""
    async with connected(gates.worker) as client:
        calls = client.stream()
        await calls.send(batch(plain("a"), documents=[b"{}"] * 5))
        await calls.receive()
        await calls.send(batch(policy_call("plain", index=2), documents=[b"{}"] * count, first=2))
        assert messages(await calls.rest()) == {2: f"document_index is 2, and its message has {count} documents"}


async def test_a_call_without_a_document_is_a_failure(gates):
    """A call without document and index fails."""
    async with connected(gates.worker) as client:
        calls = client.stream()
        await calls.send(batch(policy_call("plain", document=None)))
        assert messages(await calls.rest()) == {1: "policy plain was called without a document"}


async def test_a_cancel_ends_the_work_and_gets_no_outcome(gates):
    """A cancelled id gets no outcome, the others do, and an unknown id is ignored."""
    async with connected(gates.worker) as client:
        calls = client.stream()
        await calls.send(batch(waits("a"), waits("b")))
        await gates.until(["a", "b"], gates.begun)
        await calls.send(batch(cancel=[1, 99]))
        await gates.until(["a"], gates.cancelled)
        gates.open("b")
        assert messages(await calls.rest()) == {2: "b"}


async def test_a_cancel_before_its_turn_keeps_the_work_from_beginning(gates):
    """A call that is cancelled in its own message is never judged."""
    async with connected(gates.worker) as client:
        calls = client.stream()
        await calls.send(batch(waits("a"), plain("b"), cancel=[1]))
        assert messages(await calls.rest()) == {2: "b"}
    assert gates.begun == []


async def test_a_call_over_its_timeout_fails_and_is_cancelled(gates):
    """A call fails when its timeout, counted from the message's arrival, has passed, and its work stops."""
    async with connected(gates.worker) as client:
        calls = client.stream()
        await calls.send(batch(waits("a", timeout=3600), waits("b"), plain("c", timeout=7200)))
        assert messages(await calls.receive()) == {3: "c"}
        await gates.until(["a", "b"], gates.begun)
        pass_time(3600)
        assert messages(await calls.receive()) == {1: "policy waits: no answer within the call's timeout of 3600 s"}
        await gates.until(["a"], gates.cancelled)
        gates.open("b")
        assert messages(await calls.rest()) == {2: "b"}


@pytest.mark.parametrize("seconds", [0.0, -1.0])
async def test_a_call_whose_time_is_over_is_not_begun(gates, seconds):
    """A timeout of zero fails at once, for plain functions too."""
    async with connected(gates.worker) as client:
        calls = client.stream()
        await calls.send(batch(plain("a", timeout=seconds), waits("b", timeout=seconds)))
        outcomes = await calls.rest()
    assert all("no answer within the call's timeout" in text for text in messages(outcomes).values())
    assert gates.begun == []


async def test_a_plain_function_that_took_too_long_has_failed():
    """An answer after the timeout is a failure, even of a plain function."""
    worker = Worker("test", version="1")

    @worker.validating("late")
    def late(request):
        end = time.monotonic() + 0.02
        while time.monotonic() < end:
            pass

    async with connected(worker) as client:
        calls = client.stream()
        await calls.send(batch(policy_call("late", timeout=0.01)))
        assert "no answer within" in messages(await calls.rest())[1]


async def test_an_open_id_that_comes_again_is_a_failure_for_both(gates):
    """Two calls with one open id get one failure, because their verdicts could be confused."""
    async with connected(gates.worker) as client:
        calls = client.stream()
        await calls.send(batch(waits("a")))
        await gates.until(["a"], gates.begun)
        await calls.send(batch(plain("b"), plain("c")))
        assert messages(await calls.rest()) == {
            1: "the stream has an open call with id 1 already: ids must be unique",
            2: "c",
        }
    assert gates.cancelled == ["a"]


async def test_an_id_may_be_used_again_once_it_is_answered(gates):
    """A closed id can be used again."""
    async with connected(gates.worker) as client:
        calls = client.stream()
        for name in ("a", "b"):
            await calls.send(batch(plain(name)))
            assert messages(await calls.receive()) == {1: name}


async def test_a_timeout_of_centuries_is_valid(gates):
    """A timeout may be any number that the contract's message can hold."""
    async with connected(gates.worker) as client:
        calls = client.stream()
        call = waits("a")
        call.timeout.seconds = 2**62
        await calls.send(batch(call))
        await gates.until(["a"], gates.begun)
        gates.open("a")
        assert messages(await calls.rest()) == {1: "a"}


async def test_an_item_of_a_newer_contract_is_ignored(gates):
    """An item that is neither a call nor a cancel is ignored."""
    async with connected(gates.worker) as client:
        calls = client.stream()
        message = batch(plain("a"))
        message.items.add(id=1)
        message.items.add(id=7)
        await calls.send(message)
        assert messages(await calls.rest()) == {1: "a"}
