"""``/livez``: answered whatever the event loop does, and by what the event loop does."""

import contextlib
import http.client
import socket
import threading
from types import SimpleNamespace

import pytest
from structlog.testing import capture_logs

from gateway.serving.admin import AdminListener
from gateway.serving.limits import Limits
from gateway.serving.liveness import Heartbeat, LivenessThread
from gateway.serving.processes.pages import Pages, Processes
from gateway.telemetry.metrics import Metrics
from tests.serving.conftest import WAIT_SECONDS


@pytest.fixture
def listen(loop):
    """Starts an admin listener, and gives its address."""
    started = []

    def start(**limits):
        async def metrics(*, openmetrics):
            del openmetrics
            return "text/plain", b"page\n"

        limits = Limits(shutdown_seconds=0.05, **limits)
        listener = AdminListener(checks=tuple, metrics=metrics, limits=limits)
        started.append(listener)
        return loop.run(listener.start("127.0.0.1", 0))

    yield start
    for listener in started:
        loop.run(listener.stop())


@contextlib.contextmanager
def busy(loop):
    """While one call holds the loop."""
    held, free = threading.Event(), threading.Event()

    def hold():
        held.set()
        free.wait(WAIT_SECONDS)

    loop.loop.call_soon_threadsafe(hold)
    assert held.wait(WAIT_SECONDS)
    try:
        yield
    finally:
        free.set()


def get(address, path="/livez", method="GET"):
    client = http.client.HTTPConnection(*address, timeout=WAIT_SECONDS)
    with contextlib.closing(client):
        client.request(method, path)
        response = client.getresponse()
        return response.status, response.read().decode()


def test_it_is_answered_while_a_call_holds_the_loop(loop, listen):
    """At once, however long the call takes; other pages wait."""
    address = listen()
    with busy(loop):
        assert get(address) == (200, "ok\n")
        assert get(address, "/livez?verbose") == (200, "[+]heartbeat ok\nlivez check passed\n")
        assert get(address, method="HEAD") == (200, "")
    assert get(address, "/metrics") == (200, "page\n")


def test_it_fails_when_the_loop_has_not_run_for_too_long(loop, listen):
    """The answer says for how long, and what the limit is; it passes again when the loop runs again."""
    address = listen(heartbeat_seconds=1.5)
    with busy(loop):
        while (found := get(address))[0] == 200:
            """The thread's clock is the process's own."""
    status, text = found
    assert status == 503
    assert text.startswith("[-]heartbeat failed: the event loop has not run for 1.")
    assert text.endswith("the limit is 1.5 s\nlivez check failed\n")
    while get(address)[0] != 200:
        """The next beat comes."""


def test_a_request_in_pieces_is_the_loops(listen):
    """As are all that are not one for /livez, and those that hold more than the thread looks at."""
    address = listen()
    with socket.create_connection(address, timeout=WAIT_SECONDS) as client:
        client.sendall(b"GET /li")
        client.sendall(b"vez HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
        assert client.makefile("rb").read().endswith(b"\r\n\r\nok\n")
    assert get(address, "/livezz")[0] == 404
    assert get(address, "/livez", "DELETE")[0] == 405
    client = http.client.HTTPConnection(*address, timeout=WAIT_SECONDS)
    with contextlib.closing(client):
        for path in ("/metrics", "/livez", "/metrics"):
            client.request("GET", path)
            assert client.getresponse().read() in {b"page\n", b"ok\n"}


def test_silent_connections_do_not_keep_others_away(listen):
    """Those that are too many are the loop's, which closes them in time."""
    address = listen()
    with contextlib.ExitStack() as stack:
        for _ in range(80):
            stack.enter_context(socket.create_connection(address, timeout=WAIT_SECONDS))
        assert get(address) == (200, "ok\n")


def test_a_loop_that_stands_still_is_logged_once_with_its_place():
    """The operator learns what held it."""
    now = [0.0]
    heartbeat = Heartbeat(lambda: now[0])
    thread = LivenessThread((), None, heartbeat, None, 10.0)
    with capture_logs() as logs:
        thread._watch()
        now[0] = 3.0
        thread._watch()
        thread._watch()
        heartbeat.record()
        thread._watch()
    assert [entry["seconds"] for entry in logs] == [3.0]
    assert any("_watch" in place for place in logs[0]["where"])
    assert heartbeat.problem(10.0) is None
    now[0] = 14.0
    assert heartbeat.problem(10.0) == "the event loop has not run for 11.0 s; the limit is 10 s"


async def test_several_processes_are_alive_by_their_heartbeats():
    """The parent asks none of them; it names those whose loop stands still."""
    now = [0.0]
    members = [SimpleNamespace(number=number, heartbeat=Heartbeat(lambda: now[0])) for number in (1, 2)]
    processes = Processes(serving=members, problems={}, notes={})
    pages = Pages(lambda: processes, Metrics(), has_redis=False, heartbeat_seconds=10.0)
    given = SimpleNamespace(rel_url=SimpleNamespace(query={}))
    assert (await pages.livez(given)).body == b"ok\n"
    now[0] = 11.0
    members[0].heartbeat.record()
    response = await pages.livez(given)
    assert response.status == 503
    assert b"process 2: the event loop has not run for 11.0 s" in response.body
