"""One address: its connections, which of them is next, and their successors. And several addresses, as names change."""

import asyncio
from time import monotonic

import pytest

from gateway.transports.credentials import CredentialsError
from gateway.transports.descriptions import Descriptions
from gateway.transports.grpc import endpoint_set as module
from gateway.transports.grpc.addresses import ResolveError
from gateway.transports.grpc.connection import State
from gateway.transports.grpc.endpoint import MOST_BREAKERS, ROTATION_SECONDS, SUCCESSOR_TIMEOUT_FACTOR, Endpoint
from gateway.transports.limits import TransportLimits
from tests.integration.running import until
from tests.integration.workers import description
from tests.transports.grpc.endpoints import SAID, Called, Played, played
from tests.transports.reaching import judge

OTHER = Descriptions().of(description("judge", version="2"))
LIMITS = TransportLimits(worker_connection_age_seconds=100.0, worker_connect_seconds=1.0, worker_circuit_calls=1)


class World:
    """A replica with played connections. ``made`` and ``retired`` are those, in order."""

    def __init__(self, count, *, states=()):
        self.made, self.retired, self.changes = [], [], []
        self.states = list(states)
        self.error = None
        self.now = 1.0
        self.replica = Endpoint(
            "a",
            limits=LIMITS,
            dial=self._dial,
            retire=self.retired.append,
            circuit_changed=lambda *how: self.changes.append(how),
        )
        self.replica.fill(count)

    def _dial(self, address):
        if self.error is not None:
            raise self.error
        self.made.append(Played(address))
        return self.made[-1]

    def pick(self, fits=None):
        """The next one, when the turn of the last is over."""
        self.now += ROTATION_SECONDS
        return self.replica.pick(fits, self.now)

    def picks(self, count, fits=None):
        return [self.pick(fits) for _ in range(count)]


def test_connections_take_turns():
    """Each of them is picked as often as the others."""
    world = World(3)
    picked = world.picks(9)
    assert [picked.count(connection) for connection in world.made] == [3, 3, 3]


def test_calls_of_one_moment_go_over_one_connection():
    """So that they travel together; the next moment is the next one's."""
    world = World(3)
    first = world.pick()
    assert {world.replica.pick(None, world.now + ROTATION_SECONDS * 0.9) for _ in range(5)} == {first}
    assert world.pick() is not first


def test_a_connection_that_is_behind_loses_its_turn():
    """A connection that writes a large message, or is not read, delays no other call."""
    world = World(2)
    first = world.pick()
    first.behind = True
    second = world.replica.pick(None, world.now)
    assert second is not first
    assert world.replica.pick(None, world.now) is second


def test_who_may_not_be_called_is_not_picked():
    """Not described, not serving or on its way out."""
    world = World(3)
    first, second, third = world.made
    first.state, second.is_serving = State.DESCRIBING, False
    world.replica.update()
    assert set(world.picks(4)) == {third}
    third.is_draining = True
    world.replica.update()
    assert not world.replica.can_be_called
    assert world.pick() is None


def test_only_a_fitting_description_is_picked():
    """While an address has two (behind it are several replicas), calls go where they fit; perhaps nowhere."""
    world = World(2)
    world.made[0].description = OTHER
    assert set(world.picks(4, frozenset({SAID}))) == {world.made[1]}
    assert set(world.picks(4, frozenset({OTHER}))) == {world.made[0]}
    assert world.pick(frozenset()) is None


def test_an_old_connection_stays_until_its_successor_may_be_called():
    """So that no moment is without one; then it is retired, and the new one is young."""
    world = World(1)
    now = monotonic()
    world.replica.renew(now)
    assert len(world.made) == 1
    world.replica.renew(now + 111)
    old, young = world.made
    young.state = State.CONNECTING
    world.replica.update()
    assert (world.pick(), world.retired) == (old, [])
    young.state = State.READY
    world.replica.update()
    assert (world.pick(), world.retired) == (young, [old])
    world.replica.renew(now + 60)
    assert len(world.made) == 2


def test_connections_are_not_replaced_all_at_once():
    """A tenth more or less."""
    now = monotonic()
    world = World(50)
    world.replica.renew(now + 89.9)
    assert len(world.made) == 50
    world.replica.renew(now + 100)
    assert 50 < len(world.made) < 100


