"""A worker that cannot be reached as long as the process lives."""

import asyncio

from gateway.reasons import Reason
from gateway.telemetry.events import NoEvents
from gateway.transports.unreachable import UnreachableWorker
from tests.transports.reaching import question
from tests.world import policy


async def test_each_call_says_why():
    """It fails as CONFIGURATION, later and once; one that is cancelled gets no answer."""
    worker = UnreachableWorker("labels", "queue q", "give it a Redis", NoEvents())
    answers = []
    worker.call(question(policy("p")), lambda _, answer: answers.append(answer))
    worker.call(question(policy("p")), lambda _, answer: answers.append(answer))()
    assert answers == []
    await asyncio.sleep(0)
    (failure,) = answers
    assert failure.reason is Reason.CONFIGURATION
    assert failure.message == worker.why == worker.never == "worker 'labels' cannot be called: give it a Redis"
    assert worker.live == ()
    await worker.idle()
    await worker.close()
