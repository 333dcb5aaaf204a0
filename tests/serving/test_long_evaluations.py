"""Conditions that take long are evaluated in turns, in a thread, while the event loop goes on."""

import asyncio
import threading

import pytest

from gateway.cel.match_conditions import compile_condition
from gateway.cel.program import Evaluation
from gateway.engine.decision import Outcome
from gateway.policies.model import MatchCondition
from gateway.serving.in_flight_shares import NO_FLOW, Flow
from gateway.serving.long_evaluations import LongEvaluations
from gateway.telemetry.table import LONG_EVALUATIONS
from tests.serving.conftest import WAIT_SECONDS
from tests.serving.test_driver import Prompt, Silent, driver
from tests.serving.test_heavy_reviews import Counted
from tests.world import QUADRATIC, large

TRUE = Evaluation(outcome=True, cost=1)
LONG = MatchCondition(name="long", condition=compile_condition(QUADRATIC))


@pytest.fixture
def events():
    return Counted()


@pytest.fixture
def evaluations(events):
    return LongEvaluations(events)


async def test_the_loop_goes_on_meanwhile(evaluations, events):
    """The evaluation waits for something that only the loop can do."""
    went_on = threading.Event()

    def evaluate():
        assert went_on.wait(WAIT_SECONDS)
        return TRUE

    finishing = asyncio.create_task(evaluations.finish(NO_FLOW, evaluate))
    asyncio.get_running_loop().call_later(0, went_on.set)
    assert await finishing is TRUE
    assert events.events == [(LONG_EVALUATIONS,)]


async def test_one_at_a_time_in_a_fair_order(evaluations):
    """The second namespace does not wait for all of the first."""
    begun = []

    def evaluation(name):
        return lambda: begun.append(name) or TRUE

    held = threading.Event()
    flows = [Flow(client="api", tenant=tenant, entry="") for tenant in "aaab"]
    tasks = [asyncio.create_task(evaluations.finish(flows[0], lambda: held.wait(WAIT_SECONDS)))]
    for index, flow in enumerate(flows[1:]):
        tasks.append(asyncio.create_task(evaluations.finish(flow, evaluation(f"{flow.tenant}{index}"))))
        await asyncio.sleep(0)
    assert begun == []
    held.set()
    await asyncio.wait_for(asyncio.gather(*tasks), WAIT_SECONDS)
    assert begun.index("b2") < 2


async def test_a_review_is_decided_with_it():
    """The condition of a policy takes long for this object: it is evaluated, and the worker is called."""
    decision = await driver(Prompt(), large(), match_conditions=(LONG,)).decide()
    assert decision.outcome is Outcome.ALLOWED
    assert decision.calls[0].matched


async def test_who_hangs_up_waits_for_none():
    """An evaluation that has not begun is given up with its review."""
    waiting, given_up = asyncio.Event(), asyncio.Event()

    async def never(evaluate):
        waiting.set()
        try:
            await asyncio.Event().wait()
        finally:
            given_up.set()

    driving = driver(Silent(), large(), match_conditions=(LONG,), finish=never)
    deciding = asyncio.create_task(driving.decide())
    await waiting.wait()
    deciding.cancel()
    await asyncio.wait_for(given_up.wait(), WAIT_SECONDS)


async def test_a_defect_hangs_no_review(logs):
    """The policies fail as they do after an error of the engine."""

    async def defect(evaluate):
        raise KeyError("a defect")

    decision = await driver(Prompt(), large(), match_conditions=(LONG,), finish=defect).decide()
    assert decision.outcome is Outcome.FAILED
    assert [line["event"] for line in logs] == ["a condition cannot be evaluated"]
