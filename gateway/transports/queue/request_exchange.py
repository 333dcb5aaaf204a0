"""The exchange between one gateway process and one queue: it writes calls, reads replies, and monitors the queue.

    begin     read Redis' time and the presences; write open calls again that may be repeated
    write     write all that has gathered in one pipeline, and process its answers
    read      read replies as they arrive
    monitor   look at the queue each second (``queue_monitor``)

The connection may break at any moment. Then it is unknown which writes Redis has executed and which data it still has:
it may be another server now, or the same one without its last second. So each new session first writes the open calls
again that may be repeated. Bridges recognize a call by its ID, and do not call their worker again.
"""

import asyncio
import secrets
from collections.abc import Callable
from functools import partial
from math import inf
from time import monotonic
from typing import Final

import structlog

from gateway.engine.verdicts import Failure
from gateway.redis.addresses import RedisAddress
from gateway.redis.link import Link
from gateway.redis.slot_clients import home_client
from gateway.telemetry.labels import WorkerEvent
from gateway.transports.limits import TransportLimits
from gateway.transports.queue.abandoned_streams import AbandonedStreams
from gateway.transports.queue.clock import RedisClock
from gateway.transports.queue.codec import read_replies
from gateway.transports.queue.consumer_registry import ConsumerRegistry
from gateway.transports.queue.failures import Failures
from gateway.transports.queue.names import Names
from gateway.transports.queue.open_calls import OpenCall, OpenCalls
from gateway.transports.queue.outbox import Outbox
from gateway.transports.queue.queue_monitor import REPLIES_MS, PresenceReader, QueueMonitor, forgotten
from gateway.transports.queue.seals import QueueSeals
from gateway.transports.queue.session import CONNECTIONS, Session, open_session

_LOG: Final = structlog.get_logger(__name__)

HEARTBEAT_SECONDS: Final = 1.0
"""How often a gateway looks at the queue: as often as bridges write their presences."""

SWEEP_SECONDS: Final = 0.1
"""How often calls whose deadline is over are removed. The engine no longer waits for them by then."""

BLOCK_SECONDS: Final = 1.0
"""How long a read of replies blocks. An answer at least this often shows that the connection is alive."""

READ: Final = 16
"""Entries of the reply stream in one read; each holds all replies that a bridge had ready."""

GATHER: Final = 16
"""Turns of the event loop that a pipeline gathers calls while others are open: a pipeline costs about 200 µs, a turn a
twentieth of that, and each turn may bring replies after which the next calls follow. A single call does not wait."""

UNREADABLE_LOG_SECONDS: Final = 60.0
"""How often unreadable messages in the queue are logged; the metric counts them all."""

_START: Final = b"0-0"
"""Before the first entry of any stream."""

_MARK: Final = [b"m", b""]
"""The entry with which the reply stream is created: no command creates an empty stream."""


