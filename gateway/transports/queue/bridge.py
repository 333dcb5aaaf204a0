"""A bridge: it reads calls from a queue and calls a gRPC worker, in any language. A queue scales by adding bridges.

    gateway  --calls-->  Redis  --one of the bridges-->  worker
    gateway  <--replies--  Redis  <--the same bridge--  worker

A bridge publishes its worker's description in the queue, as long as the worker is available. ``consumer`` handles the
deliveries; ``grpc_forwarder`` calls the worker.
"""

import asyncio
from typing import Final

import structlog

from gateway.policies.workers.grpc_names import socket_path
from gateway.policies.workers.targets import GrpcTarget
from gateway.redis.addresses import RedisAddress
from gateway.telemetry.events import Events
from gateway.telemetry.traces.consumer_tracer import ConsumerTracer
from gateway.transports.credentials import WorkerCredentials
from gateway.transports.grpc.dialer import Dialer
from gateway.transports.grpc.worker import GrpcWorker
from gateway.transports.limits import ConsumerLimits, TransportLimits
from gateway.transports.queue.consumer import Consumer
from gateway.transports.queue.grpc_forwarder import GrpcForwarder, unchanged
from gateway.transports.queue.seals import QueueSeals

_LOG: Final = structlog.get_logger(__name__)

AGAIN_SECONDS: Final = 1.0
"""Within this time a second stop signal counts as the first one: ``timeout`` signals a process and its group, so the
process gets the signal twice."""


class Bridge:
    """One bridge; it connects to its worker when it is constructed, in the running loop.

    Args:
        address: of Redis.
        stream: the queue's name.
        seals: of the queue.
        worker: where the worker is; its ``command`` is not started.
        limits: of the calls to the worker.
        consumer_limits: of the calls in hand.
        events: counts events of the worker, under the queue's name, and of deliveries.
        tracer: makes a span of each call, between ``run``'s begin and end; None: there are none.
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
        tracer: ConsumerTracer | None = None,
    ) -> None:
        self._tracer = tracer
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
            read_outcome=unchanged,
        )
        self._consumer = Consumer(
            address,
            stream,
            seals=seals,
            handler=GrpcForwarder(self._worker, events, tracer, limits),
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
        """Calls at the worker, and answers not yet written."""
        return self._consumer.in_hand

    async def run(self, stop: asyncio.Event) -> None:
        """Read calls until ``stop`` is set, then answer those in hand. When ``stop`` is set again, later than
        ``AGAIN_SECONDS`` after the first time, return at once.
        """
        if self._tracer is not None:
            self._tracer.start()
        working = asyncio.create_task(self._consumer.run())
        try:
            await _first(working, stop)
            self._consumer.stop()
            await asyncio.wait((working,), timeout=AGAIN_SECONDS)
            stop.clear()
            if not working.done():
                _LOG.info(
                    "stopping: calls in hand are answered first; a second signal stops at once", open=self.in_hand
                )
            await _first(working, stop)
            working.cancel()
            await asyncio.gather(working, return_exceptions=True)
        finally:
            working.cancel()
            await asyncio.gather(working, return_exceptions=True)
            await self._worker.close()
            if self._tracer is not None:
                await self._tracer.stop()
        if not working.cancelled():
            # An error must not end as exit code 0.
            working.result()


async def _first(working: "asyncio.Task[None]", stop: asyncio.Event) -> None:
    """Return when the work has ended or ``stop`` is set."""
    stopped = asyncio.create_task(stop.wait())
    await asyncio.wait((working, stopped), return_when=asyncio.FIRST_COMPLETED)
    stopped.cancel()
    await asyncio.gather(stopped, return_exceptions=True)
