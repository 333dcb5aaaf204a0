"""Connections have a maximum age, and only a reply ends them: kube-apiserver may use an idle one at any moment."""

import asyncio
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.serving.connection import Connections
from gateway.serving.limits import Limits
from gateway.telemetry.table import CONNECTIONS_ENDED, DRAIN, MAX_AGE
from tests.serving.test_http_server import post_head

HOUR = 3600.0


class Ended:
    """Counts the connections that replies ended, by reason."""

    def __init__(self, front):
        self.reasons = []
        front._events = self

    def count(self, metric, label):
        if metric is CONNECTIONS_ENDED:
            self.reasons.append(label)


@pytest.fixture
def send(answered):
    def post(connection, path="/mutate"):
        connection.sendall(post_head("Content-Length: 2", target=path) + b"{}")
        return answered(connection)

    return post


def age(served, seconds):
    """Let this time pass for all connections."""

    def pass_by():
        for connection in served.front._connections.connections:
            connection._expires -= seconds

    served.loop.call(pass_by)


async def _new_connections(max_age, number):
    connections = Connections(None, limits=Limits(), note=None, max_age=max_age)
    connections._sweeper.cancel()
    return asyncio.get_running_loop().time(), [connections() for _ in range(number)]


@pytest.mark.property
@given(max_age=st.floats(1, 1e6), share=st.floats(0, 2))
def test_the_maximum_age_holds_to_a_tenth(max_age, share):
    """No connection expires before nine tenths of the age, and each has expired after eleven."""
    began, (connection,) = asyncio.run(_new_connections(max_age, 1))
    connection._loop = SimpleNamespace(time=lambda: began + share * max_age)
    if share < 0.899:
        assert not connection.is_expired
    elif share > 1.101:
        assert connection.is_expired


async def test_connections_of_one_moment_expire_one_after_the_other():
    """Those that an API server opens together are not replaced together: few share a hundredth of the age."""
    began, connections = await _new_connections(100.0, 500)
    moments = [int(connection._expires - began) for connection in connections]
    assert len(set(moments)) > 15
    assert max(map(moments.count, moments)) < 100


def test_a_connection_serves_until_its_age(serve, send):
    """Before, no reply ends it; then the next one does, a refusal too."""
    served = serve(max_connection_age=HOUR)
    ended = Ended(served.front)
    first, second = served.tls(), served.tls()
    for connection in (first, second):
        assert send(connection)[1]["Connection"] is None
    age(served, HOUR / 2)
    for connection in (first, second):
        assert send(connection)[1]["Connection"] is None
    assert ended.reasons == []
    age(served, HOUR)
    for connection, path, status in ((first, "/mutate", 200), (second, "/nowhere", 404)):
        replied, headers, _ = send(connection, path)
        assert (replied, headers["Connection"]) == (status, "close")
        assert connection.recv(1) == b""
    assert ended.reasons == [MAX_AGE, MAX_AGE]


def test_an_idle_connection_is_never_ended_for_its_age(serve, send):
    """However old, it is there for the client's next request."""
    served = serve(max_connection_age=HOUR, header_seconds=0.02)
    idle = served.tls()
    send(idle)
    age(served, 10 * HOUR)
    # The sweep, which ends what is overdue, has come by several times.
    sweeps = []
    served.front._connections._sweep_every = 0.001
    sweep = served.front._connections._sweep
    served.front._connections._sweep = lambda: (sweeps.append(1), sweep())
    served.until(lambda: len(sweeps) > 3)
    assert served.front.connections == 1
    assert send(idle)[0] == 200


def test_a_drain_is_counted_as_such(serve, send):
    """Whatever the age of the connection that it ends."""
    served = serve(max_connection_age=HOUR)
    ended = Ended(served.front)
    connection = served.tls()
    served.until(lambda: served.front.connections == 1)
    age(served, 2 * HOUR)
    served.loop.call(served.front.begin_drain)
    assert send(connection)[1]["Connection"] == "close"
    assert ended.reasons == [DRAIN]