class RequestExchange:
    """The exchange of one gateway process with one queue.

    Args:
        names: of the queue.
        seals: of the queue.
        address: of Redis.
        limits: see TransportLimits.
        failures: makes failures.
        count: counts events.
        changed: called when the present bridges, or the reason that there are none, may have changed.
        reroute: called with a call that was removed from an abandoned lane.
        report: called each second with the number of calls in the queue, and the age of the oldest in seconds.
    """

    def __init__(  # noqa: PLR0913 - all by name
        self,
        *,
        names: Names,
        seals: QueueSeals,
        address: RedisAddress,
        limits: TransportLimits,
        failures: Failures,
        count: Callable[[WorkerEvent, int], object],
        changed: Callable[[], object],
        reroute: Callable[[OpenCall], object],
        report: Callable[[int, float], object],
    ) -> None:
        self._names = names
        self._seals = seals
        self._limits = limits
        self._failures = failures
        self._count = count
        self._changed = changed
        self._reroute = reroute
        self._report_queue = report
        self.instance = secrets.token_hex(16)
        self.open = OpenCalls()
        self.registry = ConsumerRegistry()
        self.clock = RedisClock()
        self.outbox = Outbox(names, self.instance, seals, self.clock, limits.worker_batch_bytes)
        self.has_looked = False
        """Whether the presences have been read."""
        self.has_unknown = False
        """Whether a bridge is present whose key this gateway does not have."""
        self._abandoned = AbandonedStreams(names)
        self._presences = PresenceReader(seals)
        self._read_to = _START
        self._has_replies = False
        self._back_since: int | None = None
        self._is_due = False
        self._logged_at = -UNREADABLE_LOG_SECONDS
        self._wake_up = asyncio.Event()
        self._sweeping: asyncio.TimerHandle | None = None
        self._loop = asyncio.get_running_loop()
        seconds = limits.queue_redis_seconds
        self.link = Link(
            connect=partial(home_client, address, names.workers, seconds=seconds, connections=CONNECTIONS),
            opened=partial(open_session, seconds=seconds),
            work=self._run_session,
            lost=self._lost,
            seconds=seconds,
            named={"scheme": address.shown, "queue": names.stream},
        )
        self.link.start()

    # ---------------------------------------------------------------------------------------------- for calls

    def put(self, call: OpenCall) -> None:
        """Write a call to its lane."""
        self.outbox.put(call)
        self._wake_up.set()
        self.watch()

    def watch(self) -> None:
        """Ensure that calls end at their deadlines."""
        if self._sweeping is None:
            self._sweeping = self._loop.call_later(SWEEP_SECONDS, self._sweep)

    def fail(self, call: OpenCall, failure: Failure) -> None:
        """End a call with a failure."""
        if not call.is_done:
            self._remove(call)
            call.failed(failure)

    def give_up(self, call: OpenCall) -> None:
        """Cancel a call."""
        if not call.is_done:
            self._remove(call)

    async def close(self) -> None:
        """End all open calls, and remove this gateway's data from Redis if it can be reached."""
        if self._sweeping is not None:
            self._sweeping.cancel()
        for call in self.open:
            call.abort()
            if call.may_repeat:
                self.give_up(call)
            else:
                self.open.close(call)
        await self.link.close(self._leave)

    def _remove(self, call: OpenCall) -> None:
        self.open.close(call)
        self.outbox.cancel(call)
        self._wake_up.set()

    def _sweep(self) -> None:
        self._sweeping = None
        now, most = monotonic(), self._limits.queue_redis_seconds
        # When Redis has just come back, the waiting calls are about to be written.
        expired_before = -inf if self.link.is_back(most) else now - most
        expired = 0
        for call in self.open:
            if call.deadline <= now:
                expired += 1
                self.fail(call, self._failures.late())
            elif call.since <= expired_before and not call.was_taken and not call.is_in_doubt:
                self.fail(call, self._failures.redis_away(self.link.why))
        if expired:
            self._count(WorkerEvent.EXPIRED, expired)
        if len(self.open):
            self.watch()

    # --------------------------------------------------------------------------------------------- a session

    async def _run_session(self, session: Session) -> None:
        await self._begin(session)
        tasks = [asyncio.create_task(self._write(session)), asyncio.create_task(self._read(session))]
        try:
            done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                task.result()
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _begin(self, session: Session) -> None:
        self._seals.refresh()
        self._back_since = None
        # Another server may number entries by another clock. A reply that is read twice counts as unsolicited.
        self._read_to = _START
        self.outbox.has_read(None)
        await self._monitor(session)
        self._put_again()

    def _put_again(self) -> None:
        again = [call for call in self.open if call.is_sent and call.may_repeat]
        if again:
            self._count(WorkerEvent.RESENT, len(again))
            self.outbox.put_again(again)
            self._wake_up.set()

    async def _write(self, session: Session) -> None:
        timer = self._loop.call_later(HEARTBEAT_SECONDS, self._due)
        # The previous session may have left calls.
        self._wake_up.set()
        try:
            while True:
                await self._wake_up.wait()
                self._wake_up.clear()
                while self.outbox or self._is_due:
                    await self._gather()
                    await self._flush(session)
                    if self._is_due:
                        self._is_due = False
                        await self._monitor(session)
                        timer = self._loop.call_later(HEARTBEAT_SECONDS, self._due)
        finally:
            timer.cancel()

    def _due(self) -> None:
        self._is_due = True
        self._wake_up.set()

    async def _gather(self) -> None:
        for _ in range(GATHER):
            if len(self.open) == self.outbox.unsent:
                return
            await asyncio.sleep(0)

    async def _flush(self, session: Session) -> None:
        batch = self.outbox.batch()
        if not batch.commands:
            return
        answers = await session.execute(batch.commands)
        refused, moved = self.outbox.written(batch, answers)
        for call, error in refused:
            self.fail(call, self._failures.refused(error))
        if moved is not None:
            raise moved

    async def _read(self, session: Session) -> None:
        name, block = self._names.replies(self.instance), int(BLOCK_SECONDS * 1000)
        while True:
            command = ("XREAD", "COUNT", READ, "BLOCK", block, "STREAMS", name, self._read_to)
            for _, entries in await session.wait_for_changes(command, BLOCK_SECONDS) or ():
                for entry, fields in entries:
                    self._read_to = entry
                    self._received(fields)
            self.outbox.has_read(self._read_to)

    def _received(self, fields: list[bytes]) -> None:
        if fields == _MARK:
            return
        sealed = fields[1] if fields[:1] == _MARK[:1] else b""
        replies = read_replies(self._seals, self.instance, sealed, self.clock.now())
        if replies is None:
            self._unreadable(1, "replies")
            return
        unsolicited_count = 0
        for reply in replies.replies:
            call = self.open.answered(reply)
            if call is None:
                unsolicited_count += 1
                continue
            self.open.close(call)
            self.outbox.answered(call)
            call.replied(reply)
        if unsolicited_count or not replies.replies:
            self._count(WorkerEvent.UNSOLICITED, max(unsolicited_count, 1))

    # --------------------------------------------------------------------------------------------- monitoring

    async def _monitor(self, session: Session) -> None:
        if self._seals.refresh():
            self._presences.forget()
        self._select_lanes(self.registry.lanes())
        monitor = QueueMonitor(self._names, self.instance, self.outbox.lanes)
        sent = monotonic()
        monitor.received(await session.execute(monitor.commands), self.clock, sent)
        if monitor.is_forgotten:
            await self._make_replies(session)
        now = self.clock.now()
        self._back_since = now if self._back_since is None else self._back_since
        bridges, unreadable = self._presences.of(monitor.presences)
        if unreadable:
            self._unreadable(unreadable, "presences")
        changed = self.registry.update(bridges, now, self._back_since) or not self.has_looked
        unknown = self._presences.has_unknown()
        if unknown != self.has_unknown:
            self.has_unknown, changed = unknown, True
        self.has_looked = True
        removable = forgotten(bridges, now)
        if removable:
            await session.execute([("HDEL", self._names.workers, *removable)])
        for name, lane in self.outbox.lanes.items():
            lane.observe(self.registry.of(name))
        self._report(monitor.oldest, now)
        if changed:
            self._changed()
        await self._clear_abandoned(session)

    async def _clear_abandoned(self, session: Session) -> None:
        """Remove calls from abandoned lanes."""
        abandoned = self._abandoned.abandoned(self.outbox.lanes)
        if not abandoned:
            return
        taken = await self._abandoned.remove(session, (call for call in self.open if call.lane in abandoned))
        for call in (*taken.free, *taken.in_doubt):
            call.entry = None
        for call in taken.free:
            if not call.is_done:
                self._reroute(call)
        for call in taken.in_doubt:
            self.fail(call, self._failures.in_doubt())

    async def _make_replies(self, session: Session) -> None:
        """Create the reply stream, which does not exist: Redis is new, or has lost its data."""
        name = self._names.replies(self.instance)
        made, _ = await session.execute([("XADD", name, "*", *_MARK), ("PEXPIRE", name, REPLIES_MS)])
        if isinstance(made, BaseException):
            raise made
        self._read_to = _START
        if self._has_replies:
            self._put_again()
        self._has_replies = True

    def _select_lanes(self, lanes: tuple[str, ...]) -> None:
        """Monitor the lanes that a bridge reads or that have calls of this gateway, and no others."""
        for name in lanes:
            self.outbox.lane(name)
        ours = {call.lane for call in self.open}
        for name in tuple(self.outbox.lanes):
            if name not in lanes and name not in ours:
                del self.outbox.lanes[name]

    def _report(self, oldest_entry: int | None, now: int) -> None:
        oldest = self.open.oldest()
        ages = [0.0 if oldest is None else monotonic() - oldest]
        if oldest_entry is not None:
            ages.append((now - oldest_entry) / 1000)
        self._report_queue(sum(lane.length for lane in self.outbox.lanes.values()), max(ages))

    # ------------------------------------------------------------------------------------------------ errors

    def _lost(self, error: Exception, was_up: bool) -> None:  # noqa: FBT001 - Link's own callback
        del error, was_up  # the link has logged it
        self._count(WorkerEvent.REDIS_LOST, 1)
        self._changed()

    def _unreadable(self, number: int, what: str) -> None:
        self._count(WorkerEvent.UNREADABLE, number)
        now = monotonic()
        if now - self._logged_at >= UNREADABLE_LOG_SECONDS:
            self._logged_at = now
            _LOG.warning(
                "dropped messages that cannot be opened; compare the key files, and check what else writes there",
                queue=self._names.stream,
                among=what,
                number=number,
            )

    async def _leave(self, session: Session) -> None:
        """Delete the entries of canceled calls, and the reply stream."""
        if self.outbox:
            await session.execute(self.outbox.batch().commands)
        await session.execute([("DEL", self._names.replies(self.instance))])
