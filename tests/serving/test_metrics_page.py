"""/metrics: the format that the client asks for, and clients that do not read it."""

import http.client
import socket

import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families as read_openmetrics
from prometheus_client.parser import text_string_to_metric_families

from gateway.serving.admin import AdminListener
from gateway.serving.limits import Limits
from gateway.serving.metrics_page import prefers_openmetrics
from gateway.telemetry.metrics import OPENMETRICS, TEXT, Metrics
from gateway.telemetry.table import LIMIT_HITS

PROMETHEUS_2 = (
    "application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;q=0.75,"
    "text/plain;version=0.0.4;q=0.5,*/*;q=0.1"
)
PROMETHEUS_3 = (
    "application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.6,"
    "application/openmetrics-text;version=0.0.1;q=0.5,text/plain;version=1.0.0;escaping=allow-utf-8;q=0.4,"
    "text/plain;version=0.0.4;q=0.3,*/*;q=0.2"
)

LARGE = b"x" * 16_000_000
"""More than Linux takes for a client that does not read: 4 MB that are to be sent, and some KB that have arrived."""

SCRAPES = 2


@pytest.mark.parametrize(
    ("accepted", "openmetrics"),
    [
        (PROMETHEUS_2, True),
        (PROMETHEUS_3, True),
        ("application/openmetrics-text", True),
        ('Application/OpenMetrics-Text; version="1.0.0"', True),
        ("application/openmetrics-text;q=0.5, text/plain;q=0.9", False),
        ("application/openmetrics-text;q=0", False),
        ("application/openmetrics-text;q=high", False),
        ("application/openmetrics-text;version=0.0.1", False),
        ("application/openmetrics-text;version=2.0.0", False),
        ("text/plain;version=0.0.4", False),
        ("*/*", False),
        ("", False),
        (",;,=;q", False),
    ],
)
def test_openmetrics_is_for_clients_that_ask_for_it(accepted, openmetrics):
    """RFC 9110: the range with the greater weight; every other client gets what it got before OpenMetrics."""
    assert prefers_openmetrics([accepted]) is openmetrics
    assert prefers_openmetrics(accepted.split(",")) is openmetrics


class Scraped:
    """An admin listener with metrics, and its clients."""

    def __init__(self, loop, metrics, **limits):
        self._loop = loop
        self.events = Metrics()
        limits = Limits(scrapes=SCRAPES, **limits)
        self._listener = AdminListener(checks=dict, metrics=metrics, limits=limits, events=self.events)
        self.address = loop.run(self._listener.start("127.0.0.1", 0))

    def get(self, path="/metrics", **headers):
        client = http.client.HTTPConnection(*self.address, timeout=20)
        try:
            client.request("GET", path, headers=headers)
            response = client.getresponse()
            return response.status, response.headers["Content-Type"], response.read()
        finally:
            client.close()

    def unread(self):
        """A client that asks for the metrics, and reads no more than the first byte."""
        client = socket.create_connection(self.address, timeout=20)
        client.sendall(b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n")
        assert client.recv(1) == b"H"
        return client

    def close(self):
        self._loop.run(self._listener.stop())


async def large(*, openmetrics):
    del openmetrics
    return TEXT, LARGE


@pytest.fixture
def scraped(loop):
    made = []

    def make(metrics, **limits):
        made.append(Scraped(loop, metrics, **limits))
        return made[-1]

    yield make
    for each in made:
        each.close()


def test_both_formats_have_the_same_samples(scraped):
    """Each is read by Prometheus' own client library."""
    listening = scraped(Metrics().written)
    status, content_type, body = listening.get()
    assert (status, content_type) == (200, TEXT)
    text = {sample for family in text_string_to_metric_families(body.decode()) for sample in map(_same, family.samples)}
    status, content_type, body = listening.get(Accept=PROMETHEUS_2)
    assert (status, content_type) == (200, OPENMETRICS)
    assert body.endswith(b"\n# EOF\n")
    assert text == {sample for family in read_openmetrics(body.decode()) for sample in map(_same, family.samples)}


def _same(sample):
    return sample.name, tuple(sorted(sample.labels.items())), sample.value


def test_answers_that_are_not_read_are_bounded(scraped):
    """Beyond the limit there is a 503 at once; health is answered as always; a client that leaves makes room."""
    listening = scraped(large, shutdown_seconds=0.05)
    clients = [listening.unread() for _ in range(SCRAPES)]
    status, _, body = listening.get()
    assert (status, body) == (
        503,
        b"admission-gateway: 2 answers with metrics are being written, which is the limit; try again\n",
    )
    assert listening.events.value(LIMIT_HITS, "scrapes") == 1
    assert listening.get("/livez")[0] == 200
    clients.pop().close()
    while listening.get()[0] == 503:
        pass
    assert listening.get()[::2] == (200, LARGE)
    clients.pop().close()


def test_a_client_that_never_reads_is_disconnected(scraped):
    """After Limits.write_seconds, so that its answer's memory is free."""
    listening = scraped(large, write_seconds=0.05)
    clients = [listening.unread() for _ in range(SCRAPES)]
    while listening.get()[0] == 503:
        pass
    assert listening.get()[0] == 200
    for client in clients:
        client.close()
