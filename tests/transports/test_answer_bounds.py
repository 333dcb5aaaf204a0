"""What the answers of all workers of a process occupy is bounded, and a verdict stays one."""

import asyncio
import gc
import threading

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.documents.documents import Document
from gateway.engine.policy_call import PolicyCall
from gateway.engine.verdicts import Allow, Change, ChangeKind, Deny, Failure
from gateway.reasons import Reason
from gateway.telemetry.labels import Transport
from gateway.telemetry.metrics import Metrics
from gateway.transports.answer_bounds import LARGE_BYTES, AnswerBounds
from gateway.transports.answer_texts import characters, shortened
from gateway.transports.call_meter import CallMeter
from gateway.transports.freed_memory import FreedMemory
from gateway.transports.limits import TransportLimits
from gateway.transports.outcomes import Outcomes
from gateway.transports.proto.admission.worker.v1 import worker_pb2 as pb
from tests.samples import sample_value
from tests.world import policy

LIMIT = 200
SENTENCES = 400
"""Characters of the sentences that say what is missing."""

TEXTS = st.text("aé😀\n", max_size=300)
COMMON = {
    "warnings": st.lists(TEXTS, max_size=5).map(tuple),
    "audit_annotations": st.dictionaries(TEXTS, TEXTS, max_size=5),
}
DETAILS = st.none() | st.fixed_dictionaries(
    {"name": TEXTS, "causes": st.lists(st.fixed_dictionaries({"field": TEXTS}), max_size=3)}
)
ANSWERS = st.one_of(
    st.builds(Allow, **COMMON),
    st.builds(Deny, message=TEXTS, reason=TEXTS, details=DETAILS, **COMMON),
    st.builds(Failure, reason=st.just(Reason.WORKER_FAILURE), message=st.just("x"), **COMMON),
)


def call():
    """A call of a policy."""
    document = Document(content=b"{}", digest=b"")
    return PolicyCall(id=1, policy=policy("a"), document=document, deadline=1.0, uid="u", cancellable=True)


def large(size=LARGE_BYTES + 1):
    """An answer with a change of so many bytes."""
    return Allow(change=Change(kind=ChangeKind.OBJECT, content=b"x" * size))


class Bounded:
    """The bounds, and what is counted of them."""

    def __init__(self, **limits):
        self.metrics = Metrics()
        self.bounds = AnswerBounds(TransportLimits(**limits), self.metrics)

    def __call__(self, answer):
        return self.bounds.bounded(call(), answer)

    def hits(self, limit):
        return sample_value(self.metrics, "admission_gateway_limit_hits_total", {"limit": limit}) or 0


@pytest.mark.property
@given(ANSWERS)
def test_the_texts_of_an_answer_are_bounded_and_its_verdict_stays(answer):
    """Whatever an answer has too much of, it keeps its kind and its code, and says what is missing."""
    bounded = shortened(answer, LIMIT)
    assert type(bounded) is type(answer)
    assert characters(bounded) <= LIMIT + SENTENCES
    assert msgspec.structs.replace(bounded, warnings=(), audit_annotations={}, **_texts(answer)) == (
        msgspec.structs.replace(answer, warnings=(), audit_annotations={})
    )
    kept = set(answer.warnings)
    assert all(each in kept or "are dropped" in each for each in bounded.warnings)
    assert bounded.audit_annotations.items() <= dict(answer.audit_annotations).items()
    if len(bounded.audit_annotations) < len(answer.audit_annotations):
        assert "audit annotations of a policy are dropped" in bounded.warnings[-1]


def _texts(answer):
    names = ("message", "reason", "details") if isinstance(answer, Deny) else ()
    return {name: getattr(answer, name) for name in names}


@pytest.mark.property
@given(ANSWERS)
def test_an_answer_within_the_limit_is_passed_on_as_it_is(answer):
    """The very same object, and nothing is counted."""
    bounded = Bounded(answer_characters=max(characters(answer), 1))
    assert bounded(answer) is answer
    assert bounded.hits("answer_characters") == 0


def test_a_denial_with_a_long_message_is_a_denial():
    """Its message is cut and says so, and its details are kept if they fit; the hit is counted."""
    bounded = Bounded(answer_characters=1_000)
    deny = bounded(Deny(code=422, message="m" * 5_000, reason="Invalid", warnings=("w" * 500,), version="7"))
    assert isinstance(deny, Deny)
    assert (deny.code, deny.reason, deny.version) == (422, "Invalid", "7")
    assert deny.message.startswith("m" * 900)
    assert deny.message.endswith("(cut: this message has 5000 characters, and the limit of an answer is 993)")
    (warning,) = deny.warnings
    assert warning.startswith("1 warnings and 0 audit annotations of a policy are dropped: ")
    assert warning.endswith("the texts of its answer have 5507 characters, and the limit is 1000")
    assert bounded.hits("answer_characters") == 1


