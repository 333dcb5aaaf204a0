"""Scrapes of a gateway that decides reviews: unread ones delay none, and those of several processes have exemplars."""

import asyncio
import contextlib
import http.client
import socket

import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families as read_openmetrics

from gateway.serving.limits import Limits
from gateway.telemetry.metrics import TEXT, Metrics
from tests.integration.client import AsyncClient, post
from tests.integration.process import WAIT_SECONDS
from tests.integration.running import configuration, policy, source
from tests.integration.test_processes import NO_CALLS, arguments
from tests.integration.workers import ALLOW, always, scripted
from tests.traffic import recording

pytestmark = pytest.mark.integration

BODY = recording("pod-create.1v").body

LARGE = b"x" * 8_000_000
"""More than the kernel takes for a client that does not read."""


async def unread(port):
    """A client that asks for the metrics, and reads no more than the first byte."""
    loop, client = asyncio.get_running_loop(), socket.socket()
    client.setblocking(False)
    await loop.sock_connect(client, ("127.0.0.1", port))
    await loop.sock_sendall(client, b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n")
    assert await loop.sock_recv(client, 1) == b"H"
    return client


async def test_reviews_are_decided_while_scrapes_are_not_read(gateway, monkeypatch):
    """As many as may be open hang, another one is refused; reviews and health are answered as always."""

    async def large(_metrics, *, openmetrics):
        del openmetrics
        return TEXT, LARGE

    monkeypatch.setattr(Metrics, "written", large)
    async with (
        scripted("judge", review=always(ALLOW)) as target,
        gateway(configuration(source(workers={"scripted": target}, validating=[policy("judge")]))) as served,
    ):
        clients = [await unread(served.admin_port) for _ in range(Limits().scrapes)]
        assert (await served.admin("/metrics"))[0] == 503
        for _ in range(3):
            assert (await served.send(post(BODY, "/validate?timeout=10s"))).response["allowed"]
        assert (await served.admin("/readyz"))[0] == 200
        # All of them still hang.
        assert (await served.admin("/metrics"))[0] == 503
        for client in clients:
            client.close()


async def test_metrics_of_several_processes_lead_to_traces(serve, trust, tmp_path):
    """The sums that Prometheus gets as OpenMetrics have trace ids of each process as exemplars."""
    traces = ("--traces-endpoint", "http://127.0.0.1:1", "--traces-sample-ratio", "1")
    served = await asyncio.to_thread(lambda: serve(*arguments(tmp_path, NO_CALLS, *traces)).ready())
    sent, clients = set(), []
    while not all([await asyncio.to_thread(exemplars, served, f"/process/{number}/metrics") for number in (1, 2)]):
        trace_id = f"{len(sent) + 1:032x}"
        clients.append(await AsyncClient.connect(served.port, trust))
        traceparent = ("traceparent", f"00-{trace_id}-{'b' * 16}-01")
        assert (await clients[-1].send(post(BODY, "/validate?timeout=10s", traceparent))).response["allowed"]
        sent.add(trace_id)
        assert len(sent) < 100
    of_all = await asyncio.to_thread(exemplars, served, "/metrics")
    of_each = [await asyncio.to_thread(exemplars, served, f"/process/{number}/metrics") for number in (1, 2)]
    for client in clients:
        await client.close()
    assert of_all <= of_each[0] | of_each[1] <= sent
    # A bucket has one exemplar, whichever process observed it.
    assert of_all
    assert of_all & of_each[0] or of_all & of_each[1]


def exemplars(served, path):
    """The trace ids in a page of metrics, as OpenMetrics."""
    client = http.client.HTTPConnection("127.0.0.1", served.admin_port, timeout=WAIT_SECONDS)
    with contextlib.closing(client):
        client.request("GET", path, headers={"Accept": "application/openmetrics-text;version=1.0.0"})
        text = client.getresponse().read().decode()
    return {
        sample.exemplar.labels["trace_id"]
        for family in read_openmetrics(text)
        for sample in family.samples
        if sample.exemplar
    }
