"""The dashboard's pages: who may see them, what they are sent with, and a stream that is bounded in every direction."""

import asyncio
import contextlib
import hashlib
import http.client
import json
import socket
from types import SimpleNamespace

import pytest

from gateway.serving.access import AdminAccess
from gateway.serving.admin import AdminListener
from gateway.serving.credential_files import ADMIN_TOKENS, CredentialFile
from gateway.serving.dashboard import live_stream
from gateway.serving.dashboard.live_stream import LiveStream
from gateway.serving.dashboard.pages import DashboardPages
from gateway.serving.limits import Limits
from gateway.serving.refusals import Refused
from gateway.telemetry.metrics import Metrics
from gateway.telemetry.table import DASHBOARD_STREAMS, DASHBOARD_STREAMS_ENDED

WAIT_SECONDS = 20
DATA = ("/ui/api/live", "/ui/api/policies", "/ui/api/reviews/known", "/ui/api/", "/ui/api/nothing")


class Events:
    """Makes events, and counts how often it was called."""

    def __init__(self):
        self.made = 0
        self.size = 10

    def first(self):
        yield "state", {"text": "</script>\n\ndata: <b>"}

    def next(self):
        self.made += 1
        yield "numbers", {"made": self.made, "filler": "x" * self.size}


class Served:
    """An admin listener with a dashboard, and what a client sees of it."""

    def __init__(self, loop, tokens=None):
        self.loop = loop
        self.metrics = Metrics()
        self.events = Events()
        access = AdminAccess(None if tokens is None else CredentialFile(tokens, ADMIN_TOKENS))
        self.stream = LiveStream(self.events, self.metrics, interval=0.005)
        pages = DashboardPages(
            self.stream,
            policies=self.policies,
            reviews=lambda uid: [{"uid": uid}] if uid == "known" else [],
        )
        self.listener = AdminListener(
            checks=tuple, metrics=None, dashboard=lambda: pages, access=access, limits=Limits(shutdown_seconds=0.05)
        )
        self.address = loop.run(self.listener.start("127.0.0.1", 0))

    async def policies(self):
        return b'{"policies":[]}'

    def get(self, target, method="GET", **headers):
        client = http.client.HTTPConnection(*self.address, timeout=WAIT_SECONDS)
        try:
            client.request(method, target, headers=headers)
            response = client.getresponse()
            return response.status, response.headers, response.read()
        finally:
            client.close()

    def open(self):
        """A connection that has asked for the stream."""
        opened = socket.create_connection(self.address, WAIT_SECONDS)
        opened.sendall(b"GET /ui/api/live HTTP/1.1\r\nHost: localhost\r\n\r\n")
        return opened

    def ended(self, reason):
        return self.metrics.value(DASHBOARD_STREAMS_ENDED, reason)

    def until(self, condition):
        async def polled():
            async with asyncio.timeout(WAIT_SECONDS):
                while not condition():  # noqa: ASYNC110 - what is awaited is a number of the metrics
                    await asyncio.sleep(0.002)

        self.loop.run(polled())


@pytest.fixture
def start(loop):
    """Start listeners: ``start(tokens)``."""
    started = []

    def one(tokens=None):
        started.append(Served(loop, tokens))
        return started[-1]

    yield one
    for served in started:
        loop.run(served.listener.stop())


@pytest.fixture
def tokens(tmp_path):
    """A file with one token."""
    path = tmp_path / "tokens"
    path.write_text("right\n")
    return path


