"""The driver leaves nothing behind: no call, no timer, no body, however a review ends."""

import asyncio
import gc
import weakref
from time import monotonic

import pytest

from gateway.cel.authorization import Authorization, AuthorizationCheck
from gateway.engine.answer_source import Origin, Source
from gateway.engine.decision import Outcome
from gateway.engine.engine import Engine
from gateway.engine.verdicts import Allow, Deny, Failure
from gateway.policies.model import Cache, FailurePolicy, ReinvocationPolicy, Requirement, Selector
from gateway.reasons import Reason
from gateway.review.request import ReviewError
from gateway.serving.driver import Driver, NotInCluster
from tests.integration.process import WAIT_SECONDS
from tests.world import condition, plan, policy, request, when_authorized

CACHE = Cache(ttl=60.0)
"""Of policies whose verdicts are called of the cache first."""


class Silent:
    """Workers that never answer; keeps which calls are open, and which there were, by id."""

    def __init__(self):
        self.open = set()
        self.calls = {}
        self.disagreements = []

    def known(self, policy_call):
        return None

    def call(self, policy_call, reply):
        self.open.add(policy_call.id)
        self.calls[policy_call.id] = policy_call
        return lambda: self.open.discard(policy_call.id)

    def disagreed(self, call, version):
        self.disagreements.append((call.id, version))


class Prompt:
    """Workers that allow in the next turn of the loop."""

    def known(self, policy_call):
        return None

    def call(self, policy_call, reply):
        return asyncio.get_running_loop().call_soon(reply.answered, policy_call, Allow()).cancel


class Knowing:
    """A cache that has every verdict, and no worker behind it."""

    def known(self, policy_call):
        return Allow(warnings=("known",)), Origin(source=Source.MEMORY, age=2.0)


class Tardy(Prompt):
    """Workers that fail in the next turn of the loop, behind a cache that has a stale verdict."""

    def call(self, policy_call, reply):
        loop = asyncio.get_running_loop()
        loop.call_soon(reply.fallback, policy_call, Allow(), Origin(source=Source.STALE, age=60.0))
        return loop.call_soon(
            reply.answered, policy_call, Failure(reason=Reason.WORKER_UNAVAILABLE, message="away")
        ).cancel


class Misshapen:
    """A policy caller with a defect: each method does what the test says."""

    def __init__(self, known=lambda policy_call: None, call=lambda policy_call, reply: None):
        self.known = known
        self.call = call


def _raise(*_):
    raise KeyError("a defect")


@pytest.fixture
def uncollected():
    """Without the collector: what is freed has no reference left."""
    gc.collect()
    gc.disable()
    yield
    gc.enable()


def driver(policy_caller, on, *, facts=None, finish=None, **fields):
    engine = Engine(on, plan(policy("one", **fields)), ends=monotonic() + 9)
    return driving_of(engine, policy_caller, facts=facts, finish=finish)


def driving_of(engine, policy_caller, *, facts=None, finish=None):
    return Driver("u1", engine, caller=policy_caller, facts=facts or NotInCluster(), finish=finish)


async def test_a_decided_review_is_freed(uncollected):
    """A review that is decided leaves no circle that holds its body."""
    driving = driver(Prompt(), request())
    assert (await driving.decide()).response.allowed
    gone = weakref.ref(driving)
    del driving
    assert gone() is None


async def test_an_unreadable_review_is_freed(uncollected):
    """A review that turns out unreadable, with its traceback, leaves no circle that holds its body."""
    selector = Selector(requirements=(Requirement(key="a", operator="Exists"),))
    driving = driver(Prompt(), request(object=5), object_selector=selector)
    with pytest.raises(ReviewError) as raised:
        await driving.decide()
    gone = weakref.ref(driving)
    del driving, raised
    assert gone() is None


async def test_who_hangs_up_leaves_no_call_open():
    """A review whose API server hangs up has its calls cancelled."""
    policy_caller = Silent()
    deciding = asyncio.create_task(driver(policy_caller, request()).decide())
    await asyncio.sleep(0)
    assert policy_caller.open != set()
    deciding.cancel()
    with pytest.raises(asyncio.CancelledError):
        await deciding
    assert policy_caller.open == set()


async def test_who_hangs_up_leaves_a_record():
    """The call that had no answer is in it, however often it is asked for; and the future is no circle."""
    driving = driver(Silent(), request())
    deciding = asyncio.create_task(driving.decide())
    await asyncio.sleep(0)
    deciding.cancel()
    with pytest.raises(asyncio.CancelledError):
        await deciding
    record = driving.abandoned()
    assert record.outcome is Outcome.CANCELED
    assert [(call.call is not None, call.answer) for call in record.calls] == [(True, None)]
    assert record.ledger.dispatched is not None
    assert driving.abandoned() is record


