"""The live stream: server-sent events to the browsers that have the dashboard open.

While no browser is connected, nothing is made. While one is, events are made once in each interval, for all browsers
together. What a review costs does not change: the stream reads the decisions that are retained anyway.

A browser that does not read is disconnected when its buffer is full; nothing waits for it.
"""

import asyncio
from collections.abc import Iterable
from http import HTTPStatus
from typing import Any, Final, Protocol

import msgspec
import structlog

from gateway.serving import web
from gateway.serving.dashboard.static_files import HEADERS
from gateway.serving.refusals import line
from gateway.telemetry.events import Events
from gateway.telemetry.table import (
    DASHBOARD_CLOSED,
    DASHBOARD_LIMIT,
    DASHBOARD_SLOW,
    DASHBOARD_STOPPED,
    DASHBOARD_STREAMS,
    DASHBOARD_STREAMS_ENDED,
)

_LOG: Final = structlog.get_logger(__name__)

MOST_STREAMS: Final = 8
"""Browsers at the same time. Each is sent about 20 KB a second at most."""

BUFFERED_MESSAGES: Final = 16
"""Messages that wait for one browser, besides those in the kernel's buffer: those of a dozen intervals."""

INTERVAL_SECONDS: Final = 1.0
"""Between two events of a kind."""

Event = tuple[str, Any]
"""Its name and its data, which JSON can express."""

_STOP: Final = b""


class LiveData(Protocol):
    """Makes the events."""

    def first(self) -> Iterable[Event]:
        """What a new browser is sent: all that is known."""

    def next(self) -> Iterable[Event]:
        """What is new since the last call."""


class _Client:
    """One browser."""

    def __init__(self, request: web.BaseRequest) -> None:
        self.request = request
        self.messages: asyncio.Queue[bytes] = asyncio.Queue(BUFFERED_MESSAGES)
        self.reason = DASHBOARD_CLOSED

    def send(self, message: bytes) -> None:
        """Buffer a message; disconnect if the buffer is full."""
        try:
            self.messages.put_nowait(message)
        except asyncio.QueueFull:
            self.reason = DASHBOARD_STOPPED if message == _STOP else DASHBOARD_SLOW
            if self.request.transport is not None:
                # The handler waits in a write, which this ends.
                self.request.transport.abort()


class LiveStream:
    """Sends events to browsers.

    Args:
        data: makes the events.
        events: counts the streams.
        interval: seconds.
    """

    def __init__(self, data: LiveData, events: Events, *, interval: float = INTERVAL_SECONDS) -> None:
        self._data = data
        self._events = events
        self._interval = interval
        self._clients: set[_Client] = set()
        self._ticking: asyncio.Task[None] | None = None

    async def answer(self, request: web.BaseRequest) -> web.StreamResponse:
        """Send events until the browser disconnects, or ``stop``."""
        if len(self._clients) >= MOST_STREAMS:
            self._events.count(DASHBOARD_STREAMS_ENDED, DASHBOARD_LIMIT)
            text = f"{MOST_STREAMS} browsers have this dashboard open, which is the limit; close one of them"
            return web.Response(
                status=HTTPStatus.SERVICE_UNAVAILABLE,
                body=line(text),
                headers={**HEADERS, "Content-Type": "text/plain; charset=utf-8"},
            )
        client = _Client(request)
        response = web.StreamResponse(headers={**HEADERS, "Content-Type": "text/event-stream"})
        self._join(client)
        try:
            await response.prepare(request)
            await response.write(b"".join(map(_message, self._data.first())))
            while (message := await client.messages.get()) != _STOP:
                await response.write(message)
            client.reason = DASHBOARD_STOPPED
        except ConnectionError:
            # The browser has disconnected, or was disconnected.
            response.force_close()
        finally:
            self._leave(client)
        return response

    def stop(self) -> None:
        """End all streams."""
        for client in self._clients:
            client.send(_STOP)

    def _join(self, client: _Client) -> None:
        self._clients.add(client)
        self._events.set(DASHBOARD_STREAMS, len(self._clients))
        if self._ticking is None:
            self._ticking = asyncio.create_task(self._tick())

    def _leave(self, client: _Client) -> None:
        self._clients.discard(client)
        self._events.set(DASHBOARD_STREAMS, len(self._clients))
        self._events.count(DASHBOARD_STREAMS_ENDED, client.reason)
        if not self._clients and self._ticking is not None:
            self._ticking.cancel()
            self._ticking = None

    async def _tick(self) -> None:
        while True:
            await asyncio.sleep(self._interval)
            try:
                message = b"".join(map(_message, self._data.next()))
            except Exception:  # noqa: BLE001 - logged; the next events may be made
                _LOG.exception("the dashboard's events could not be made")
                continue
            for client in tuple(self._clients):
                client.send(message)


def _message(event: Event) -> bytes:
    """An event in the format of text/event-stream. JSON has no line breaks."""
    name, data = event
    return b"event: " + name.encode() + b"\ndata: " + msgspec.json.encode(data) + b"\n\n"