def test_the_page_is_complete_and_locked_down(start):
    """Every file that the page names is there, with the headers that keep other origins, scripts and frames out."""
    served = start()
    status, headers, body = served.get("/ui/")
    assert (status, headers["Content-Type"]) == (200, "text/html; charset=utf-8")
    assert b"<script>" not in body
    assert b" style=" not in body
    assert b"//" not in body.replace(b"<!--", b"")
    for name in ("main.js", "style.css", "icon.svg", "vendor/uplot/uPlot.esm.js", "vendor/uplot/uPlot.min.css"):
        status, headers, _ = served.get(f"/ui/{name}")
        assert status == 200, name
        assert "'unsafe" not in headers["Content-Security-Policy"]
        for rule in ("default-src 'none'", "script-src 'self'", "frame-ancestors 'none'", "trusted-types 'none'"):
            assert rule in headers["Content-Security-Policy"]
        assert headers["X-Content-Type-Options"] == "nosniff"
        assert headers["Cache-Control"] == "no-store"


def test_the_charting_library_is_as_it_was_published(start):
    """uPlot 1.6.32 of npm, unchanged; NOTICE has the hash of the package. Another version: change both."""
    hashes = {
        "uPlot.esm.js": "5dd9b3281aa64b461b42d9945f6adb2649d346502b12281a9ae0d46599a80eba",
        "uPlot.min.css": "df630c6a8d6f8eeaff264b50f73ce5b114f646ffd9a0bb74f049b0a00135fa04",
        "LICENSE": "8f989229699b4fe2f1a0432d0e9edc338a8a911e250e2d1b01ecd770a5f5b1bd",
    }
    served = start()
    found = {name: hashlib.sha256(served.get(f"/ui/vendor/uplot/{name}")[2]).hexdigest() for name in hashes}
    assert found == hashes


def test_data_are_not_stored(start):
    """Data have the same headers."""
    _, headers, body = start().get("/ui/api/reviews/known")
    assert json.loads(body) == {"reviews": [{"uid": "known"}]}
    assert headers["Cache-Control"] == "no-store"
    assert headers["X-Content-Type-Options"] == "nosniff"


@pytest.mark.parametrize(
    ("target", "status"),
    [
        ("/ui", 308),
        ("/ui/nothing", 404),
        ("/ui/../../etc/passwd", 404),
        ("/ui//main.js", 404),
        ("/ui/api/nothing", 404),
        ("/ui/api/reviews/unknown", 404),
        ("/uix", 404),
    ],
)
def test_other_paths(start, target, status):
    """Only the files of the page, by their names."""
    assert start().get(target)[0] == status


@pytest.mark.parametrize("method", ["POST", "HEAD", "PUT"])
def test_it_is_read_only(start, method):
    """Nothing is changed through it."""
    assert start().get("/ui/api/policies", method)[0] == 405


@pytest.mark.parametrize("path", DATA)
def test_data_need_the_token(start, tokens, path):
    """With --admin-token-file, on this machine too; the page itself is open: it is where the token is entered."""
    served = start(tokens)
    assert served.get("/ui/")[0] == 200
    assert served.get("/ui/main.js")[0] == 200
    for headers in ({}, {"Authorization": "Bearer wrong"}, {"Cookie": "token=right"}):
        assert served.get(path, **headers)[0] == 401


def test_the_token_opens_the_data(start, tokens):
    """As Authorization: Bearer, from any host and page: another origin cannot know it."""
    served = start(tokens)
    assert served.get("/ui/api/policies", Authorization="Bearer right", Host="gateway.example.com")[0] == 200


@pytest.mark.parametrize("path", ["/ui/", *DATA])
@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "http://evil.example.com"},
        {"Origin": "null"},
        {"Host": "evil.example.com"},
        {"Host": "evil.example.com", "Origin": "http://evil.example.com"},
        {"Host": "127.0.0.1.evil.example.com:9443"},
        {"Host": "[::1].evil.example.com", "Origin": "http://[::1]"},
        {"Origin": "https://localhost"},
    ],
)
def test_no_other_web_page_reads_them_without_a_token(start, path, headers):
    """Whatever page is open on this machine: no page of another origin, none of a name that leads to 127.0.0.1."""
    request = SimpleNamespace(remote="127.0.0.1", headers={"Host": "localhost:9443", **headers})
    with pytest.raises(Refused, match="only programs on this machine"):
        AdminAccess().require(request, path)


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST:9443", "127.0.0.1:9443", "[::1]:9443"])
def test_its_own_page_reads_them(host):
    """A browser sends Origin with the page's own modules, too."""
    request = SimpleNamespace(remote="127.0.0.1", headers={"Host": host, "Origin": f"http://{host}"})
    AdminAccess().require(request, "/ui/")