async def test_who_hangs_up_as_the_decision_is_made_has_it_recorded():
    """There is one record of a review: that of its decision."""
    policy_caller = Silent()
    driving = driver(policy_caller, request())
    deciding = asyncio.create_task(driving.decide())
    await asyncio.sleep(0)
    driving.answered(policy_caller.calls[1], Allow())
    deciding.cancel()
    with pytest.raises(asyncio.CancelledError):
        await deciding
    assert driving.abandoned().outcome is Outcome.ALLOWED


async def test_a_review_that_was_not_begun_is_given_up():
    """Its client left while it waited to be read."""
    record = driver(Silent(), request()).abandoned()
    assert (record.outcome, record.calls) == (Outcome.CANCELED, ())


async def test_a_record_that_cannot_be_made_is_none(monkeypatch):
    """Where the engine breaks again and again; nothing is raised."""
    driving = driver(Silent(), request())
    for event in ("abandoned", "broken"):
        monkeypatch.setattr(driving._engine, event, _raise)
    assert driving.abandoned() is None


async def test_prefetched_calls_are_cancelled_by_the_event_that_decides():
    """The first policy denies; the others, and the timer of their calls, are gone with that."""
    policy_caller = Silent()
    chain = plan(*(policy(name, index=index) for index, name in enumerate(("one", "two", "three"))))
    driving = driving_of(Engine(request(), chain, ends=monotonic() + 9), policy_caller)
    deciding = asyncio.create_task(driving.decide())
    await asyncio.sleep(0)
    assert policy_caller.open == {1, 2, 3}
    driving.answered(policy_caller.calls[1], Deny(message="no"))
    assert policy_caller.open == {1}
    assert not (await deciding).response.allowed
    assert driving._alarm is None


async def test_the_timer_is_set_anew_only_where_its_time_is_another():
    """An answer to a prefetched call before the policy's turn changes nothing."""
    chain = plan(*(policy(name, index=index) for index, name in enumerate(("one", "two", "three"))))
    policy_caller = Silent()
    driving = driving_of(Engine(request(), chain, ends=monotonic() + 9), policy_caller)
    deciding = asyncio.create_task(driving.decide())
    await asyncio.sleep(0)
    alarm = driving._alarm
    driving.answered(policy_caller.calls[2], Allow())
    assert driving._alarm is alarm
    driving.answered(policy_caller.calls[1], Allow())
    assert not alarm.cancelled()
    driving.answered(policy_caller.calls[3], Allow())
    assert (await deciding).response.allowed
    assert alarm.cancelled()


async def test_an_answer_in_another_version_is_reported_to_the_caller():
    """Also where the review is decided by it, or was before; a failure, and an answer that names none, are of none."""
    policy_caller = Silent()
    chain = plan(*(policy(name, index=index) for index, name in enumerate(("one", "two", "three", "four"))))
    driving = driving_of(Engine(request(), chain, ends=monotonic() + 9), policy_caller)
    deciding = asyncio.create_task(driving.decide())
    await asyncio.sleep(0)
    driving.answered(policy_caller.calls[3], Allow())
    driving.answered(policy_caller.calls[4], Failure(reason=Reason.WORKER_FAILURE, message="no"))
    driving.answered(policy_caller.calls[1], Deny(version="new"))
    assert (await deciding).calls[0].version == "new"
    driving.answered(policy_caller.calls[2], Allow(version="newer"))
    assert policy_caller.disagreements == [(1, "new"), (2, "newer")]


async def test_a_known_verdict_decides_at_once():
    """What is known needs no turn of the loop, and is no question to a worker."""
    decision = await driver(Knowing(), request(), cache=CACHE).decide()
    (call,) = decision.calls
    assert (call.source, call.answer.warnings) == (Source.MEMORY, ("known",))


class Half(Silent):
    """A cache with one policy's verdict, a denial; the others have no answer."""

    def __init__(self, policy):
        super().__init__()
        self.policy = policy
        self.called = []

    def known(self, policy_call):
        return (Deny(), Origin(source=Source.MEMORY)) if policy_call.policy.policy == self.policy else None

    def call(self, policy_call, reply):
        self.called.append(policy_call.policy.policy)
        return super().call(policy_call, reply)


