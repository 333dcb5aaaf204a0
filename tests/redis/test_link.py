"""A link connects again until its work is done, and leaves no client open."""

import asyncio

import pytest

from gateway.redis import link as module
from gateway.redis.link import PAUSE_SECONDS, SETTLED_SECONDS, BrokenError, Link


class Client:
    """A client that counts how often it is closed."""

    def __init__(self):
        self.closed = 0

    async def aclose(self):
        self.closed += 1


class World:
    """A link whose work ends as the test decides; ``pauses`` are those that it made, ``now`` is its clock."""

    def __init__(self, monkeypatch, *ends):
        self.now = 0.0
        self.clients, self.pauses, self.losses = [], [], []
        self._ends = list(ends)
        sleep = asyncio.sleep

        async def pause(seconds):
            self.pauses.append(seconds)
            await sleep(0)

        monkeypatch.setattr(module.asyncio, "sleep", pause)
        monkeypatch.setattr(module, "monotonic", lambda: self.now)
        self.link = Link(
            connect=self._connect,
            opened=self._opened,
            work=self._work,
            lost=lambda error, was_up: self.losses.append((str(error), was_up)),
            seconds=1.0,
        )

    async def _connect(self):
        self.clients.append(Client())
        return self.clients[-1]

    async def _opened(self, client):
        if self._ends[:1] == ["refused"]:
            self._ends.pop(0)
            raise ConnectionRefusedError("refused")
        return client

    async def _work(self, client):
        end = self._ends.pop(0)
        if end == "forever":
            await asyncio.Event().wait()
        if isinstance(end, float):
            self.now += end
            raise BrokenError("broken")


async def test_pauses_grow_until_it_has_been_up_for_a_while(monkeypatch):
    """Whether it could not connect or was lost soon; they have an end, and begin anew."""
    world = World(monkeypatch, *["refused"] * 4, *[0.0] * 3, SETTLED_SECONDS + 1, 0.0, "done")
    await world.link.run()
    first, longest = PAUSE_SECONDS
    assert world.pauses == [first, 2 * first, 4 * first, 8 * first, 16 * first, longest, longest, first, 2 * first]
    assert world.losses == [("refused", False)] * 4 + [("broken", True)] * 5


async def test_each_attempt_has_a_client_of_its_own_that_is_closed(monkeypatch):
    """Where it failed, where it was lost, and where the work is done."""
    world = World(monkeypatch, "refused", 0.0, "done")
    await world.link.run()
    assert [client.closed for client in world.clients] == [1, 1, 1]


async def test_it_says_why_it_is_down(monkeypatch):
    """In words that may be logged; nothing while it is up."""
    world = World(monkeypatch, "refused", "forever")
    world.link.start()
    await asyncio.wait_for(_until(lambda: world.link.is_up), 60)
    assert world.link.why == ""
    await world.link.close()
    world = World(monkeypatch, 0.0, "refused", "forever")
    whys = []
    world.link._lost = lambda *_: whys.append(world.link.why)
    world.link.start()
    await asyncio.wait_for(_until(lambda: world.link.is_up and len(whys) == 2), 60)
    assert whys == ["broken", "ConnectionRefusedError"]
    await world.link.close()


async def test_the_receiver_of_a_loss_may_end_it(monkeypatch):
    """Then nothing is connected to any more."""
    world = World(monkeypatch, "refused", "done")
    world.link._lost = lambda *_: world.link.end()
    await world.link.run()
    assert len(world.clients) == 1


@pytest.mark.parametrize("turns", range(6))
async def test_closed_at_any_moment_it_leaves_no_client_open(monkeypatch, turns):
    """While it connects, works, or pauses; what is done last has a client of its own, if it was up."""
    world = World(monkeypatch, 0.0, "forever")
    world.link.start()
    for _ in range(turns):
        await _turn()
    left = []

    async def leave(client):
        left.append(client)

    was_up = world.link.is_up
    await world.link.close(leave)
    assert bool(left) is was_up
    assert [client.closed for client in world.clients] == [1] * len(world.clients)


async def _turn():
    future = asyncio.get_running_loop().create_future()
    asyncio.get_running_loop().call_soon(future.set_result, None)
    await future


async def _until(condition):
    while not condition():
        await _turn()