def test_details_lose_their_causes_first():
    """The name of the object is worth more to a client than the causes that do not fit."""
    causes = [{"field": "f" * 100}] * 10
    deny = shortened(Deny(message="no", details={"name": "n", "causes": causes}), LIMIT)
    assert deny.details == {"name": "n"}
    assert shortened(Deny(message="no", details={"name": "n" * LIMIT}), LIMIT).details is None


def test_a_large_change_is_charged_as_long_as_somebody_keeps_it():
    """What does not fit beside it is a failure of its call, and fits as soon as the other is gone."""
    bounded = Bounded(answer_bytes_in_flight=3 * LARGE_BYTES)
    first, second = bounded(large()), bounded(large())
    assert bounded.bounds.held == 2 * (LARGE_BYTES + 1)
    refused = bounded(large())
    assert isinstance(refused, Failure)
    assert refused.reason is Reason.OVERLOADED
    assert f"a change of {LARGE_BYTES + 1} bytes" in refused.message
    assert bounded.hits("answer_bytes_in_flight") == 1
    del first
    gc.collect()
    third = bounded(large())
    assert isinstance(third, Allow)
    del second, third
    gc.collect()
    assert bounded.bounds.held == 0


def test_a_single_change_always_fits():
    """Otherwise it could never be applied."""
    bounded = Bounded(answer_bytes_in_flight=LARGE_BYTES)
    assert isinstance(bounded(large(10 * LARGE_BYTES)), Allow)


def test_a_small_change_is_not_charged():
    """Most are a patch of some hundred bytes."""
    bounded = Bounded()
    answer = large(LARGE_BYTES)
    assert bounded(answer) is answer
    assert bounded.bounds.held == 0


def test_every_answer_of_a_worker_is_bounded():
    """Whatever the transport: its answers pass the meter, which counts what the review gets."""
    bounded, received, opened = Bounded(answer_bytes_in_flight=LARGE_BYTES), [], []

    class Channel:
        name = "labels"

        def call(self, of, answered, fits=None):
            opened.append(answered)
            return lambda: None

    meter = CallMeter(Channel(), Transport.GRPC, bounded.metrics, bounds=bounded.bounds)
    for answer in (large(), large(), Deny(message="m" * 100_000)):
        of = call()
        meter.call(of, lambda _, got: received.append(got))
        opened.pop()(of, answer)
    assert [type(answer) for answer in received] == [Allow, Failure, Deny]
    assert len(received[2].message) < 66_000
    labels = {"worker": "labels", "transport": "grpc", "result": "failure"}
    assert sample_value(bounded.metrics, "admission_gateway_worker_calls_total", labels) == 1


async def test_freed_memory_is_returned_once_for_many_large_answers(monkeypatch):
    """Large answers come together; what they have left is looked for once, later, and in a thread."""
    monkeypatch.setattr("gateway.transports.freed_memory.DELAY_SECONDS", 0.0)
    freed, loop, returned, threads = FreedMemory(), asyncio.get_running_loop(), asyncio.Event(), []

    def trim(_):
        threads.append(threading.current_thread())
        loop.call_soon_threadsafe(returned.set)

    freed._trim = trim
    for _ in range(3):
        freed.return_soon()
    await returned.wait()
    assert len(threads) == 1
    assert threads[0] is not threading.main_thread()


class OutcomeOfWorker:
    """An Outcome that must not be serialized."""

    def __init__(self, outcome):
        self._outcome = outcome

    def __getattr__(self, name):
        assert name not in {"SerializeToString", "ByteSize"}
        return getattr(self._outcome, name)


@pytest.mark.parametrize(
    "outcome",
    [pb.Outcome(deny=pb.Deny(message="no")), pb.Outcome(allow=pb.Allow(object=b"{}"))],
    ids=["deny", "object"],
)
def test_an_answer_that_is_not_memoized_is_not_serialized(outcome):
    """To serialize an answer of 38 MB, to look for it, takes as long as to read it twice."""
    read = Outcomes("labels", 500, lambda error: Failure(reason=Reason.INTERNAL, message=repr(error))).read
    assert not isinstance(read(call(), OutcomeOfWorker(outcome)), Failure)
