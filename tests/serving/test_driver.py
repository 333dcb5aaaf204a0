"""The driver leaves nothing behind: no ask, no timer, no body, however a review ends."""

import asyncio
import gc
import weakref
from time import monotonic

import pytest

from gateway.deciding import Allow, Heart
from gateway.policies.model import Requirement, Selector
from gateway.review import ReviewError
from gateway.serving.driver import Driver
from tests.world import plan, policy, request


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


def driver(asker, on, **fields):
    heart = Heart(on, plan(policy("one", **fields)), ends=monotonic() + 9)
    return Driver("u1", heart, asker=asker, namespaces={})


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
