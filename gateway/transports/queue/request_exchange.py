"""What goes on between one gateway process and one queue: calls out, answers in, and a look at the queue each second.

    begin     Redis' time, who is there; whatever is open and may be repeated is put again
    write     all that has gathered, in one pipeline; then its answers
    read      replies, as they come
    beat      each second, ``monitor`` says what

The connection may break at any of these. Then everything written since is in doubt, and so is all that Redis held: it
may be another server now, or the same without the last second. So each new session begins with putting again what is
open and may be repeated. Bridges know a call by its id, and answer it from memory or not at all.
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
from gateway.redis.homes import home_client
from gateway.redis.link import Link
from gateway.telemetry.labels import WorkerEvent
from gateway.transports.limits import TransportLimits
from gateway.transports.queue.abandoned_streams import AbandonedStreams
from gateway.transports.queue.clock import RedisClock
from gateway.transports.queue.consumer_registry import ConsumerRegistry
from gateway.transports.queue.failures import Failures
from gateway.transports.queue.names import Names
from gateway.transports.queue.open_calls import OpenCall, OpenCalls
from gateway.transports.queue.outbox import Outbox
from gateway.transports.queue.queue_monitor import REPLIES_MS, PresenceReader, QueueMonitor, forgotten
from gateway.transports.queue.seals import QueueSeals
from gateway.transports.queue.session import CONNECTIONS, Session, open_session
from gateway.transports.queue.wire import read_replies

_LOG: Final = structlog.get_logger(__name__)

HEARTBEAT_SECONDS: Final = 1.0
"""How often the queue is looked at: as often as bridges say that they are there."""

SWEEP_SECONDS: Final = 0.1
"""How often calls whose time is over are looked for. Whoever waits for one has given it up by itself."""

BLOCK_SECONDS: Final = 1.0
"""How long Redis waits for replies before it says that there are none: so a dead connection is noticed."""

READ: Final = 16
"""Entries of replies that are read at once; each is all that a bridge had ready at a time."""

GATHER: Final = 16
"""Turns of the loop in which a pipeline is made up while other calls are open: a pipeline costs some 200 µs, a turn a
twentieth of that, and each turn brings answers that free the next calls. Who is called alone does not wait."""

COMPLAIN_SECONDS: Final = 60.0
"""How often the log says that something in the queue is no message of ours; the metric counts them all."""

_START: Final = b"0-0"
"""Before the first entry of any stream."""

_MARK: Final = [b"m", b""]
"""The entry with which a stream of replies is made: there is no command that makes an empty one."""


class RequestExchange:
    """One gateway process at one queue.

    Args:
        names: of the queue.
        seals: seals and opens.
        address: of Redis.
        limits: see TransportLimits.
        failures: names what goes wrong.
        count: told what happens.
        changed: called when who is there, or why nobody is, may have changed.
        homeless: called with a call that was taken out of its lane, where nobody is any more.
        reported: called each second with the number of calls in the queue, and since how many seconds the oldest is
            there.
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
        homeless: Callable[[OpenCall], object],
        reported: Callable[[int, float], object],
    ) -> None:
        self._names = names
        self._seals = seals
        self._limits = limits
        self._failures = failures
        self._count = count
        self._changed = changed
        self._homeless = homeless
        self._reported = reported
        self.instance = secrets.token_hex(16)
        self.open = OpenCalls()
        self.registry = ConsumerRegistry()
        self.clock = RedisClock()
        self.outbox = Outbox(names, self.instance, seals, self.clock, limits.worker_batch_bytes)
        self.has_looked = False
        """Whether it has been read who is there."""
        self.has_unknown = False
        """Whether somebody is there whose messages cannot be opened."""
        self._abandoned = AbandonedStreams(names)
        self._presences = PresenceReader(seals)
        self._read_to = _START
        self._has_replies = False
        self._back_since: int | None = None
        self._is_due = False
        self._complained = -COMPLAIN_SECONDS
        self._something = asyncio.Event()
        self._sweeping: asyncio.TimerHandle | None = None
        self._loop = asyncio.get_running_loop()
        seconds = limits.queue_redis_seconds
        self.link = Link(
            connect=partial(home_client, address, names.workers, seconds=seconds, connections=CONNECTIONS),
            opened=partial(open_session, seconds=seconds),
            work=self._converse,
            lost=self._lost,
            seconds=seconds,
            named={"scheme": address.shown, "queue": names.stream},
        )
        self.link.start()

    # ---------------------------------------------------------------------------------------------- for calls

    def put(self, call: OpenCall) -> None:
        """Write a call, whose lane is known."""
        self.outbox.put(call)
        self._something.set()
        self.watch()

    def watch(self) -> None:
        """See to it that no call stays open beyond its time."""
        if self._sweeping is None:
            self._sweeping = self._loop.call_later(SWEEP_SECONDS, self._sweep)

    def fail(self, call: OpenCall, failure: Failure) -> None:
        """It will not be answered."""
        if not call.is_done:
            self._take_back(call)
            call.failed(failure)

    def give_up(self, call: OpenCall) -> None:
        """Nobody waits for it."""
        if not call.is_done:
            self._take_back(call)

    async def close(self) -> None:
        """Break off what is open, and leave nothing of this gateway in Redis, as far as that can be reached."""
        if self._sweeping is not None:
            self._sweeping.cancel()
        for call in self.open:
            call.broken_off()
            if call.may_repeat:
                self.give_up(call)
            else:
                self.open.close(call)
        await self.link.close(self._leave)

    def _take_back(self, call: OpenCall) -> None:
        self.open.close(call)
        self.outbox.take_back(call)
        self._something.set()

    def _sweep(self) -> None:
        self._sweeping = None
        now, most = monotonic(), self._limits.queue_redis_seconds
        # What has waited for Redis to come back is about to be written.
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

    async def _converse(self, session: Session) -> None:
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
        # It may be another server, which numbers what it is given by another clock: what comes twice is a stray.
        self._read_to = _START
        self.outbox.has_read(None)
        await self._monitor(session)
        self._put_again()

    def _put_again(self) -> None:
        again = [call for call in self.open if call.is_sent and call.may_repeat]
        if again:
            self._count(WorkerEvent.RESENT, len(again))
            self.outbox.put_again(again)
            self._something.set()

    async def _write(self, session: Session) -> None:
        timer = self._loop.call_later(HEARTBEAT_SECONDS, self._due)
        # What was left when the session before broke.
        self._something.set()
        try:
            while True:
                await self._something.wait()
                self._something.clear()
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
        self._something.set()

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
            call.reported(reply)
        if unsolicited_count or not replies.replies:
            self._count(WorkerEvent.UNSOLICITED, max(unsolicited_count, 1))

    # ------------------------------------------------------------------------------------------------ a beat

    async def _monitor(self, session: Session) -> None:
        if self._seals.refresh():
            self._presences.forget()
        self._look_at(self.registry.lanes())
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
        await self._leave_abandoned(session)

    async def _leave_abandoned(self, session: Session) -> None:
        """Take what can be taken out of lanes in which nobody is any more."""
        abandoned = self._abandoned.abandoned(self.outbox.lanes)
        if not abandoned:
            return
        taken = await self._abandoned.taken_out(session, (call for call in self.open if call.lane in abandoned))
        for call in (*taken.free, *taken.in_doubt):
            call.entry = None
        for call in taken.free:
            if not call.is_done:
                self._homeless(call)
        for call in taken.in_doubt:
            self.fail(call, self._failures.in_doubt())

    async def _make_replies(self, session: Session) -> None:
        """There is no stream for our replies: Redis is new, or has lost its data."""
        name = self._names.replies(self.instance)
        made, _ = await session.execute([("XADD", name, "*", *_MARK), ("PEXPIRE", name, REPLIES_MS)])
        if isinstance(made, BaseException):
            raise made
        self._read_to = _START
        if self._has_replies:
            self._put_again()
        self._has_replies = True

    def _look_at(self, lanes: tuple[str, ...]) -> None:
        """Look at the lanes in which somebody is, or something of ours; forget others."""
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
        self._reported(sum(lane.length for lane in self.outbox.lanes.values()), max(ages))

    # ----------------------------------------------------------------------------------------------- trouble

    def _lost(self, error: Exception, was_up: bool) -> None:  # noqa: FBT001 - Link's own callback
        del error, was_up  # the link has logged it
        self._count(WorkerEvent.REDIS_LOST, 1)
        self._changed()

    def _unreadable(self, number: int, what: str) -> None:
        self._count(WorkerEvent.UNREADABLE, number)
        now = monotonic()
        if now - self._complained >= COMPLAIN_SECONDS:
            self._complained = now
            _LOG.warning(
                "something in a queue is no message of ours; has it another key, or does somebody else write there?",
                queue=self._names.stream,
                among=what,
                number=number,
            )

    async def _leave(self, session: Session) -> None:
        """Take back what is open, and the stream of replies."""
        if self.outbox:
            await session.execute(self.outbox.batch().commands)
        await session.execute([("DEL", self._names.replies(self.instance))])
