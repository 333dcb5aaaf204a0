"""Leader election in a time that jumps."""

import asyncio
import contextlib
import random
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.cluster.election import LEASE_SECONDS, RENEW_SECONDS, RETRY_SECONDS, LeaderElection, lease_path
from tests.cluster.fake_api import FakeApi
from tests.cluster.virtual_time import run

PATH = lease_path("gateways", "registration")

FIRST_LEADS = LEASE_SECONDS + 2 * RETRY_SECONDS
"""So long after its start the first candidate leads at the latest."""


class Replicas:
    """Candidates for one lease. ``leading`` are those whose work runs now; ``terms`` all that ever ran."""

    def __init__(self):
        self.api = FakeApi()
        self.leading = []
        self.terms = []
        self.conflicts = []
        self.tasks = {}
        self.clients = {}
        self.elections = {}

    def start(self, name, client=None, skew=0.0):
        async def lead():
            self.leading.append(name)
            self.terms.append(name)
            if len(self.leading) > 1:
                self.conflicts.append(tuple(self.leading))
            try:
                await asyncio.Event().wait()
            finally:
                self.leading.remove(name)

        client = self.clients[name] = client or self.api.client()
        wall = datetime(2026, 1, 1, tzinfo=UTC) + timedelta(seconds=skew)
        loop = asyncio.get_running_loop()
        election = LeaderElection(
            client,
            namespace="gateways",
            name="registration",
            identity=name,
            now=lambda: wall + timedelta(seconds=loop.time()),
        )
        self.elections[name] = election
        self.tasks[name] = asyncio.create_task(election.run(lead))

    async def stop(self, *names):
        for name in names or tuple(self.tasks):
            task = self.tasks.pop(name)
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)


@contextlib.asynccontextmanager
async def replicas():
    made = Replicas()
    try:
        yield made
    finally:
        await made.stop()


@contextlib.asynccontextmanager
async def leader_and_candidate(skew=0.0):
    """``a`` leads, and ``b`` has seen that."""
    async with replicas() as both:
        both.start("a", skew=skew)
        await asyncio.sleep(FIRST_LEADS)
        both.start("b")
        await asyncio.sleep(RETRY_SECONDS)
        assert both.leading == ["a"]
        yield both


def away():
    return 0.0, "before", 0.0


def test_one_of_three_leads():
    """The others wait."""

    async def scenario():
        async with replicas() as all_of_them:
            for name in "abc":
                all_of_them.start(name)
            await asyncio.sleep(100)
            assert len(all_of_them.terms) == 1
            assert all_of_them.leading == all_of_them.terms

    run(scenario())


def test_a_leader_that_stops_is_replaced_at_the_next_look():
    """It releases the lease, after its work has ended."""

    async def scenario():
        async with leader_and_candidate() as both:
            await both.stop("a")
            assert both.leading == []
            await asyncio.sleep(RETRY_SECONDS + 0.1)
            assert both.leading == ["b"]

    run(scenario())


def test_a_leader_that_is_cut_off_stops_before_another_leads():
    """It stops RENEW_SECONDS after its last renewal; another replica leads LEASE_SECONDS after it saw that."""

    async def scenario():
        async with leader_and_candidate() as both:
            client = both.clients["a"]
            client.faults = away
            await asyncio.sleep(RENEW_SECONDS)
            assert both.leading == []
            assert "connection refused" in both.elections["a"].problem
            await asyncio.sleep(LEASE_SECONDS - RENEW_SECONDS + RETRY_SECONDS)
            assert both.leading == ["b"]
            client.faults = lambda: (0.0, None, 0.0)
            await asyncio.sleep(100)
            assert both.leading == ["b"]
            assert both.conflicts == []

    run(scenario())


def test_a_request_that_hangs_ends_the_leaders_work_in_time():
    """However long the client would wait for the response."""

    async def scenario():
        async with leader_and_candidate() as both:
            both.clients["a"].faults = lambda: (1000.0, None, 0.0)
            await asyncio.sleep(RENEW_SECONDS + 0.1)
            assert both.leading == []

    run(scenario())


