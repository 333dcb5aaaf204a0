"""A whole gateway without sockets, processes or waiting: its own parts from the bytes of a connection to a worker's
channel, in a time that the test sets.

Real are HTTP, the review handler, engine, driver, cache, configurations and their switch, descriptions and plans, the
metrics, and the log of what is admitted unjudged. Replaced are the clocks (``VirtualLoop``), TLS and TCP
(``ClientTransport``), Redis (``ScriptedRedis``), the thread that writes logs (``UnjudgedLines``), and the workers
(``ScriptedWorker``), which come in where hooks do: ``spec.hook.path`` is their name.
"""

import asyncio
import contextlib
import json
import logging
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import count
from typing import Any

import structlog

from gateway.caching.cache import VerdictCache
from gateway.caching.caller import CachingCaller
from gateway.caching.limits import CacheLimits
from gateway.caching.memory import Memory
from gateway.policies.configuration import load
from gateway.policies.decoding.texts import SourceText
from gateway.serving.configuration_switch import ConfigurationSwitch
from gateway.serving.connection import Connections
from gateway.serving.http_server import HttpServer
from gateway.serving.limits import Limits
from gateway.serving.review_handler import ReviewHandler
from gateway.serving.route_table import RouteTable
from gateway.telemetry.metrics import Metrics
from gateway.telemetry.unjudged import UnjudgedLog
from gateway.transports.limits import TransportLimits
from gateway.transports.transport_config import TransportConfig
from tests.virtual.loop import VirtualLoop, clocks
from tests.virtual.redis import ScriptedRedis
from tests.virtual.worker import ScriptedWorker


class ClientTransport(asyncio.Transport):
    """What a client has sent and received on one connection. ``order`` numbers the answers to all clients."""

    def __init__(self, loop: asyncio.AbstractEventLoop, protocol: Any, order: Iterator[int]) -> None:
        super().__init__()
        self._loop = loop
        self._order = order
        self._protocol = protocol
        self._is_paused = False
        self._unread: list[bytes] = []
        self.received = bytearray()
        self.answered: tuple[float, int] | None = None
        """When the first byte of an answer came, and the how manieth answer to any client this was."""
        self.closed = False

    def get_extra_info(self, name, default=None):
        return ("192.0.2.1", 40000) if name == "peername" else default

    def send(self, data: bytes) -> None:
        """The client sends some bytes."""
        if self.closed:
            return
        if self._is_paused:
            self._unread.append(data)
        else:
            self._protocol.data_received(data)

    def hang_up(self) -> None:
        """The client closes the connection."""
        self.close()

    def write(self, data):
        if not self.closed:
            self.answered = self.answered or (self._loop.time(), next(self._order))
            self.received += data

    def writelines(self, list_of_data):
        self.write(b"".join(list_of_data))

    def is_closing(self):
        return self.closed

    def close(self):
        if not self.closed:
            self.closed = True
            self._loop.call_soon(self._protocol.connection_lost, None)

    abort = close

    def pause_reading(self):
        self._is_paused = True

    def resume_reading(self):
        self._is_paused = False
        while self._unread and not self._is_paused and not self.closed:
            self._protocol.data_received(self._unread.pop(0))

    def is_reading(self):
        return not self._is_paused

    def get_write_buffer_size(self):
        return 0

    def set_write_buffer_limits(self, high=None, low=None):
        pass


class Errors:
    """What the gateway logs of errors of its own: with a traceback, or at level error; and what asyncio would."""

    def __init__(self):
        self.found: list[Any] = []

    def __call__(self, _logger, method, event):
        if event.get("exc_info") or method in {"error", "exception", "critical"}:
            self.found.append(event)
        raise structlog.DropEvent

    def handler(self) -> logging.Handler:
        handler = logging.Handler(logging.ERROR)
        handler.emit = lambda record: self.found.append(handler.format(record))
        return handler


class UnjudgedLines:
    """The writer of an UnjudgedLog: what it has put, by the review's uid."""

    def __init__(self):
        self.by_uid: dict[str, list[dict[str, Any]]] = {}

    def put(self, line: bytes, *, reserved: bool) -> None:
        assert reserved, "such a line may not be dropped before others"
        document = json.loads(line)
        self.by_uid.setdefault(document["uid"], []).append(document)

    def drop(self, reason: object) -> None:
        raise AssertionError(f"a line was dropped: {reason}")


@contextlib.contextmanager
def capturing(errors: Errors) -> Iterator[None]:
    """While what is logged goes to ``errors``."""
    was = structlog.get_config()["processors"]
    handler = errors.handler()
    structlog.configure(processors=[errors])
    logging.getLogger().addHandler(handler)
    try:
        yield
    finally:
        logging.getLogger().removeHandler(handler)
        structlog.configure(processors=was)


