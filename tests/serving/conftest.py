"""A front on a loop and thread of its own, with a judge that the test writes; and clients that speak to it over TLS.

The clients are blocking sockets in the test's own thread: as the API server's, they know nothing of our loop.
"""

import asyncio
import contextlib
import http.client
import json
import math
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from time import monotonic
from types import SimpleNamespace

import pytest
import structlog
import uvloop

from gateway.policies.model import Phase
from gateway.serving.development_certificates import ensure_development_certificates
from gateway.serving.http_server import HttpReply, HttpServer
from gateway.serving.limits import Limits
from gateway.serving.plans import Target
from gateway.serving.route_table import RouteTable
from gateway.serving.tls import read_pair, server_context
from gateway.telemetry.table import HTTP_REQUESTS_REJECTED

RECORDINGS = Path(__file__).parent.parent / "recordings"
WAIT_SECONDS = 20
"""Seconds after which a client or a test gives up: far beyond anything that a test waits for."""


class Recorder:
    """A judge that answers at once and keeps what it was called; and the counter of the front's events."""

    def __init__(self):
        self.called = []
        self.events = []

    async def __call__(self, target, body, started, ends, *, overloaded, flow, trace):
        self.called.append((target, body, started, ends, overloaded))
        return HttpReply(status=200, body=b'{"judged": %d}' % len(body))

    def count(self, metric, label, amount=1):
        self.events.append(("refused" if metric is HTTP_REQUESTS_REJECTED else "limit", label))


def routes(not_ready, entries):
    """A table of the phases and these entries."""
    targets = {target.path: target for target in (*map(Target, Phase), *entries)}
    table = RouteTable(SimpleNamespace(current=SimpleNamespace(targets=targets)))
    table.not_ready = not_ready
    return table


def refuse(review):
    found = review.envelope
    return json.dumps({"uid": found.uid, "apiVersion": found.api_version, "code": 413, "message": review.why}).encode()


class Loop:
    """An event loop in a thread."""

    def __init__(self, factory):
        self.loop = factory()
        self.thread = threading.Thread(target=self.loop.run_forever, daemon=True)
        self.thread.start()

    def run(self, coroutine):
        return asyncio.run_coroutine_threadsafe(coroutine, self.loop).result(WAIT_SECONDS)

    def call(self, function, *args):
        async def on_the_loop():
            return function(*args)

        return self.run(on_the_loop())

    def close(self):
        self.run(self._ended())
        self.loop.call_soon_threadsafe(self.loop.stop)
        self.thread.join(WAIT_SECONDS)
        self.loop.close()

    async def _ended(self):
        """Connections that are being closed have lost their handlers: a loop that is closed before warns of each."""
        others = asyncio.all_tasks() - {asyncio.current_task()}
        if others:
            await asyncio.wait(others, timeout=5)
        for _ in range(3):
            await asyncio.sleep(0)


class Served:
    """A front that serves, and what a test does with it."""

    def __init__(self, loop, front, address, client_context, judge, routes):
        self.loop = loop
        self.front = front
        self.address = address
        self.client_context = client_context
        self.judge = judge
        self.routes = routes
        self._clients = contextlib.ExitStack()

    def raw(self):
        """A TCP connection; closed when the test is over."""
        return self._clients.enter_context(socket.create_connection(self.address[:2], timeout=WAIT_SECONDS))

    def tls(self):
        """A TLS connection."""
        return self._clients.enter_context(self.client_context.wrap_socket(self.raw(), server_hostname="localhost"))

    def client(self):
        """An HTTP client on one TLS connection."""
        client = http.client.HTTPSConnection(*self.address[:2], context=self.client_context, timeout=WAIT_SECONDS)
        return self._clients.enter_context(contextlib.closing(client))

    def post(self, body=b"{}", path="/mutate?timeout=10s", method="POST", headers=None):
        """One request on a connection of its own: status, headers, body."""
        client = self.client()
        try:
            client.request(method, path, body, {"Content-Type": "application/json"} if headers is None else headers)
            response = client.getresponse()
            return response.status, response.headers, response.read()
        finally:
            client.close()

    def is_well(self):
        """Whether an ordinary request is judged."""
        return self.post()[0] == 200

    def is_well_in_the_end(self):
        """The same where there is next to no time for a handshake: one of so many may need more than there is."""
        ends = monotonic() + WAIT_SECONDS
        while True:
            try:
                return self.is_well()
            except OSError:
                if monotonic() > ends:
                    raise

    def close(self):
        self._clients.close()
        self.loop.run(self.front.stop())

    def until(self, condition):
        """Wait, without guessing for how long, until something holds on the front's side."""

        async def turn():
            while not condition():  # noqa: ASYNC110 - what it waits for has no event to offer
                await asyncio.sleep(0)

        self.loop.run(asyncio.wait_for(turn(), WAIT_SECONDS))


def answers(connection, method="POST"):
    """The HTTP answer that stands next on a connection: status, headers, body."""
    response = http.client.HTTPResponse(connection, method=method)
    response.begin()
    return response.status, response.headers, response.read()


@pytest.fixture(scope="session")
def certificates(tmp_path_factory):
    return ensure_development_certificates(tmp_path_factory.mktemp("tls") / "dev")


@pytest.fixture(params=[uvloop.new_event_loop, asyncio.new_event_loop], ids=["uvloop", "asyncio"])
def loop(request) -> Iterator[Loop]:
    running = Loop(request.param)
    yield running
    running.close()


@pytest.fixture
def serve(loop, certificates) -> Iterator[Callable[..., Served]]:
    """Start a front: `serve(judge, entries=..., client_ca=..., max_connection_age=..., **limits)`."""
    running = []
    client_context = ssl.create_default_context(cafile=certificates.ca_file)

    def start(
        judge=None,
        *,
        not_ready=None,
        entries=(),
        authentication=None,
        client_ca=None,
        max_connection_age=math.inf,
        **limits,
    ):
        judge = judge or Recorder()
        events = judge if isinstance(judge, Recorder) else Recorder()
        table = routes(not_ready, entries)
        front = HttpServer(
            judge=judge,
            refuse=refuse,
            routes=table,
            authentication=authentication,
            limits=Limits(**limits),
            events=events,
        )
        context = server_context(
            read_pair(certificates.cert_file, certificates.key_file),
            [client_ca] if client_ca else (),
            certificate_optional=authentication is not None and authentication.has_other_credentials,
        )
        address = loop.run(front.start("127.0.0.1", 0, context, max_connection_age=max_connection_age))
        served = Served(loop, front, address, client_context, judge, table)
        running.append(served)
        served.events = events.events
        return served

    yield start
    for served in running:
        served.close()


@pytest.fixture
def logs() -> Iterator[list]:
    """What is logged in the meantime, in structlog's form."""
    with structlog.testing.capture_logs() as captured:
        yield captured


@pytest.fixture(scope="session")
def recordings():
    """The recorded requests of a real kube-apiserver, by name."""
    return {path.stem: json.loads(path.read_text()) for path in sorted(RECORDINGS.glob("*.json"))}


@pytest.fixture(scope="session")
def answered():
    """Reads the next HTTP answer of a socket."""
    return answers
