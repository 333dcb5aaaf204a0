"""Reviews with many values take turns, and others have the loop in between."""

import asyncio
import gc
from contextlib import AsyncExitStack

import pytest

from gateway.policies.model import Phase
from gateway.reasons import Reason
from gateway.review.request import BYTES_OF_VALUE, LIGHT_VALUES, UnreadError
from gateway.scopes.inputs import Inputs
from gateway.scopes.pointer_set import PointerSet
from gateway.serving import heavy_reviews
from gateway.serving.heavy_reviews import HeavyReviews, _in_bursts
from gateway.serving.in_flight_shares import NO_FLOW, Flow
from gateway.serving.limits import Limits
from gateway.serving.refusals import Refusal, Refused
from gateway.telemetry.table import HEAVY_REVIEWS, LIMIT_HITS
from tests.serving.conftest import WAIT_SECONDS
from tests.world import plan, policy, request

VALUES = 24_000
"""More than a light review has."""
PARTS = Inputs(places=PointerSet([("object", "spec", "*", "a")]))


class Counted:
    """Counts events by metric and label."""

    def __init__(self):
        self.events = []

    def count(self, metric, *labels, amount=1):
        self.events.append((metric, *labels))


@pytest.fixture
def events():
    return Counted()


@pytest.fixture
def always(monkeypatch):
    """A break after each slice, however quick the machine is."""
    monkeypatch.setattr(heavy_reviews, "_BURST_SECONDS", 1e-9)


