"""The driver leaves nothing behind: no ask, no timer, no body, however a review ends."""

import asyncio
import gc
import weakref
from time import monotonic

import pytest

from gateway.conditions import Authorization, AuthorizationCheck
from gateway.deciding import Allow, Heart
from gateway.policies.model import Requirement, Selector
from gateway.reasons import Reason
from gateway.review import ReviewError
from gateway.serving.driver import Driver
from tests.world import condition, plan, policy, request, when_authorized


class Silent:
    """Workers that never answer; keeps which asks are open."""

    def __init__(self):
        self.open = set()

    def ask(self, ask, answered):
        self.open.add(ask.id)
        return lambda: self.open.discard(ask.id)


class Prompt:
    """Workers that allow in the next turn of the loop."""

    def ask(self, ask, answered):
        return asyncio.get_running_loop().call_soon(answered, Allow()).cancel


@pytest.fixture
def uncollected():
    """Without the collector: what is freed is freed because nobody refers to it."""
    gc.collect()
    gc.disable()
    yield
    gc.enable()


def driver(asker, on, *, authorizer=None, **fields):
    heart = Heart(on, plan(policy("one", **fields)), ends=monotonic() + 9)
    return Driver("u1", heart, asker=asker, namespaces={}, authorizer=authorizer)


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


async def test_who_hangs_up_leaves_no_ask_open():
    """A review whose API server hangs up has its asks cancelled."""
    asker = Silent()
    deciding = asyncio.create_task(driver(asker, request()).decide())
    while not asker.open:  # noqa: ASYNC110 - a step of the driver has no event to offer
        await asyncio.sleep(0)
    deciding.cancel()
    with pytest.raises(asyncio.CancelledError):
        await deciding
    assert asker.open == set()


# ------------------------------------------------------------------------------------------------ authorizations

CHECK = AuthorizationCheck(verb="get", resource="pods")
CONDITIONAL = {"match_conditions": (condition(when_authorized(CHECK)),)}


class Said:
    """An authorizer that has one answer, and remembers who was asked about."""

    def __init__(self, authorization):
        self.authorization = authorization
        self.asked = []

    def authorize(self, ask, found):
        self.asked.append((ask.check, ask.user.username))
        asyncio.get_running_loop().call_soon(found, self.authorization)


class Broken:
    """An authorizer with a mistake in it."""

    def authorize(self, ask, found):
        raise KeyError(ask)


@pytest.mark.parametrize(("allowed", "matched"), [(True, True), (False, False)])
async def test_an_authorizer_is_asked_and_its_answer_decides(allowed, matched):
    """A matchCondition's authorizer is whoever the driver was given."""
    authorizer = Said(Authorization(allowed=allowed))
    on = request(userInfo={"username": "alice"})
    decision = await driver(Prompt(), on, authorizer=authorizer, **CONDITIONAL).decide()
    assert authorizer.asked == [(CHECK, "alice")]
    assert decision.calls[0].matched is matched


async def test_outside_a_cluster_a_condition_that_asks_for_an_authorization_is_an_error():
    """There is nobody to ask: CONDITION_ERROR, which says so."""
    decision = await driver(Prompt(), request(), **CONDITIONAL).decide()
    assert decision.calls[0].answer.reason is Reason.CONDITION_ERROR
    assert "does not run in a cluster" in decision.response.status.message


async def test_an_authorizer_with_a_mistake_is_an_error_of_the_condition():
    """Never a hung review, never an allow."""
    decision = await driver(Prompt(), request(), authorizer=Broken(), **CONDITIONAL).decide()
    assert decision.calls[0].answer.reason is Reason.CONDITION_ERROR
    assert not decision.response.allowed


async def test_a_review_that_asked_for_an_authorization_is_freed(uncollected):
    """No circle through what the authorizer was given."""
    driving = driver(Prompt(), request(), authorizer=Said(Authorization(allowed=True)), **CONDITIONAL)
    assert (await driving.decide()).response.allowed
    await asyncio.sleep(0)
    gone = weakref.ref(driving)
    del driving
    assert gone() is None
