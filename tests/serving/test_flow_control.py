"""When a review begins: at once, in its turn, or not at all."""

import asyncio
from time import monotonic

from gateway.serving import flow_control
from gateway.serving.flow_control import OVERLOADED, FlowControl
from gateway.serving.in_flight_shares import Flow
from gateway.serving.limits import Limits
from gateway.telemetry.events import NoEvents

FLOW = Flow("server", "namespace", "entry")
OTHER = Flow("server", "other", "entry")


class Counted(NoEvents):
    def __init__(self):
        self.limits = []

    def count(self, metric, *labels, amount=1):
        self.limits.append(labels[0])


def control(**limits):
    events = Counted()
    return FlowControl(Limits(**limits), events), events


def begin(flows, flow=FLOW, since=None):
    """A task that waits for the turn of a review that arrived just now, or then."""
    now = monotonic() if since is None else since
    return asyncio.create_task(flows.turn(flow, 1.0, now, now + 20))


async def test_an_idle_gateway_lets_nothing_wait():
    """A loop whose iterations are short is not busy."""
    flows, _ = control()
    await asyncio.sleep(0)
    assert flows.begin(FLOW, monotonic() + 5)
    flows.end(FLOW)
    assert flows.waiting == 0


async def test_a_review_whose_time_is_over_does_not_begin():
    """It is refused, and takes no room."""
    flows, events = control(reviews_in_flight=1)
    now = monotonic()
    assert not flows.begin(FLOW, now)
    assert await flows.turn(FLOW, 1.0, now - 1, now) is OVERLOADED
    assert flows.begin(FLOW, now + 5)
    assert events.limits == ["wait_seconds"]


async def test_a_few_begin_in_each_iteration_and_the_rest_waits():
    """One flood does not delay the loop, and a review of another namespace is not behind it."""
    flows, _ = control()
    begun = []

    async def review(name, flow):
        assert await begin(flows, flow) is None
        begun.append(name)

    tasks = [asyncio.create_task(review(number, FLOW)) for number in range(100)]
    tasks.append(asyncio.create_task(review("innocent", OTHER)))
    while not begun:  # noqa: ASYNC110 - it is the iterations that count
        await asyncio.sleep(0)
    assert "innocent" in begun
    assert len(begun) <= 16
    assert flows.waiting >= 101 - 3 * 16
    assert not flows.begin(OTHER, monotonic() + 5)
    await asyncio.gather(*tasks)
    assert flows.waiting == 0


async def test_a_review_that_waited_too_long_is_refused():
    """Half of its budget, or two seconds."""
    for arrived, left in ((0.6, 0.4), (2.1, 20.0)):
        flows, events = control()
        now = monotonic()
        assert await flows.turn(FLOW, 1.0, now - arrived, now + left) is OVERLOADED
        assert events.limits == ["wait_seconds"]
    assert await begin(flows, since=monotonic() - 1.0) is None


async def test_refusals_follow_each_other_slowly(monkeypatch):
    """Of many that have waited too long one is refused at once, the others after it, and whose time is over at once."""
    now = 1000.0
    monkeypatch.setattr(flow_control, "monotonic", lambda: now)
    flows, events = control(reviews_in_flight=1)
    assert flows.begin(FLOW, now + 5)
    many = [asyncio.create_task(flows.turn(FLOW, 1.0, now - 3, now + 9)) for _ in range(100)]
    hurried = asyncio.create_task(flows.turn(FLOW, 1.0, now - 1, now + 0.1))
    assert await many[0] is OVERLOADED
    assert await hurried is OVERLOADED
    assert flows.waiting == 99
    now += 0.2
    await many[59]
    assert 30 < flows.waiting < 50
    now += 9
    await asyncio.gather(*many)
    assert flows.waiting == 0
    assert events.limits == ["reviews_in_flight"] * 101


async def test_a_review_whose_refusal_waits_is_judged_if_there_is_room_after_all():
    """Refused is what nothing else can become of."""
    flows, events = control(reviews_in_flight=1)
    assert flows.begin(FLOW, monotonic() + 5)
    now = monotonic()
    first, second = (asyncio.create_task(flows.turn(FLOW, 1.0, now - 1000, now + 1000)) for _ in range(2))
    assert await first is OVERLOADED
    flows.end(FLOW)
    assert await second is None
    assert events.limits == ["reviews_in_flight"]


async def test_a_review_waits_for_its_share_and_others_do_not():
    """A namespace with its share in flight has its next review begin when one of them is answered."""
    flows, _ = control(reviews_in_flight=4)
    assert [flows.begin(FLOW, monotonic() + 5) for _ in range(3)] == [True, True, False]
    waits = begin(flows)
    assert await begin(flows, OTHER) is None
    assert not waits.done()
    flows.end(FLOW)
    flows.end(OTHER)
    assert await waits is None
    assert flows.waiting == 0


async def test_a_review_that_waited_in_vain_for_its_share_is_refused():
    """The reason counts as the limit of reviews in flight."""
    flows, events = control(reviews_in_flight=1)
    assert flows.begin(FLOW, monotonic() + 5)
    assert await begin(flows, since=monotonic() - 1.99) is OVERLOADED
    assert events.limits == ["reviews_in_flight"]


async def test_a_client_that_hangs_up_leaves_no_trace():
    """Nothing waits for it any more; and if its turn had just come, it is not in flight."""
    flows, _ = control(reviews_in_flight=2)
    first, second = begin(flows), begin(flows, OTHER)
    await asyncio.sleep(0)
    first.cancel()
    assert await second is None
    flows.end(OTHER)
    third = begin(flows)
    await asyncio.sleep(0)
    assert flows.waiting == 1
    await asyncio.sleep(0)
    assert flows.waiting == 0
    third.cancel()
    await asyncio.gather(third, return_exceptions=True)
    assert flows._shares.taken == 0
