"""So many answers are received at a time, and no worker keeps another one from it."""

import asyncio

import pytest

from gateway.transports.answer_room import AnswerRoom
from gateway.transports.limits import TransportLimits
from tests.integration.process import WAIT_SECONDS

PLACES = 2


@pytest.fixture
def room():
    return AnswerRoom(TransportLimits(answer_bytes_in_flight=PLACES * 100 + 99, answer_message_bytes=100))


def entering(room, worker, seconds=WAIT_SECONDS):
    return asyncio.create_task(room.enter(worker, seconds))


async def turns(number=3):
    for _ in range(number):
        await asyncio.sleep(0)


def test_there_is_always_a_place():
    """Also where the budget is as small as it may be."""
    assert AnswerRoom(TransportLimits(answer_bytes_in_flight=1, answer_message_bytes=100)).places == 1


def test_the_default_has_six_places():
    assert AnswerRoom(TransportLimits()).places == 6


async def test_one_more_than_fit_waits_until_a_place_is_free(room):
    for _ in range(PLACES):
        assert await room.enter("a", 0.0)
    first, second = entering(room, "a"), entering(room, "a")
    await turns()
    assert not first.done()
    room.leave("a")
    assert await first
    assert not second.done()
    room.leave("a")
    assert await second
    assert room.taken == PLACES


async def test_who_has_none_gets_one_at_once(room):
    """Whatever another worker does with its places; its second one it must wait for."""
    for _ in range(PLACES):
        assert await room.enter("a", 0.0)
    assert await room.enter("b", 0.0)
    assert not await room.enter("b", 0.0)
    assert room.taken == PLACES + 1


async def test_a_free_place_goes_to_the_worker_with_the_fewest(room):
    """However long another one has waited."""
    for worker in ("a", "a", "b"):
        assert await room.enter(worker, 0.0)
    more, other = entering(room, "a"), entering(room, "b")
    await turns()
    room.leave("b")
    assert await other  # it has none, although all places are taken
    room.leave("a")
    await turns()
    assert not more.done()
    room.leave("b")
    assert await more


async def test_who_waited_in_vain_leaves_nothing(room):
    for _ in range(PLACES):
        assert await room.enter("a", 0.0)
    assert not await room.enter("a", 0.001)
    for _ in range(PLACES):
        room.leave("a")
    assert room.taken == 0
    assert await room.enter("a", 0.0)


async def test_who_is_cancelled_while_waiting_leaves_nothing(room):
    for _ in range(PLACES):
        assert await room.enter("a", 0.0)
    cancelled, following = entering(room, "a"), entering(room, "a")
    await turns()
    cancelled.cancel()
    await turns()
    room.leave("a")
    assert await following
    assert cancelled.cancelled()
    assert room.taken == PLACES


async def test_a_place_that_nobody_takes_any_more_goes_to_the_next(room):
    """Who is cancelled in the iteration in which it gets a place gives it back."""
    for _ in range(PLACES):
        assert await room.enter("a", 0.0)
    cancelled, following = entering(room, "a"), entering(room, "a")
    await turns()
    room.leave("a")
    cancelled.cancel()
    assert await following
    assert cancelled.cancelled()
    assert room.taken == PLACES


def test_as_many_calls_as_places_need_none(room):
    assert [room.begin_direct() for _ in range(PLACES + 1)] == [True] * PLACES + [False]
    room.end_direct()
    assert room.begin_direct()
    assert room.taken == 0
