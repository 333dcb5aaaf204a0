"""Lookups in the cluster, of a Kubernetes API that answers when the test says so."""

import asyncio

import pytest

from gateway.cel.authorization import Authorization, AuthorizationCheck
from gateway.cluster.errors import ApiError
from gateway.cluster.facts import MAX_LOOKUPS, ClusterFacts
from gateway.engine.steps import AuthorizationLookup, NamespaceLookup
from gateway.matching.outcomes import Unknown
from gateway.review.request import UserInfo
from gateway.telemetry.table import CLUSTER_LOOKUPS
from tests.cluster.virtual_time import run


class HeldApi:
    """A KubernetesClient. ``requests`` are those that were sent: method, path, and a future for the response."""

    def __init__(self):
        self.requests = []

    async def get(self, path, **_):
        return await self.send("GET", path)

    async def pages(self, _path, **_):
        await asyncio.Event().wait()
        yield

    async def send(self, method, path, _body=None):
        response = asyncio.get_running_loop().create_future()
        self.requests.append((method, path, response))
        return await response


class World:
    """Facts about a held API, what was found so far, and the results that were counted: an Events."""

    def __init__(self):
        self.api, self.found, self.counted = HeldApi(), [], []
        self.facts = ClusterFacts(self.api, self)

    def count(self, metric, kind, result):
        assert (metric, kind in {"namespace", "authorization"}) == (CLUSTER_LOOKUPS, True)
        self.counted.append(result)

    async def look_up(self, *lookups):
        for each in lookups:
            self.facts.look_up(each, self.found.append)
        await self.settle()

    async def answer(self, *responses):
        """Answer the first requests that wait, with an object or an error."""
        waiting = [request[-1] for request in self.api.requests if not request[-1].done()]
        for future, response in zip(waiting, responses, strict=False):
            if isinstance(response, Exception):
                future.set_exception(response)
            else:
                future.set_result(response)
        await self.settle()

    async def settle(self):
        """In a time that jumps, this ends when nothing else can go on."""
        await asyncio.sleep(1)


def namespace(name="a"):
    return NamespaceLookup(id=0, namespace=name)


def authorization():
    return AuthorizationLookup(id=0, check=AuthorizationCheck(path="/metrics", verb="get"), user=UserInfo())


def labelled(**labels):
    return {"metadata": {"labels": labels}}


def missing(reason="NotFound"):
    return ApiError("GET /api/v1/namespaces/a", 404, reason, "away")


async def _lookups_of_a_namespace_share_a_get():
    world = World()
    await world.look_up(namespace("a"), namespace("b"), namespace("a"), namespace("a"))
    assert [request[:2] for request in world.api.requests] == [
        ("GET", "/api/v1/namespaces/a"),
        ("GET", "/api/v1/namespaces/b"),
    ]
    await world.answer(labelled(team="a"))
    assert world.found == [{"team": "a"}] * 3
    await world.answer(labelled())
    assert world.found[3:] == [{}]
    assert world.counted == ["found", "found"]
    await world.look_up(namespace("a"))
    assert len(world.api.requests) == 3


def test_lookups_of_a_namespace_share_a_get():
    """Those that begin while one is under way get its result; the next one asks again."""
    run(_lookups_of_a_namespace_share_a_get())


async def _shared(response):
    world = World()
    await world.look_up(namespace(), namespace())
    await world.answer(response)
    assert len(world.api.requests) == 1
    return world


def test_a_namespace_that_does_not_exist():
    """It is known not to exist, by all who share the GET."""
    world = run(_shared(missing()))
    assert (world.found, world.counted) == ([None, None], ["found"])


@pytest.mark.parametrize(
    ("response", "why"),
    [
        (missing(""), "Kubernetes API: GET /api/v1/namespaces/a: away; check the API server"),
        ({"kind": "Status"}, "the Kubernetes API answered what cannot be read: KeyError"),
    ],
    ids=["error", "unreadable"],
)
def test_an_error_reaches_all_who_share_it(response, why):
    """No lookup waits for ever: each gets the reason."""
    world = run(_shared(response))
    assert [type(fact) for fact in world.found] == [Unknown, Unknown]
    assert world.found[0].message.startswith(why)
    assert world.counted == ["failed"]


async def _lookups_are_limited():
    world = World()
    await world.look_up(*(namespace(f"n{number}") for number in range(MAX_LOOKUPS)), namespace("n0"))
    assert len(world.api.requests) == MAX_LOOKUPS
    assert world.found == []
    await world.look_up(authorization(), namespace("another"))
    assert len(world.api.requests) == MAX_LOOKUPS
    assert [type(fact) for fact in world.found] == [Unknown, Unknown]
    assert world.found[0].message.startswith(f"{MAX_LOOKUPS} lookups in the Kubernetes API are under way")
    assert world.counted == ["limited", "limited"]
    await world.answer(labelled())
    assert world.found[2:] == [{}, {}]
    await world.look_up(namespace("another"))
    assert len(world.api.requests) == MAX_LOOKUPS + 1


def test_lookups_are_limited():
    """One above the limit is not sent and fails with the limit, unless it shares a GET. One that ends makes room."""
    run(_lookups_are_limited())


async def _a_refused_namespace_can_be_looked_up_later():
    world = World()
    await world.look_up(*(authorization() for _ in range(MAX_LOOKUPS)), namespace())
    await world.answer({"status": {"allowed": True, "reason": "admin"}})
    assert world.found[1:] == [Authorization(allowed=True, reason="admin", error="")]
    await world.look_up(namespace())
    await world.answer(*[{"status": {}}] * (MAX_LOOKUPS - 1), labelled(team="a"))
    assert world.found[-1] == {"team": "a"}


def test_a_refused_namespace_can_be_looked_up_later():
    """A lookup above the limit leaves nothing behind; authorizations are never shared."""
    run(_a_refused_namespace_can_be_looked_up_later())


async def _ends_with_its_run():
    world = World()
    watch = asyncio.create_task(world.facts.run())
    await world.look_up(namespace(), authorization())
    watch.cancel()
    await asyncio.gather(watch, return_exceptions=True)
    await world.settle()
    assert {method for method, _, response in world.api.requests if response.cancelled()} == {"GET", "POST"}
    assert world.found == []


def test_lookups_end_with_the_watch():
    """When the gateway stops, what is under way is cancelled, and no review hears of it."""
    run(_ends_with_its_run())
