"""Decisions that wait to be exported or recorded together."""

import asyncio

import pytest

from gateway.engine.verdicts import Allow
from gateway.telemetry import decision_batch
from gateway.telemetry.decision_batch import LARGE_BYTES, MOST, DecisionBatch
from tests.world import decide, policy, request


def decision(number, *, size=0):
    """One about an object of this name and size."""
    return decide([policy("p")], {"p": Allow()}, on=request({"metadata": {"name": str(number), "x": "x" * size}}))[0]


@pytest.fixture
def taken(monkeypatch):
    """What a batch has handed on; nothing is handed on by the clock."""
    monkeypatch.setattr(decision_batch, "SECONDS", 1000.0)
    return []


async def test_the_last_one_that_fits_hands_all_of_them_on(taken):
    """In their order, and not before the event loop goes on: the answer leaves first."""
    batch, decisions = DecisionBatch(taken.append), [decision(number) for number in range(MOST + 1)]
    for each in decisions[:MOST]:
        await asyncio.sleep(0)
        assert taken == []
        batch.add(each)
    assert taken == []
    await asyncio.sleep(0)
    assert taken == decisions[:MOST]
    batch.add(decisions[MOST])
    await asyncio.sleep(0)
    assert len(taken) == MOST


async def test_a_large_review_does_not_wait(taken):
    """It is handed on soon, with those before it: what waits stays small."""
    batch, decisions = DecisionBatch(taken.append), [decision(1), decision(2, size=LARGE_BYTES)]
    for each in decisions:
        batch.add(each)
    await asyncio.sleep(0)
    assert taken == decisions


async def test_some_wait_for_a_time_only(taken, monkeypatch):
    """However few there are."""
    monkeypatch.setattr(decision_batch, "SECONDS", 0.0)
    handed_on = asyncio.Event()
    batch = DecisionBatch(lambda each: (taken.append(each), handed_on.set()))
    batch.add(decision(1))
    await asyncio.wait_for(handed_on.wait(), 10)
    assert len(taken) == 1


async def test_a_flush_hands_on_each_decision_once(taken):
    """At a stop; nothing comes later."""
    batch = DecisionBatch(taken.append)
    batch.add(decision(1))
    batch.flush()
    batch.flush()
    assert len(taken) == 1
    assert batch._timer is None


async def test_an_error_costs_one_decision(taken, logs):
    """It is logged, and the next one is handed on."""

    def take(each):
        taken.append(each)
        if len(taken) == 1:
            raise ValueError("wrong")

    batch = DecisionBatch(take)
    batch.add(decision(1))
    batch.add(decision(2))
    batch.flush()
    assert len(taken) == 2
    assert [entry["message"] for entry in logs()] == ["an observer of decisions failed"]
