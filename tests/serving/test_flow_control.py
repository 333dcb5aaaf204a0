"""When a review begins: at once, in its turn, or not at all."""

import asyncio
from time import monotonic

from gateway.serving.flow_control import SHARE_EXCEEDED, WAITED_TOO_LONG, FlowControl
from gateway.serving.in_flight_shares import Flow
from gateway.serving.limits import Limits
from gateway.telemetry.events import NoEvents

FLOW = Flow("server", "namespace", "entry")


class Counted(NoEvents):
    def __init__(self):
        self.limits = []

    def count(self, metric, *labels, amount=1):
        self.limits.append(labels[0])


def control(**limits):
    events = Counted()
    return FlowControl(Limits(**limits), events), events


async def test_an_idle_gateway_lets_nothing_wait():
    """A loop whose iterations are short is not busy."""
    flows, _ = control()
    await asyncio.sleep(0)
    assert not flows.is_busy
    assert flows.begin(FLOW, monotonic() + 5) is None
    flows.end(FLOW)


async def test_a_review_whose_time_is_over_does_not_begin():
    """It is refused, and takes no room."""
    flows, events = control(reviews_in_flight=1)
    assert flows.begin(FLOW, monotonic() - 0.001) is WAITED_TOO_LONG
    assert flows.begin(FLOW, monotonic() + 5) is None
    assert flows.begin(FLOW, monotonic() + 5) is SHARE_EXCEEDED
    assert events.limits == ["wait_seconds", "reviews_in_flight"]


async def test_a_few_begin_in_each_iteration_and_the_rest_waits():
    """One flood does not delay the loop, and a review of another namespace is not behind it."""
    flows, _ = control()
    now, begun = monotonic(), []

    async def review(name, tenant):
        assert await flows.turn(Flow("server", tenant, "entry"), 1.0, now, now + 20) is None
        begun.append(name)

    tasks = [asyncio.create_task(review(number, "flood")) for number in range(100)]
    tasks.append(asyncio.create_task(review("innocent", "other")))
    while not begun:  # noqa: ASYNC110 - it is the iterations that count
        await asyncio.sleep(0)
    assert flows.is_busy
    assert "innocent" in begun
    assert len(begun) <= 16
    assert flows.waiting >= 101 - 3 * 16
    await asyncio.gather(*tasks)
    assert flows.waiting == 0


async def test_a_review_that_waited_too_long_is_refused():
    """Half of its budget, or two seconds: what is left is too little, or its client has better things to do."""
    flows, events = control()
    now = monotonic()
    assert await flows.turn(FLOW, 1.0, now - 0.6, now + 0.4) is WAITED_TOO_LONG
    assert await flows.turn(FLOW, 1.0, now - 2.1, now + 20) is WAITED_TOO_LONG
    assert await flows.turn(FLOW, 1.0, now - 1.0, now + 20) is None
    assert events.limits == ["wait_seconds"] * 2


async def test_a_full_queue_refuses_the_flood():
    """What comes is not what is refused."""
    flows, events = control(reviews_waiting=3)
    now = monotonic()
    turns = [asyncio.create_task(flows.turn(FLOW, 1.0, now, now + 20)) for _ in range(3)]
    turns.append(asyncio.create_task(flows.turn(Flow("server", "other", "entry"), 1.0, now, now + 20)))
    assert await asyncio.gather(*turns) == [WAITED_TOO_LONG, None, None, None]
    assert events.limits == ["reviews_waiting"]


async def test_a_client_that_hangs_up_leaves_the_queue():
    """Nothing waits for it any more."""
    flows, _ = control()
    now = monotonic()
    first = asyncio.create_task(flows.turn(FLOW, 1.0, now, now + 20))
    second = asyncio.create_task(flows.turn(FLOW, 1.0, now, now + 20))
    await asyncio.sleep(0)
    first.cancel()
    assert await second is None
    assert flows.waiting == 0
