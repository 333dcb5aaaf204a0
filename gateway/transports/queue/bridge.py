"""A bridge: a gRPC worker, in any language, that is fed from a queue. It is scaled by adding bridges.

    gateway  --calls-->  Redis  --one of the bridges-->  worker
    gateway  <--replies--  Redis  <--the same bridge--  worker

A bridge stands in the queue as its worker describes itself; it is there while the worker is. What it does with what it
takes: ``consumer``; how it calls the worker: ``relaying``.
"""

import asyncio
from typing import Final

import structlog

from gateway.policies.workers.grpc_names import socket_path
from gateway.policies.workers.targets import GrpcTarget
from gateway.redis.addresses import RedisAddress
from gateway.telemetry.events import Events
from gateway.transports.credentials import WorkerCredentials
from gateway.transports.grpc.dialer import Dialer
from gateway.transports.grpc.worker import GrpcWorker
from gateway.transports.limits import ConsumerLimits, TransportLimits
from gateway.transports.queue.consumer import Consumer
from gateway.transports.queue.grpc_forwarder import GrpcForwarder, relayed
from gateway.transports.queue.seals import QueueSeals

_LOG: Final = structlog.get_logger(__name__)

AGAIN_SECONDS: Final = 1.0
"""How soon after the first a second word to stop is the same one. Who signals a process and its group, as ``timeout``
does, signals it twice at once."""


class Bridge:
    """One bridge, connected from when it is made in the running loop.

    Args:
        address: of Redis.
        stream: the queue's name.
        seals: of the queue.
        worker: where the worker is; its ``command`` is not started.
        limits: of the calls to the worker.
        consumer_limits: of what is in hand.
        events: is told what happens with the worker, under the queue's name, and to what is taken.
    """

    def __init__(  # noqa: PLR0913 - all but the first two by name
        self,
        address: RedisAddress,
        stream: str,
        *,
        seals: QueueSeals,
        worker: GrpcTarget,
        limits: TransportLimits | None = None,
        consumer_limits: ConsumerLimits | None = None,
        events: Events | None = None,
    ) -> None:
        limits = limits or TransportLimits()
        path = socket_path(worker.target, worker.directory)
        target = worker.target if path is None else f"unix:{path}"
        self._worker = GrpcWorker(
            stream,
            target,
            limits,
            dialer=Dialer(target, limits, WorkerCredentials(stream, worker.tls, worker.directory)),
            connections=worker.connections,
            events=events,
            reading=relayed,
        )
        self._consumer = Consumer(
            address,
            stream,
            seals=seals,
            judging=GrpcForwarder(self._worker),
            limits=consumer_limits,
            events=events,
        )

    @property
    def name(self) -> str:
        """Its name in the consumer group."""
        return self._consumer.name

    @property
    def why(self) -> str:
        """Why it takes no work from the queue; empty if it does."""
        return self._consumer.why

    @property
    def in_hand(self) -> int:
        """Questions that the worker is called now, and answers that wait to be written."""
        return self._consumer.in_hand

    async def run(self, stop: asyncio.Event) -> None:
        """Take work until ``stop`` is set, and then answer what was taken; when it is set once more, and not right
        behind the first time (``AGAIN_SECONDS``), leave at once.
        """
        working = asyncio.create_task(self._consumer.run())
        try:
            await _first(working, stop)
            self._consumer.stop()
            await asyncio.wait((working,), timeout=AGAIN_SECONDS)
            stop.clear()
            if not working.done():
                _LOG.info("what was taken is answered first; told to stop again, it leaves at once", open=self.in_hand)
            await _first(working, stop)
            working.cancel()
            await asyncio.gather(working, return_exceptions=True)
        finally:
            working.cancel()
            await asyncio.gather(working, return_exceptions=True)
            await self._worker.close()
        if not working.cancelled():
            # What went wrong must not end as exit code 0.
            working.result()


async def _first(working: "asyncio.Task[None]", stop: asyncio.Event) -> None:
    """Return when either has come."""
    reported = asyncio.create_task(stop.wait())
    await asyncio.wait((working, reported), return_when=asyncio.FIRST_COMPLETED)
    reported.cancel()
    await asyncio.gather(reported, return_exceptions=True)