@pytest.mark.parametrize("site", ["cross-site", "same-site"])
def test_another_site_cannot_hold_streams_open(start, site):
    """An image of another page may send a GET without Origin; browsers say that it comes from another site."""
    headers = {"Sec-Fetch-Site": site}
    assert start().get("/ui/api/live", **headers)[0] == 403


def test_events_arrive_in_their_format(start):
    """One line of JSON each, whatever the texts are."""
    served = start()
    with served.open() as client, client.makefile("rb") as lines:
        while lines.readline() != b"\r\n":
            pass
        found = [line.rstrip(b"\r\n") for line in (lines.readline() for _ in range(12))]
    names = [line for line in found if line.startswith(b"event: ")]
    assert names[:2] == [b"event: state", b"event: numbers"]
    data = [json.loads(line.removeprefix(b"data: ")) for line in found if line.startswith(b"data: ")]
    assert data[0] == {"text": "</script>\n\ndata: <b>"}


def test_nothing_is_made_without_a_browser(start):
    """The first browser begins it, and the last one ends it."""
    served = start()
    assert served.events.made == 0
    with served.open():
        served.until(lambda: served.events.made > 2)
        assert served.metrics.value(DASHBOARD_STREAMS) == 1
    served.until(lambda: served.ended("closed") == 1)
    made = served.events.made
    served.loop.run(asyncio.sleep(0.03))
    assert served.events.made == made
    assert served.metrics.value(DASHBOARD_STREAMS) == 0


def test_browsers_are_bounded(start):
    """One too many is refused with the reason, and counted; after one has left, there is room."""
    served = start()
    opened = [served.open() for _ in range(live_stream.MOST_STREAMS)]
    served.until(lambda: served.metrics.value(DASHBOARD_STREAMS) == live_stream.MOST_STREAMS)
    status, _, body = served.get("/ui/api/live")
    assert (status, served.ended("limit")) == (503, 1)
    assert b"8 browsers have this dashboard open" in body
    opened.pop().close()
    served.until(lambda: served.metrics.value(DASHBOARD_STREAMS) < live_stream.MOST_STREAMS)
    with served.open() as again:
        assert again.recv(12) == b"HTTP/1.1 200"
    for each in opened:
        each.close()


def test_a_browser_that_does_not_read_is_disconnected(start):
    """Its buffer is bounded; the others get their events meanwhile."""
    served = start()
    served.events.size = 1_000_000
    with served.open() as slow:
        served.until(lambda: served.ended("slow") == 1)
        assert served.metrics.value(DASHBOARD_STREAMS) == 0
        content = b""
        with contextlib.suppress(ConnectionError):
            while received := slow.recv(10_000_000):
                content = received
    assert not content.endswith(b"0\r\n\r\n")


def test_events_that_cannot_be_made_are_left_out(start):
    """The stream goes on."""
    served = start()
    make = served.events.next
    served.events.next = lambda: (_ for _ in ()).throw(RuntimeError("an error of ours"))
    with served.open() as client:
        client.recv(1)
        served.until(lambda: served.metrics.value(DASHBOARD_STREAMS) == 1)
        served.loop.run(asyncio.sleep(0.02))
        served.events.next = make
        served.until(lambda: served.events.made > 1)


def test_a_stopping_gateway_ends_the_streams(start, loop):
    """At once, and the browser can connect to its successor."""
    served = start()
    with served.open() as client:
        served.until(lambda: served.events.made > 0)
        loop.run(served.listener.stop())
        content = b""
        while received := client.recv(65536):
            content += received
    assert content.endswith(b"0\r\n\r\n")
    assert served.ended("stopped") == 1