def heavy(values=VALUES):
    """A request that is parsed to about so many values."""
    return request({"metadata": {"name": "p"}, "spec": [{"a": 1}] * (values // 2)})


def judges(*, parts=3):
    """A plan of validating policies, each with inputs of its own, all of which need the object's values."""
    inputs = [Inputs(places=PointerSet([("object", "spec", "*", name)])) for name in "abcdef"[:parts]]
    each = [policy(f"p{index}", phase=Phase.VALIDATING, index=index, inputs=of) for index, of in enumerate(inputs)]
    return plan(*each)


class Bystander:
    """Another task of the loop; ``turns`` is how often it ran."""

    def __init__(self):
        self.turns = 0
        self._task = asyncio.create_task(self._run())

    async def _run(self):
        while True:
            await asyncio.sleep(0)
            self.turns += 1

    def stop(self):
        self._task.cancel()


async def test_a_body_of_many_values_is_decoded_in_turns_with_the_loop(always, events):
    """Other tasks run between the slices of a body."""
    reviews = HeavyReviews(Limits(values_in_flight=VALUES), events)
    body = b'{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","request":{"uid":"u","operation":"CREATE",'
    body += b'"kind":{"version":"v1","kind":"Pod"},"resource":{"version":"v1","resource":"pods"},"object":{"spec":['
    body += b",".join([b"[]"] * LIGHT_VALUES) + b"]}}}"
    bystander = Bystander()
    decoded = await reviews.decode(body, NO_FLOW, asyncio.get_running_loop().time() + WAIT_SECONDS)
    bystander.stop()
    assert decoded.uid == "u"
    assert decoded.values > LIGHT_VALUES
    assert bystander.turns >= len(body) // 65_536


async def test_the_documents_of_a_heavy_review_are_made_one_by_one(always, events):
    """Before the engine starts: each in a slice of its own, and the engine makes none again."""
    reviews, on, judging = HeavyReviews(Limits(values_in_flight=VALUES), events), heavy(), judges()
    bystander = Bystander()
    async with reviews.prepared(on, judging, NO_FLOW, asyncio.get_running_loop().time() + WAIT_SECONDS) as documents:
        bystander.stop()
        assert bystander.turns >= len(judging.members)
        made = [documents.of(member.inputs, None, changed=False) for member in judging.members]
        assert [documents.drafts[member.inputs.key].document for member in judging.members] == made
    assert on.is_parsed
    assert events.events == [(HEAVY_REVIEWS,)]


async def test_values_are_charged_before_they_are_parsed(always, events):
    """A review that does not fit beside another one waits, unparsed, until that one has ended."""
    reviews, first, second = HeavyReviews(Limits(values_in_flight=VALUES), events), heavy(), heavy()
    ends = asyncio.get_running_loop().time() + WAIT_SECONDS
    waiting = asyncio.Event()

    async def later():
        waiting.set()
        async with reviews.prepared(second, judges(), NO_FLOW, ends):
            return second.is_parsed

    async with reviews.prepared(first, judges(), NO_FLOW, ends):
        task = asyncio.create_task(later())
        await waiting.wait()
        for _ in range(50):
            await asyncio.sleep(0)
        assert first.is_parsed
        assert not second.is_parsed
    assert await task


async def test_without_a_turn_in_time_the_review_is_decided_unread(events):
    """OVERLOADED for each policy that needs its values; a document of whole members is made."""
    reviews, first, second = HeavyReviews(Limits(values_in_flight=VALUES), events), heavy(), heavy()
    now = asyncio.get_running_loop().time()
    async with (
        reviews.prepared(first, judges(), NO_FLOW, now + WAIT_SECONDS),
        reviews.prepared(second, judges(), NO_FLOW, now) as documents,
    ):
        with pytest.raises(UnreadError) as found:
            documents.of(PARTS, None, changed=False)
        assert found.value.reason is Reason.OVERLOADED
        assert documents.of(Inputs.EVERYTHING, None, changed=False).content
    assert not second.is_parsed
    assert (LIMIT_HITS, "values_in_flight") in events.events


async def test_without_a_turn_to_decode_it_is_refused(events):
    """The client is answered in time, and nothing of the body is read."""
    with pytest.raises(Refused) as refused:
        await HeavyReviews(Limits(), events).decode(b"[" * 10_000_000, NO_FLOW, 0.0)
    assert refused.value.refusal is Refusal.MEMORY
    assert refused.value.text.startswith("OVERLOADED: ")


async def test_a_review_larger_than_all_together_may_be_read_alone(events):
    """No legal review waits for ever."""
    reviews, on = HeavyReviews(Limits(values_in_flight=10), events), heavy()
    async with reviews.prepared(on, judges(), NO_FLOW, asyncio.get_running_loop().time() + WAIT_SECONDS):
        assert on.is_parsed


async def test_the_values_of_a_cancelled_review_are_free_again(always, events):
    """A client that hangs up leaves nothing charged."""
    reviews = HeavyReviews(Limits(values_in_flight=VALUES), events)
    ends = asyncio.get_running_loop().time() + WAIT_SECONDS
    begun = asyncio.Event()

    async def cancelled():
        async with reviews.prepared(heavy(), judges(), NO_FLOW, ends):
            begun.set()
            await asyncio.get_running_loop().create_future()

    task = asyncio.create_task(cancelled())
    await begun.wait()
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    async with reviews.prepared(again := heavy(), judges(), NO_FLOW, ends):
        assert again.is_parsed


async def test_light_reviews_are_charged_as_well(events):
    """Many of them take as much memory as a few heavy ones: what does not fit is unread, until others end."""
    reviews, first, second, last = HeavyReviews(Limits(values_in_flight=5_000), events), *map(heavy, [4_000] * 3)
    loop = asyncio.get_running_loop()
    async with (
        reviews.prepared(first, judges(), NO_FLOW, loop.time() + WAIT_SECONDS),
        reviews.prepared(second, judges(), NO_FLOW, loop.time()),
    ):
        assert first.unread is None
        assert second.unread.reason is Reason.OVERLOADED
    assert events.events == [(LIMIT_HITS, "values_in_flight")]
    async with reviews.prepared(last, judges(), NO_FLOW, loop.time() + WAIT_SECONDS):
        assert last.unread is None


async def test_a_large_body_of_few_values_waits_for_no_turn(events):
    """Who has no part in the work does not wait for it: one text of a megabyte is decoded beside a heavy review."""
    reviews = HeavyReviews(Limits(), events)
    text = b'{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","request":{"uid":"u","operation":"CREATE",'
    text += b'"kind":{"version":"v1","kind":"Pod"},"resource":{"version":"v1","resource":"pods"},"object":{"a":"%s"}}}'
    async with reviews._turn.taken(NO_FLOW, 1, cost=1):
        decoded = await reviews.decode(text % (b"x" * 3_000_000), NO_FLOW, 0.0)
    assert decoded.uid == "u"


async def test_a_review_that_waits_for_room_holds_no_turn(always, events):
    """A heavy review that does not fit yet does not delay the decoding of another."""
    reviews, first, second = HeavyReviews(Limits(values_in_flight=VALUES), events), heavy(), heavy(4 * VALUES)
    ends = asyncio.get_running_loop().time() + WAIT_SECONDS
    async with reviews.prepared(first, judges(), NO_FLOW, ends):
        task = asyncio.create_task(_prepare(reviews, second, ends))
        for _ in range(50):
            await asyncio.sleep(0)
        assert not second.is_parsed
        assert reviews._turn.is_free
    await task
    assert second.is_parsed


async def _prepare(reviews, on, ends, flow=NO_FLOW):
    async with reviews.prepared(on, judges(), flow, ends):
        pass


def of(namespace):
    return Flow("server", namespace, "entry")


async def test_a_namespace_with_many_large_objects_leaves_room_for_others(always, events):
    """Its reviews wait for each other; one of another namespace, however much of them is in flight, is read at once."""
    reviews = HeavyReviews(Limits(values_in_flight=16 * heavy().values // 7 + 1), events)
    loop = asyncio.get_running_loop()
    flood = [heavy() for _ in range(60)]
    tasks = [asyncio.create_task(_held(reviews, on, of("flood"), loop.time() + WAIT_SECONDS)) for on in flood]
    while sum(on.is_parsed for on in flood) < 2:  # noqa: ASYNC110 - none of them tells
        await asyncio.sleep(0)
    async with reviews.prepared(other := heavy(), judges(), of("other"), loop.time() + WAIT_SECONDS):
        assert other.is_parsed
        assert sum(on.is_parsed for on in flood) == 2
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    assert reviews._heavy.is_free


async def test_the_turn_goes_from_namespace_to_namespace(always, events):
    """A hundred that wait for it delay another namespace's by the one that has it."""
    reviews = HeavyReviews(Limits(), events)
    loop = asyncio.get_running_loop()
    flood = [heavy() for _ in range(10)]
    ends = loop.time() + WAIT_SECONDS
    tasks = [asyncio.create_task(_prepare(reviews, on, ends, of("flood"))) for on in flood]
    await asyncio.sleep(0)
    await _prepare(reviews, heavy(), ends, of("other"))
    assert sum(on.is_parsed for on in flood) <= 2
    await asyncio.gather(*tasks)
    assert all(on.is_parsed for on in flood)


async def test_who_waits_is_unread_when_the_gateway_stops_at_once(events):
    """Nothing waits for room any more, and nothing begins in what becomes free."""
    reviews, first, second = HeavyReviews(Limits(values_in_flight=5_000), events), *map(heavy, [4_000] * 2)
    ends = asyncio.get_running_loop().time() + WAIT_SECONDS
    async with reviews.prepared(first, judges(), NO_FLOW, ends):
        waiting = asyncio.create_task(_prepare(reviews, second, ends))
        await asyncio.sleep(0)
        reviews.close()
        await waiting
        assert second.unread.reason is Reason.OVERLOADED
    assert first.unread is None


async def test_what_no_policy_reads_is_not_charged(events):
    """A policy that is sent the whole object needs no value of it, so its reviews are as many as they are."""
    reviews = HeavyReviews(Limits(values_in_flight=5_000), events)
    whole = plan(policy("whole", phase=Phase.VALIDATING))
    async with AsyncExitStack() as stack:
        for on in map(heavy, [4_000] * 3):
            await stack.enter_async_context(reviews.prepared(on, whole, NO_FLOW, 0.0))
            assert on.unread is None
            assert not on.is_parsed
    assert events.events == []


async def _held(reviews, on, flow, ends):
    async with reviews.prepared(on, judges(), flow, ends):
        await asyncio.get_running_loop().create_future()


async def test_the_largest_review_fits_beside_half_of_the_room(events):
    """Another namespace's large objects, however many there are, do not keep it out."""
    limits = Limits()
    reviews, largest = HeavyReviews(limits, events), limits.readable_values + limits.body_bytes // BYTES_OF_VALUE
    async with AsyncExitStack() as stack:
        for _ in range(20):
            held = reviews._heavy.taken(of("flood"), LIGHT_VALUES + 1, cost=1)
            task = asyncio.create_task(stack.enter_async_context(held))
            await asyncio.sleep(0)
            if not task.done():
                task.cancel()
                break
        async with asyncio.timeout(WAIT_SECONDS), reviews._heavy.taken(of("other"), largest, cost=1):
            pass


async def test_the_collector_runs_in_a_call_of_the_loop_of_its_own():
    """Not while a large object is read, nor in what follows it at once; and it runs as before then."""
    runs, seen = [], []

    def note(phase, about):
        del about
        runs.append(phase)

    def reading():
        for _ in range(3):
            kept.append([[] for _ in range(200_000)])
            yield
        return "read"

    kept = []
    gc.callbacks.append(note)
    try:
        assert await _in_bursts(reading()) == "read"
        seen.append((gc.isenabled(), len(runs)))
        await asyncio.sleep(0)
        seen.append((gc.isenabled(), len(runs)))
    finally:
        gc.callbacks.remove(note)
    (was_enabled, before), (is_enabled, after) = seen
    assert not was_enabled
    assert is_enabled
    assert after > before