@pytest.mark.parametrize("skew", [-1e6, 1e6])
def test_clocks_may_differ(skew):
    """The times in the Lease are never compared with a clock."""

    async def scenario():
        async with leader_and_candidate(skew) as both:
            await asyncio.sleep(100)
            assert both.terms == ["a"]
            both.tasks["a"].cancel()
            await asyncio.sleep(RETRY_SECONDS + 0.1)
            assert both.terms == ["a", "b"]

    run(scenario())


def test_a_lease_that_is_deleted_is_created_again():
    """Its holder leads on, and keeps its annotations: what they say is not lost."""

    async def scenario():
        async with leader_and_candidate() as both:
            await both.elections["a"].annotate({"example.com/note": "kept"})
            await asyncio.sleep(3)
            del both.api.objects[PATH]
            await asyncio.sleep(LEASE_SECONDS + 10)
            assert both.terms == ["a"]
            assert both.api.objects[PATH]["metadata"]["annotations"] == {"example.com/note": "kept"}

    run(scenario())


def test_a_candidate_that_finds_no_lease_waits_for_a_leader_that_it_cannot_see():
    """The Lease was deleted a moment ago: its holder, cut off, leads for up to RENEW_SECONDS yet."""

    async def scenario():
        async with leader_and_candidate() as both:
            both.clients["a"].faults = away
            await both.stop("b")
            del both.api.objects[PATH]
            both.start("c")
            await asyncio.sleep(RENEW_SECONDS)
            assert both.terms == ["a"]
            await asyncio.sleep(FIRST_LEADS)
            assert both.leading == ["c"]
            assert both.conflicts == []

    run(scenario())


def test_a_lease_without_a_holder_that_was_created_again_counts_as_another():
    """``c`` reads two Leases that are equal but for their uid, and waits for the second one's time."""

    async def scenario():
        async with replicas() as some:
            some.start("c")
            await asyncio.sleep(1)
            for _ in range(3):
                await asyncio.sleep(LEASE_SECONDS - RETRY_SECONDS)
                del some.api.objects[PATH]
            assert some.terms == []
            await asyncio.sleep(FIRST_LEADS)
            assert some.leading == ["c"]

    run(scenario())


def test_work_that_ends_by_an_error_begins_again():
    """An error inside the gateway does not end the election."""

    async def scenario():
        begun = []

        async def lead():
            begun.append(asyncio.get_running_loop().time())
            raise ValueError

        election = LeaderElection(FakeApi().client(), namespace="n", name="l", identity="a")
        task = asyncio.create_task(election.run(lead))
        await asyncio.sleep(60)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        assert 5 < len(begun) < 60

    run(scenario())


async def something_happens(some, rng, name, faults):
    """To a candidate, which has seen the Lease or not, or to the Lease: at any time, and again before it was read."""
    action = rng.random()
    if action < 0.4:
        if action < 0.2:
            name = f"new-{name}"
        if name in some.tasks:
            await some.stop(name)
        some.start(name, some.api.client(faults))
    elif action < 0.7:
        for _ in range(rng.randint(1, 3)):
            some.api.objects.pop(PATH, None)
            await asyncio.sleep(rng.uniform(0, 3))


@pytest.mark.property
@given(seed=st.integers(0, 2**32), candidates=st.integers(2, 4), share=st.floats(0, 0.9))
@settings(
    deadline=None, max_examples=settings.default.max_examples // 4
)  # a case is 300 seconds of up to eight replicas
def test_never_do_two_lead(seed, candidates, share):
    """Whatever happens to requests and clocks, to candidates, and to the Lease; and afterwards, one does."""
    rng = random.Random(seed)

    def faults():
        if rng.random() > share:
            return rng.random() / 10, None, 0.0
        return rng.choice((0, 3, 12, 40)), rng.choice((None, "before", "after")), rng.choice((0, 3, 12, 40))

    async def scenario():
        nonlocal share
        async with replicas() as some:
            for index in range(candidates):
                some.start(str(index), some.api.client(faults), skew=rng.choice((0, -1e5, 1e5)))
            for _ in range(12):
                await asyncio.sleep(rng.uniform(0, 30))
                await something_happens(some, rng, str(rng.randrange(candidates)), faults)
            share = 0
            # The slowest request takes 80 seconds.
            await asyncio.sleep(80 + 2 * FIRST_LEADS)
            assert len(some.leading) == 1
            assert some.conflicts == []

    run(scenario())
