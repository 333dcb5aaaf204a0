"""The pool of workers: the connection of each, and its process if the gateway starts it; shared between configurations.

During a reload there are two configurations. They share workers by these rules:

* A Worker that is equal in both has one connection and one process. A reload does not restart or reconnect it.
* A worker that no configuration names any more is closed when its calls have ended: a call with side effects continues
  after its review.
* A process that the gateway started is the only one at its target. (On Linux, two processes at one TCP port share its
  connections, and the end of the first removes the Unix socket of the second.) So a worker with both ``command`` and
  ``target`` is not started while another process of the gateway is at that target. A worker without ``target`` gets its
  own socket each time, and replaces its predecessor without a gap.
"""

import asyncio
import contextlib
import itertools
from pathlib import Path
from typing import Final

import structlog
from msgspec import Struct, field
from msgspec.structs import replace

from gateway.extras import NEEDS_REDIS_EXTRA, has_redis_extra
from gateway.policies.workers.grpc_names import socket_path
from gateway.policies.workers.targets import GrpcTarget, HookTarget, QueueTarget, WebhookTarget, Worker
from gateway.telemetry.events import Events, NoEvents
from gateway.telemetry.labels import Transport
from gateway.transports.answer_bounds import AnswerBounds
from gateway.transports.answer_room import AnswerRoom
from gateway.transports.call_meter import CallMeter
from gateway.transports.credentials import WorkerCredentials
from gateway.transports.freed_memory import FreedMemory
from gateway.transports.grpc.dialer import Dialer
from gateway.transports.grpc.worker import GrpcWorker
from gateway.transports.limits import TransportLimits
from gateway.transports.loop_lag import LoopLag
from gateway.transports.socket_directory import SocketDirectory
from gateway.transports.supervisor import Supervisor
from gateway.transports.transport_config import TransportConfig
from gateway.transports.unreachable import UnreachableWorker
from gateway.transports.worker_channel import WorkerChannel

_LOG: Final = structlog.get_logger(__name__)

_Key = tuple[str, str, GrpcTarget | QueueTarget | WebhookTarget | HookTarget | None]
"""Two Workers are the same if these are equal: the name, the absolute gRPC target (a relative socket is relative to the
Worker's file), and the whole transport configuration."""

NO_REDIS: Final = "spec.queue needs Redis; set --queue-redis (for serve, --redis is enough)"
NO_HOOKS: Final = "spec.hook needs a process that runs hooks, and this one does not"
NO_REDIS_EXTRA: Final = f"spec.queue {NEEDS_REDIS_EXTRA}"


class PooledWorker(Struct, kw_only=True, eq=False):
    """One worker. ``leases`` counts the configurations that use it; ``closed`` is set after it is closed.

    ``meter`` calls it, and measures the calls.
    """

    key: _Key
    connection: WorkerChannel
    meter: CallMeter
    supervisor: Supervisor | None
    socket: Path | None
    leases: int = 0
    closed: asyncio.Event = field(default_factory=asyncio.Event)