async def test_what_is_known_spares_the_other_calls():
    """A cached denial is returned before any prefetch, so no later policy is called."""
    policy_caller = Half("one")
    engine = Engine(
        request(), plan(policy("one", cache=CACHE), policy("two", index=1, cache=CACHE)), ends=monotonic() + 9
    )
    decision = await driving_of(engine, policy_caller).decide()
    assert not decision.response.allowed
    assert policy_caller.called == []


async def test_a_stale_verdict_stands_in_for_a_failure():
    """What the cache falls back on reaches the engine."""
    decision = await driver(Tardy(), request()).decide()
    assert decision.response.allowed
    assert decision.calls[0].source is Source.STALE


@pytest.mark.parametrize(
    "policy_caller",
    [
        object(),
        Misshapen(known=_raise),
        Misshapen(known=lambda policy_call: 5),
        Misshapen(call=lambda policy_call: None),
        Misshapen(call=_raise),
    ],
    ids=["no asker", "known raises", "known is odd", "ask has another shape", "ask raises"],
)
async def test_an_error_in_the_asker_is_a_failure_of_each_policy(policy_caller, logs):
    """INTERNAL, in one pass: never an endless one, never a hung review."""
    fields = {
        "failure_policy": FailurePolicy.IGNORE,
        "reinvocation_policy": ReinvocationPolicy.IF_NEEDED,
        "cache": CACHE,
    }
    chain = plan(*(policy(name, index=index, **fields) for index, name in enumerate(("one", "two", "three"))))
    engine = Engine(request(), chain, ends=monotonic() + 9)
    async with asyncio.timeout(WAIT_SECONDS):
        decision = await driving_of(engine, policy_caller).decide()
    assert [call.answer.reason for call in decision.calls] == [Reason.INTERNAL] * 3
    assert {entry["log_level"] for entry in logs} == {"error"}


async def test_a_call_that_cannot_be_cancelled_affects_no_other(logs):
    """Who hangs up has hung up, whatever the asker gave for cancelling."""
    deciding = asyncio.create_task(driver(Misshapen(), request()).decide())
    await asyncio.sleep(0)
    deciding.cancel()
    with pytest.raises(asyncio.CancelledError):
        await deciding


# ------------------------------------------------------------------------------------------------ authorizations

CHECK = AuthorizationCheck(verb="get", resource="pods")
CONDITIONAL = {"match_conditions": (condition(when_authorized(CHECK)),)}


class Said:
    """An authorizer that has one answer, and remembers who was called about."""

    def __init__(self, authorization):
        self.authorization = authorization
        self.called = []

    def look_up(self, policy_call, found):
        self.called.append((policy_call.check, policy_call.user.username))
        asyncio.get_running_loop().call_soon(found, self.authorization)


class Broken:
    """An authorizer with a defect."""

    def look_up(self, policy_call, found):
        raise KeyError(policy_call)


@pytest.mark.parametrize(("allowed", "matched"), [(True, True), (False, False)])
async def test_an_authorizer_is_called_and_its_answer_decides(allowed, matched):
    """A matchCondition's authorizer is the driver's."""
    authorizer = Said(Authorization(allowed=allowed))
    on = request(userInfo={"username": "alice"})
    decision = await driver(Prompt(), on, facts=authorizer, **CONDITIONAL).decide()
    assert authorizer.called == [(CHECK, "alice")]
    assert decision.calls[0].matched is matched


async def test_outside_a_cluster_a_condition_that_calls_for_an_authorization_is_an_error():
    """There is no authorizer: CONDITION_ERROR, which names that."""
    decision = await driver(Prompt(), request(), **CONDITIONAL).decide()
    assert decision.calls[0].answer.reason is Reason.CONDITION_ERROR
    assert "serve with --cluster" in decision.response.status.message


async def test_an_authorizer_with_an_error_is_an_error_of_the_condition():
    """Never a hung review, never an allow."""
    decision = await driver(Prompt(), request(), facts=Broken(), **CONDITIONAL).decide()
    assert decision.calls[0].answer.reason is Reason.CONDITION_ERROR
    assert not decision.response.allowed


async def test_a_review_that_called_for_an_authorization_is_freed(uncollected):
    """No circle through what the authorizer was given."""
    driving = driver(Prompt(), request(), facts=Said(Authorization(allowed=True)), **CONDITIONAL)
    assert (await driving.decide()).response.allowed
    await asyncio.sleep(0)
    gone = weakref.ref(driving)
    del driving
    assert gone() is None