@dataclass(kw_only=True)
class VirtualGateway:
    """A started gateway. Use it as a context: it ends all that it has begun.

    ``policies`` is the YAML of its configuration, ``workers`` makes the worker of each name. ``has_redis``: ``redis``
    is the second level of its cache.
    """

    policies: str
    workers: Callable[[str], ScriptedWorker]
    limits: Limits = field(default_factory=Limits)
    cache_limits: CacheLimits = field(default_factory=CacheLimits)
    transport_limits: TransportLimits = field(default_factory=TransportLimits)
    worker_startup_timeout: float = 10.0
    has_redis: bool = False

    def __post_init__(self):
        self.loop = VirtualLoop()
        self.errors = Errors()
        self.worker: dict[str, ScriptedWorker] = {}
        self.metrics = Metrics()
        self.unjudged = UnjudgedLines()
        self.redis = ScriptedRedis(self.loop.time)
        self._order = count()
        self.report: list[str] = []
        self._ends = contextlib.ExitStack()

    def __enter__(self):
        ends = self._ends
        ends.enter_context(clocks(self.loop))
        ends.enter_context(capturing(self.errors))
        self.run(self._start())
        ends.callback(self.loop.close)
        ends.callback(lambda: self.run(self._stop()))
        return self

    def __exit__(self, *exc):
        self._ends.close()

    async def _start(self):
        wall = self.loop.seconds_since_1970
        store = self.redis.store(self.cache_limits, self.metrics, wall) if self.has_redis else None
        self.cache = VerdictCache(self.cache_limits, self.metrics, store, now=wall)
        await self.cache.start()
        self.switch = ConfigurationSwitch(
            self.configuration(self.policies),
            (),
            limits=self.transport_limits,
            wait_seconds=self.worker_startup_timeout,
            report=_Report(self.report, self.metrics),
            worker_events=self.metrics,
            caching=lambda workers: CachingCaller(workers, self.cache),
            transport_config=TransportConfig(hooks=self._channel),
        )
        await self.switch.start()
        consumers = (self.metrics, UnjudgedLog(self.unjudged))
        self.handler = ReviewHandler(self.switch, events=self.metrics, consumers=consumers)
        self.routes = RouteTable(self.switch)
        self.routes.not_ready = None
        self.server = HttpServer(
            judge=self.handler,
            refuse=self._refuse,
            routes=self.routes,
            limits=self.limits,
            events=self.metrics,
        )
        self.connections = Connections(self.server._handle, limits=self.limits, note=self.server._note)

    def _refuse(self, review: Any) -> bytes:
        return self.handler.refuse(review)

    async def _stop(self):
        await self.connections.close()
        await self.switch.close()
        await self.cache.close()

    def _channel(self, name, target, limits, events):
        made = self.worker[name] = self.workers(name)
        return made

    # ------------------------------------------------------------------------------------- what the test does

    def configuration(self, text: str):
        """The configuration in this YAML; a mistake in it is the test's."""
        made = load([SourceText(name="policies.yaml", content=text.encode())])
        assert not made.fatal, made.errors
        return made

    def reload(self, text: str) -> None:
        """The policies have changed; the gateway has read them."""
        self.run(self.switch.propose(self.configuration(text), ()))

    def run(self, coroutine: Any) -> Any:
        """Run a coroutine of the gateway to its end, in as much time as it takes."""
        task = self.loop.create_task(coroutine)
        for _ in range(1000):
            self.loop.run_until_idle()
            if task.done():
                return task.result()
            self.loop.run_for(1.0)
        raise AssertionError("it never ends")

    def forget_memory(self) -> None:
        """Empty the cache in memory, as of a process that has just started; what is in Redis stays."""
        self.cache._memory = Memory(self.cache_limits.memory_bytes, self.metrics)

    def connect(self) -> ClientTransport:
        """A client connects."""
        protocol = self.connections()
        transport = ClientTransport(self.loop, protocol, self._order)
        self.loop.call_soon(protocol.connection_made, transport)
        self.loop.run_until_idle()
        return transport

    @property
    def tasks(self) -> set[asyncio.Task[Any]]:
        """All tasks of the loop."""
        return asyncio.all_tasks(self.loop)


class _Report:
    """Receives the reports of the configuration switch."""

    def __init__(self, events: list[str], metrics: Metrics) -> None:
        self._events = events
        self._metrics = metrics

    def availability(self, configuration: Any) -> None:
        self._metrics.know(configuration.policies(), configuration.entry_names())

    def adopted(self, generation: Any) -> None:
        del generation
        self._events.append("adopted")

    async def known(self, configuration: Any) -> None:
        del configuration

    def entries(self, configuration: Any) -> None:
        del configuration

    async def retired(self) -> None:
        self._events.append("retired")

    def failed(self, error: Exception) -> None:
        raise AssertionError("a configuration cannot be loaded") from error


def worker_yaml(name: str) -> str:
    """A Worker that is scripted."""
    return f"""
---
apiVersion: admission-gateway.dev/v1alpha1
kind: Worker
metadata: {{name: {name}}}
spec: {{hook: {{path: /virtual/{name}}}}}
"""


def policies_yaml(kind: str, policies: list[Mapping[str, Any]]) -> str:
    """A configuration of these policies; JSON is YAML."""
    return f"""
---
apiVersion: admission-gateway.dev/v1alpha1
kind: {kind}PolicyConfiguration
metadata: {{name: virtual}}
policies: {json.dumps(policies)}
"""