class WorkerPool:
    """Connects to workers, starts those with a command, and closes those that no configuration uses.

    Args:
        limits: of the calls, and of how long a worker may take to stop.
        events: counts what happens with workers.
        config: settings and credentials of this process for connections to workers.
    """

    def __init__(
        self,
        limits: TransportLimits | None = None,
        events: Events | None = None,
        config: TransportConfig | None = None,
    ) -> None:
        self._limits = limits or TransportLimits()
        self._events = events or NoEvents()
        self._config = config or TransportConfig()
        self._active: dict[_Key, PooledWorker] = {}
        self._closing: set[PooledWorker] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._sockets: SocketDirectory | None = None
        self._numbers = itertools.count()
        self._lag: LoopLag | None = None
        self._room = AnswerRoom(self._limits)
        self._bounds = AnswerBounds(self._limits, self._events, large=FreedMemory().return_soon)

    def take(self, worker: Worker) -> PooledWorker | None:
        """Use a worker; connect to it, and start it, if no configuration uses it yet.

        Returns:
            The worker; None while another process that the gateway started is at its target.
        """
        key = _key(worker)
        pooled = self._active.get(key)
        if pooled is None:
            if self._owner(key) is not None:
                return None
            pooled = self._active[key] = self._create(worker, key)
        pooled.leases += 1
        return pooled

    async def wait_for(self, worker: Worker) -> PooledWorker:
        """Use a worker as soon as its target is free."""
        while (pooled := self.take(worker)) is None:
            owner = self._owner(_key(worker))
            if owner is not None:
                await owner.closed.wait()
        return pooled

    def release(self, pooled: PooledWorker) -> None:
        """Stop using a worker. The last release closes it."""
        pooled.leases -= 1
        if not pooled.leases:
            task = asyncio.create_task(self._close_when_idle(pooled))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def close(self) -> None:
        """Close all workers, even if in use: calls, connections, processes, sockets."""
        for task in tuple(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        pooled_workers = {*self._active.values(), *self._closing}
        self._active.clear()
        await asyncio.gather(*(self._close(pooled) for pooled in pooled_workers), return_exceptions=True)
        if self._lag is not None:
            self._lag.close()
            self._lag = None
        if self._sockets is not None:
            self._sockets.close()
            self._sockets = None

    # --------------------------------------------------------------------------------------------- one worker

    def _create(self, worker: Worker, key: _Key) -> PooledWorker:
        if worker.grpc is not None:
            return self._create_grpc(worker, worker.grpc, key)
        connection = self._create_channel(worker)
        meter = CallMeter(connection, _transport(worker), self._events, bounds=self._bounds, limits=self._limits)
        return PooledWorker(key=key, connection=connection, meter=meter, supervisor=None, socket=None)

    def _create_channel(self, worker: Worker) -> WorkerChannel:
        """A worker of another transport than gRPC. Its module is imported here, only if it is needed."""
        if worker.queue is not None:
            return self._create_queue_channel(worker.name, worker.queue)
        if worker.webhook is not None:
            from gateway.transports.webhook.worker import WebhookWorker  # noqa: PLC0415

            access = self._config.webhooks
            return WebhookWorker(worker.name, worker.webhook, self._limits, access=access, events=self._events)
        if worker.hook is not None:
            if self._config.hooks is None:
                return UnreachableWorker(worker.name, f"hook {worker.hook.path}", NO_HOOKS, self._events)
            return self._config.hooks(worker.name, worker.hook, self._limits, self._events)
        raise ValueError(f"worker {worker.name!r} has no transport")

    def _create_queue_channel(self, name: str, queue: QueueTarget) -> WorkerChannel:
        if self._config.redis is None:
            why = NO_REDIS if has_redis_extra() else NO_REDIS_EXTRA
            return UnreachableWorker(name, f"queue {queue.stream}", why, self._events)
        # Imported here: without queues, a gateway needs neither the library nor its import time.
        from gateway.transports.queue.worker import QueueWorker  # noqa: PLC0415

        return QueueWorker(name, queue, self._limits, redis=self._config.redis, events=self._events)

    def _create_grpc(self, worker: Worker, grpc: GrpcTarget, key: _Key) -> PooledWorker:
        self._lag = self._lag or LoopLag()
        socket = None if grpc.target else self._socket()
        target = key[1] or f"unix:{socket}"
        starts = grpc.command and (socket is not None or self._config.starts_fixed_targets)
        supervisor = Supervisor(worker, target, self._limits) if starts else None
        credentials = WorkerCredentials(worker.name, grpc.tls, grpc.directory)
        connection = GrpcWorker(
            worker.name,
            target,
            self._limits,
            dialer=Dialer(target, self._limits, credentials),
            connections=grpc.connections,
            events=self._events,
            lag=self._lag,
            is_supervised=supervisor is not None,
            room=self._room,
        )
        if supervisor is not None:
            supervisor.start()
        meter = CallMeter(connection, Transport.GRPC, self._events, bounds=self._bounds, limits=self._limits)
        return PooledWorker(key=key, connection=connection, meter=meter, supervisor=supervisor, socket=socket)

    def _socket(self) -> Path:
        self._sockets = self._sockets or SocketDirectory()
        # Numbered, not named: a Worker's name may have 253 characters, a socket's path 107.
        return self._sockets.path / f"{next(self._numbers)}.sock"

    def _owner(self, key: _Key) -> PooledWorker | None:
        """The worker whose process listens at the target of this one."""
        _, target, how = key
        if not isinstance(how, GrpcTarget) or not how.command or not target:
            return None
        pooled_workers = (*self._active.values(), *self._closing)
        return next((each for each in pooled_workers if each.supervisor and each.connection.target == target), None)

    async def _close_when_idle(self, pooled: PooledWorker) -> None:
        await pooled.connection.idle()
        if pooled.leases or self._active.get(pooled.key) is not pooled:
            return  # a configuration uses it again, or it is closed already
        del self._active[pooled.key]
        self._closing.add(pooled)
        _LOG.info("a worker is closed: no configuration names it", worker=pooled.connection.name)
        await self._close(pooled)

    async def _close(self, pooled: PooledWorker) -> None:
        try:
            await pooled.connection.close()
        finally:
            if pooled.supervisor is not None:
                await pooled.supervisor.stop()
            if pooled.socket is not None:
                with contextlib.suppress(OSError):
                    pooled.socket.unlink(missing_ok=True)
            self._closing.discard(pooled)
            pooled.closed.set()


def _transport(worker: Worker) -> Transport:
    if worker.queue is not None:
        return Transport.QUEUE
    return Transport.HOOK if worker.webhook is None else Transport.WEBHOOK


def _key(worker: Worker) -> _Key:
    grpc = worker.grpc
    if grpc is None:
        return worker.name, "", worker.queue or worker.webhook or worker.hook
    path = socket_path(grpc.target, grpc.directory) if grpc.target else None
    target = grpc.target if path is None else f"unix:{path}"
    # The directory matters only for relative paths.
    directory = grpc.directory if grpc.command or grpc.tls else ""
    return worker.name, target, replace(grpc, target=target, directory=directory)
