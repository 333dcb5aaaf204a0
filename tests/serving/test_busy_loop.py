"""What the server makes of clients that came while its loop was busy: their time has run, and some have gone."""

import contextlib
import socket
import ssl
import threading
from time import monotonic

import pytest

from gateway.serving.refusals import Refusal
from gateway.serving.socket_state import state_of
from tests.serving.conftest import WAIT_SECONDS

pytestmark = pytest.mark.skipif(not hasattr(socket, "TCP_INFO"), reason="this system has no TCP_INFO")

REQUEST = (
    b"POST /mutate?timeout=10s HTTP/1.1\r\nHost: g\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}"
)
WAITED_SECONDS = 0.05


@contextlib.contextmanager
def busy(served):
    """While the loop is held by one call."""
    held, free = threading.Event(), threading.Event()

    def hold():
        held.set()
        free.wait(WAIT_SECONDS)

    served.loop.loop.call_soon_threadsafe(hold)
    assert held.wait(WAIT_SECONDS)
    try:
        yield
    finally:
        free.set()


def hello(served):
    """The first bytes of a TLS client."""
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    with pytest.raises(ssl.SSLWantReadError):
        served.client_context.wrap_bio(incoming, outgoing, server_hostname="localhost").do_handshake()
    return outgoing.read()


def pass_time(since):
    while monotonic() < since + WAITED_SECONDS:
        """The kernel's clock is what is looked at: it is not to be faked."""


def begun(served):
    """When the review that the judge got last had begun."""
    served.until(lambda: served.judge.called)
    return served.judge.called.pop()[2]


def test_the_budget_begins_when_the_request_arrives(serve):
    """A request on a kept connection that waits in the socket has less time left."""
    served = serve()
    connection = served.tls()
    connection.sendall(REQUEST)
    begun(served)
    connection.recv(65536)
    with busy(served):
        connection.sendall(REQUEST)
        sent = monotonic()
        pass_time(sent)
    assert begun(served) < sent + WAITED_SECONDS / 2


def test_the_budget_of_a_first_request_begins_with_the_handshake(serve):
    """The client has dialed for it, and its time runs."""
    served = serve()
    with busy(served):
        connection = served.raw()
        dialed = monotonic()
        client = threading.Thread(target=lambda: send_over_tls(served, connection))
        client.start()
        pass_time(dialed)
    client.join(WAIT_SECONDS)
    assert begun(served) < dialed + WAITED_SECONDS


def send_over_tls(served, connection):
    with served.client_context.wrap_socket(connection, server_hostname="localhost") as client:
        client.sendall(REQUEST)
        client.recv(65536)


def test_an_idle_connection_costs_no_budget(serve):
    """The time between two requests is the client's own."""
    served = serve()
    connection = served.tls()
    connection.sendall(REQUEST)
    begun(served)
    connection.recv(65536)
    pass_time(monotonic())
    sending = monotonic()
    connection.sendall(REQUEST)
    # The kernel counts in jiffies, of 10 ms at most.
    assert begun(served) > sending - 0.02


def test_no_handshake_is_made_for_a_client_that_has_gone(serve, logs):
    """It sent its first bytes and closed while the loop was busy; a handshake would take a millisecond."""
    served = serve()
    begin = hello(served)
    with busy(served):
        for _ in range(5):
            client = socket.create_connection(served.address[:2], timeout=WAIT_SECONDS)
            client.sendall(begin)
            client.close()
    served.until(lambda: len(served.events) == 5)
    assert served.events == [("refused", Refusal.HANGUP)] * 5
    assert logs == []
    assert served.is_well()


def test_silent_connections_make_room_for_others(serve):
    """Beyond the limit, the oldest that has sent nothing is closed, and one in its handshake only without such."""
    served = serve(handshakes=2)
    silent, half = served.raw(), served.raw()
    half.sendall(hello(served)[:20])
    served.until(lambda: len(served.front._listener._tasks) == 1)
    assert served.is_well()
    assert silent.recv(1) == b""
    assert served.is_well()
    assert ("limit", "handshakes") in served.events
    half.setblocking(False)
    with pytest.raises(BlockingIOError):
        half.recv(1)
    others = [served.raw() for _ in range(2)]
    for other in others:
        other.sendall(hello(served)[:20])
    half.settimeout(WAIT_SECONDS)
    assert half.recv(1) == b""


def test_what_is_no_tcp_connection_is_open_and_has_not_waited():
    """A socket pair of the parent process, as with several processes; and a socket that was closed."""
    ours, theirs = socket.socketpair()
    with ours, theirs:
        assert state_of(ours) == (state := state_of(theirs))
        assert (state.is_open, state.waited) == (True, 0.0)
    assert not state_of(ours).is_open