def test_a_successor_that_does_not_become_ready_is_made_anew():
    """After some patience; what there is stays."""
    world = World(1)
    now = monotonic() + 111
    world.replica.renew(now)
    world.made[1].state = State.CONNECTING
    world.replica.renew(now + SUCCESSOR_TIMEOUT_FACTOR - 0.1)
    assert len(world.made) == 2
    world.replica.renew(now + SUCCESSOR_TIMEOUT_FACTOR)
    assert world.retired == [world.made[1]]
    assert world.replica.successors == (world.made[2],)
    assert world.replica.connections == (world.made[0],)


def test_expired_connections_are_due_at_once():
    """Theirs are certificates that have been replaced; a successor that was made with these is given up as well."""
    world = World(2)
    now = monotonic()
    world.replica.renew(now + 111)
    stale = world.replica.successors
    world.replica.expire()
    assert world.retired == list(stale)
    world.replica.renew(now)
    assert len(world.replica.successors) == 2
    world.replica.update()
    assert set(world.replica.connections).isdisjoint(stale)


def test_what_cannot_be_made_leaves_what_there_is():
    """Unusable certificates are reported, and tried again."""
    world = World(1)
    world.error = CredentialsError("no such file")
    for _ in range(2):
        with pytest.raises(CredentialsError):
            world.replica.renew(monotonic() + 111)
    assert world.pick() is world.made[0]


def test_fewer_connections_are_wanted():
    """Where a name has more addresses, each has fewer connections; what is dropped is retired, successors too."""
    world = World(3)
    world.replica.renew(monotonic() + 111)
    for successor in world.replica.successors:
        successor.state = State.CONNECTING
    world.replica.fill(1)
    assert len(world.replica.connections) == 1
    assert len(world.retired) == 4
    world.replica.close()
    assert sorted(map(id, world.retired)) == sorted(map(id, world.made))
    assert world.pick() is None


def test_circuits_are_of_one_policy_each():
    """And the first verdict closes one."""
    world = World(1)
    world.replica.breaker("fine").answered(1.0, 1.0)
    world.replica.breaker("bad").failed(1.0)
    assert world.replica.open_circuits == {"bad"}
    world.replica.breaker("bad").answered(3.0, 2.0)
    assert world.replica.open_circuits == set()
    assert world.changes == [("a", "bad", True), ("a", "bad", False)]


def test_the_number_of_circuits_is_bounded():
    """Those of removed policies are forgotten, and so is that they were open."""
    world = World(1)
    for number in range(MOST_BREAKERS + 1):
        world.replica.breaker(str(number)).failed(1.0)
    assert world.replica.open_circuits == {str(MOST_BREAKERS)}


# ----------------------------------------------------------------------------------------------- many of them


async def test_addresses_take_turns():
    """Round robin over all of them."""
    async with played("a", "b", "c") as endpoints:
        for _ in range(9):
            Called(endpoints)
        assert [len(place.attempts) for place in endpoints.made] == [3, 3, 3]


async def test_calls_about_the_same_document_go_the_same_way():
    """One after another they travel together; the next document goes to the next."""
    async with played("a", "b") as endpoints:
        for _ in range(2):
            first = Called(endpoints, judge("one"))
            for name in ("two", "three"):
                endpoints.worker.call(_about(first.call, name), lambda *_: None)
        assert [len(place.attempts) for place in endpoints.made] == [3, 3]


def _about(call, name):
    return type(call)(**{field: getattr(call, field) for field in call.__struct_fields__} | {"policy": judge(name)})


async def test_few_addresses_have_several_connections_each():
    """As many as are wanted, at least."""
    async with played("a", "b", worker_connections=3) as endpoints:
        assert sorted(place.address for place in endpoints.places) == ["a", "a", "b", "b"]


class Names:
    """A name whose addresses change. ``now`` may be an exception."""

    def __init__(self, *addresses):
        self.now = addresses
        self.called = 0

    async def __call__(self, target):
        self.called += 1
        if isinstance(self.now, Exception):
            raise self.now
        return self.now


@pytest.fixture
def quick(monkeypatch):
    """Names are looked up again soon."""
    monkeypatch.setattr(module, "RESOLVE_SECONDS", 0.001)
    monkeypatch.setattr(module, "CHECK_SECONDS", 0.001)


