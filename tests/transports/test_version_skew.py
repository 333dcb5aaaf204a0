"""One version or two: how long a disagreement is remembered, and who is woken by it."""

import asyncio

from gateway.transports.version_skew import VersionSkew

WAIT_SECONDS = 90


class Clock:
    """Seconds that pass on request."""

    def __init__(self):
        self.now = 1000.0

    def __call__(self):
        return self.now


def test_versions_without_a_skew_are_consistent():
    """Without a disagreement nothing is in doubt."""
    assert VersionSkew(60.0, Clock()).settled


def test_a_disagreement_unsettles_for_its_time():
    """It is settled again when the time is over, and not before."""
    clock = Clock()
    version_skew = VersionSkew(60.0, clock)
    version_skew.disagreed()
    assert not version_skew.settled
    clock.now += 59.999
    assert not version_skew.settled
    clock.now += 0.001
    assert version_skew.settled


def test_the_last_disagreement_counts():
    """Each disagreement begins the time anew; only the first of them is news."""
    clock = Clock()
    version_skew = VersionSkew(60.0, clock)
    assert version_skew.disagreed()
    clock.now += 40
    assert not version_skew.disagreed()
    clock.now += 40
    assert not version_skew.settled
    clock.now += 20
    assert version_skew.settled
    assert version_skew.disagreed()


async def test_every_waiter_is_woken():
    """All that hold the worker hear of a disagreement, each as often as it calls."""
    version_skew = VersionSkew(60.0, Clock())
    waiting = [asyncio.create_task(version_skew.beyond(0)) for _ in range(3)]
    await asyncio.sleep(0)
    version_skew.disagreed()
    await asyncio.wait_for(asyncio.gather(*waiting), WAIT_SECONDS)
    again = asyncio.create_task(version_skew.beyond(version_skew.disagreements))
    await asyncio.sleep(0)
    assert not again.done()
    version_skew.disagreed()
    await asyncio.wait_for(again, WAIT_SECONDS)


async def test_a_disagreement_that_has_been_is_not_waited_for():
    """What came between looking and waiting is not lost."""
    version_skew = VersionSkew(60.0, Clock())
    version_skew.disagreed()
    await asyncio.wait_for(version_skew.beyond(0), WAIT_SECONDS)
