"""Replays: what is called again after the answer has left has its bounds, and affects no review."""

import asyncio

import pytest

from gateway.engine.verdicts import Allow
from gateway.serving import replay
from gateway.serving.replay import DROPPED, FAILED, HELD_BYTES, REPLAYS, REPLAYS_OF_ONE, Replays
from tests.integration.process import WAIT_SECONDS
from tests.world import decide, label, patch, policy, request


class Configuration:
    """``held`` counts who holds it."""

    held = 0

    def begin(self):
        self.held += 1

    def end(self):
        self.held -= 1


class Replaying:
    """Begins replays of one decision; each waits for ``go``, and what each came to is in ``results``."""

    def __init__(self, on=None):
        self.decision, _ = decide([policy("a")], {"a": Allow()}, on=on)
        self.loaded = Configuration()
        self.replays = Replays(lambda: self.loaded)
        self.go = asyncio.Event()
        self.results = []

    def begin(self, subject="a", work=None):
        self.replays.begin(
            subject, self.decision, work or self._wait, lambda result: self.results.append((subject, result))
        )

    async def _wait(self, replay):
        await self.go.wait()
        return "same"

    async def end(self):
        """Let those that are under way come to their results."""
        self.go.set()
        async with asyncio.timeout(WAIT_SECONDS):
            await self.replays.idle()
        self.go.clear()
        assert self.loaded.held == 0


@pytest.fixture(autouse=True)
def at_once(monkeypatch):
    """No pause before a replay."""
    monkeypatch.setattr(replay, "AFTER_SECONDS", 0.0)


@pytest.mark.parametrize(
    ("limit", "value", "begun"), [("REPLAYS", 3, 3), ("REPLAYS_OF_ONE", 2, 4), ("HELD_BYTES", 3, 3)]
)
async def test_what_is_under_way_is_bounded(monkeypatch, limit, value, begun):
    """In number, for each subject and for all, and in bytes; what is beyond is dropped, what has ended makes room."""
    one = Replaying()
    size = sum(memoryview(raw).nbytes for raw in one.decision.request.members.values())
    monkeypatch.setattr(replay, limit, value * size if limit == "HELD_BYTES" else value)
    for _ in range(2):
        one.results.clear()
        for number in range(10):
            one.begin("ab"[number % 2])
        assert one.loaded.held == begun
        await one.end()
        results = [result for _, result in one.results]
        assert (results.count("same"), results.count(DROPPED)) == (begun, 10 - begun)


async def test_a_subject_that_hangs_takes_no_other_ones_room():
    """So many replays of one subject are under way; the others go on."""
    one = Replaying()
    for _ in range(REPLAYS_OF_ONE + 3):
        one.begin("hangs")
    one.begin("other")
    assert (one.loaded.held, one.results) == (REPLAYS_OF_ONE + 1, [("hangs", DROPPED)] * 3)
    await one.end()


async def test_a_request_that_is_larger_than_all_the_room_is_dropped():
    """Nothing that big is ever stored; to call policies with it again would cost more than it is worth."""
    one = Replaying(on=request({"metadata": {"name": "p", "labels": {}}, "data": "x" * HELD_BYTES}))
    one.begin()
    assert (one.loaded.held, one.results) == (0, [("a", DROPPED)])


def test_the_bounds_leave_room_for_each_other():
    """One subject's share of the room is a part of it, and an update of the largest object that is stored fits."""
    assert REPLAYS_OF_ONE < REPLAYS
    assert HELD_BYTES > 2 * 1_572_864


async def test_stopping_breaks_off_what_is_under_way_and_begins_nothing():
    """A gateway that drains replays nothing, and what it broke off has no result."""
    one = Replaying()
    one.begin()
    one.replays.stop()
    one.begin()
    await one.end()
    assert one.results == []


async def test_an_error_of_ours_is_logged_and_counted(logs):
    """It ends one replay, and nothing else."""
    one = Replaying()
    one.begin(work=lambda replay: 1 / 0)
    await one.end()
    assert one.results == [("a", FAILED)]
    assert [entry["log_level"] for entry in logs] == ["error"]


async def test_what_there_is_nothing_of_to_replay_is_not_counted():
    """The configuration may have changed since."""

    async def nothing(replay):
        return None

    one = Replaying()
    one.begin(work=nothing)
    await one.end()
    assert one.results == []


async def test_each_turn_has_the_object_before_and_after_it():
    """What one policy left is what the next one saw; a request whose object is unchanged keeps its very bytes."""
    change = patch({"op": "remove", "path": "/metadata/labels/a"})
    chain = [policy(name, index=index) for index, name in enumerate("abc")]
    decision, _ = decide(chain, {"a": Allow(), "b": label("a"), "c": change})
    seen = []

    async def look(one):
        seen.extend((turn.before["metadata"]["labels"], turn.after["metadata"]["labels"]) for turn in one.turns())
        first, second, _ = one.turns()
        assert one.request(first.after) is decision.request
        assert one.request(second.after).object == second.after
        return "same"

    replays, results = Replays(Configuration), []
    replays.begin("a", decision, look, results.append)
    await replays.idle()
    assert (seen, results) == ([({}, {}), ({}, {"a": "1"}), ({"a": "1"}, {})], ["same"])