async def test_addresses_come_and_go(quick):
    """A new one is connected to; one that is gone is called no more, and closed when its calls have ended."""
    names = Names("a", "b")
    async with played("a", "b", resolver=names, worker_resolve_seconds=0.001) as endpoints:
        kept = next(place for place in endpoints.made if place.address == "b")
        names.now = ("b", "c")
        await until(lambda: {place.address for place in endpoints.places} == {"b", "c"})
        gone = next(place for place in endpoints.made if place.address == "a")
        await until(lambda: gone.is_closed)
        assert gone.is_draining
        assert not kept.is_draining
        before = len(gone.attempts)
        for _ in range(4):
            Called(endpoints)
        assert len(gone.attempts) == before
        assert endpoints.events.usable == 2


@pytest.mark.parametrize("error", [ResolveError("'labels.svc' cannot be resolved: no"), RuntimeError("ours")])
async def test_a_name_that_cannot_be_resolved_now_keeps_its_addresses(quick, log, error):
    """A resolver that is away takes nothing away."""
    names = Names("a", "b")
    async with played("a", "b", resolver=names, worker_resolve_seconds=0.001) as endpoints:
        names.now = error
        seen = names.called
        await until(lambda: names.called > seen + 2)
        assert len(endpoints.places) == 2
        Called(endpoints)
        assert len(endpoints.attempts()) == 1
        names.now = ("a",)
        await until(lambda: len(endpoints.places) == 1)
    if isinstance(error, ResolveError):
        assert [entry["event"] for entry in log].count("a worker's name has no addresses") == 1


async def test_a_lost_connection_looks_its_name_up_again(quick):
    """A lost worker may have another address already."""
    names = Names("a")
    async with played("a", resolver=names, worker_resolve_seconds=1e6) as endpoints:
        await until(lambda: names.called == 1)
        (place,) = endpoints.places
        place.state = State.CONNECTING
        endpoints.worker.changed(place)
        await until(lambda: names.called >= 2)


async def test_a_name_is_looked_up_until_the_lost_address_is_replaced(quick):
    """Cluster DNS may answer from its cache for a while."""
    names = Names("a")
    async with played("a", resolver=names, worker_resolve_seconds=1e6) as endpoints:
        (place,) = endpoints.places
        place.state = State.CONNECTING
        endpoints.worker.changed(place)
        await until(lambda: names.called >= 6)
        names.now = ("b",)
        await until(lambda: [each.address for each in endpoints.places] == ["b"])


async def test_calls_wait_for_a_name_that_is_being_resolved():
    """The first review of a gateway that has just started is judged."""
    resolved = asyncio.Event()

    async def resolve(target):
        await resolved.wait()
        return ("a",)

    async with played(resolver=resolve) as endpoints:
        called = Called(endpoints)
        resolved.set()
        await until(endpoints.attempts)
        assert called.answers == []


async def test_calls_do_not_wait_for_a_name_that_is_unknown(quick):
    """They fail at once, and say why."""
    names = Names()
    names.now = ResolveError("'labels.svc' cannot be resolved: no")
    async with played(resolver=names) as endpoints:
        await until(lambda: names.called)
        called = Called(endpoints)
        await until(lambda: called.answers)
        assert "'labels.svc' cannot be resolved: no" in called.answer.message


async def test_connections_are_made_anew_with_new_certificates(quick, log):
    """Each gets a successor, and no endpoint is without a connection meanwhile."""
    async with played("a", "b") as endpoints:
        before = endpoints.places
        endpoints.dialled.has_changed = True
        await until(lambda: len(endpoints.made) == 4)
        endpoints.worker._update()
        await until(lambda: set(endpoints.places).isdisjoint(before))
        await until(lambda: all(place.is_closed for place in before))


async def test_certificates_that_cannot_be_used_yet_are_tried_again(quick, log):
    """Until they can, calls fail by that name; then they are judged."""
    names = Names("a")
    async with played(resolver=names) as endpoints:
        endpoints.dialled.error = CredentialsError("tls.crt: no such file")
        await until(lambda: endpoints.worker.why == "tls.crt: no such file")
        endpoints.dialled.error = None
        await until(lambda: endpoints.places)
        Called(endpoints)
        assert len(endpoints.attempts()) == 1
