"""One worker: all its addresses, and who of them is called next.

Round robin over the addresses that have a connection which may be called, whose circuit for the policy is closed, and
which hold the policy as it was described. Calls about the same document, one after another, go the same way: there the
document travels once.

Where nobody may be called, a call waits as long as there is hope: an address is being resolved, connected to or
described for the first time since it was lost. Otherwise it fails at once, and says why.
"""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable
from time import monotonic
from typing import Final

import grpc.aio
import structlog

from gateway.engine.policy_call import PolicyCall
from gateway.engine.verdicts import Failure
from gateway.telemetry.events import Events, NoEvents
from gateway.telemetry.labels import GRPC_EVENTS, WorkerEvent
from gateway.telemetry.table import WORKER_CONNECTIONS
from gateway.transports.descriptions import Description, Descriptions
from gateway.transports.grpc.addresses import resolve
from gateway.transports.grpc.connection import Connection, State
from gateway.transports.grpc.describe_client import DescribeClient
from gateway.transports.grpc.dialer import Dialer
from gateway.transports.grpc.endpoint import Endpoint
from gateway.transports.grpc.endpoint_set import EndpointSet
from gateway.transports.grpc.failures import Failures
from gateway.transports.grpc.retries import RetryingCall
from gateway.transports.grpc.retry_budget import RetryBudget
from gateway.transports.limits import Backlog, TransportLimits
from gateway.transports.messages import Reading, outcome_answer
from gateway.transports.outcomes import Outcomes
from gateway.transports.version_skew import VersionSkew
from gateway.transports.worker_channel import Answered, count_worker_event

_LOG: Final = structlog.get_logger(__name__)


class GrpcWorker:
    """Calls one worker.

    Args:
        name: the Worker's name, for messages.
        target: a gRPC target.
        limits: see TransportLimits.
        dialer: makes channels.
        version_skew: hears of answers in another version than the described one.
        connections: how many at least; None: ``limits.worker_connections``.
        events: hears of what happens.
        resolving: gives the addresses of a target.
        reading: makes answers of outcomes; None: as usual. A Failure may be called again elsewhere.
    """

    def __init__(  # noqa: PLR0913 - all but the first three by name
        self,
        name: str,
        target: str,
        limits: TransportLimits,
        *,
        dialer: Dialer | None = None,
        version_skew: VersionSkew | None = None,
        connections: int | None = None,
        events: Events | None = None,
        resolving: Callable[[str], Awaitable[tuple[str, ...]]] = resolve,
        reading: Reading | None = None,
    ) -> None:
        self.name = name
        self.target = target
        self.version_skew = version_skew or VersionSkew(limits.worker_settle_seconds)
        self.live: tuple[Description, ...] = ()
        """What those that are connected say of themselves; more than one while the worker is being updated."""
        self.never = ""
        """Why it cannot be called as long as this process lives: there is always hope."""
        self.is_doubted = False
        """Whether an answer has contradicted what its connection said, which has not been described anew since."""
        self.retries = RetryBudget(limits.worker_retry_share)
        self._limits = limits
        self._reading = reading
        dialer = dialer or Dialer(target, limits)
        self._events = events or NoEvents()
        self._failures = Failures(name, target, limits.message_characters, dialer.tls)
        self._outcomes = Outcomes(name, limits.message_characters, self._failures.internal, reading or outcome_answer)
        self.read = self._outcomes.read
        self.meaningless = self._outcomes.meaningless
        self._backlog = Backlog(limits.worker_backlog_bytes)
        self._descriptions = Descriptions()
        self._ring: list[Endpoint] = []
        self._turn = 0
        self._last: tuple[object, Endpoint, Connection] | None = None
        self._open: set[RetryingCall] = set()
        self._waiting: dict[RetryingCall, asyncio.TimerHandle] = {}
        self._listeners: list[Callable[[], object]] = []
        self._usable = 0
        self._idle = asyncio.Event()
        self._idle.set()
        self._is_closed = False
        self._events.worker_added(name, GRPC_EVENTS)
        self._endpoints = EndpointSet(
            target=target,
            limits=limits,
            wanted=connections or (1 if target.startswith("unix:") else limits.worker_connections),
            dialer=dialer,
            resolving=resolving,
            failures=self._failures,
            connect=self._connect,
            changed=self._look,
            opened=self._opened,
        )

    # ---------------------------------------------------------------------------------------------- for calls

    def call(
        self, call: PolicyCall, answered: Answered, fits: frozenset[Description] | None = None
    ) -> Callable[[], object]:
        """Put ``call`` to the worker; ``answered`` is called once, later, in this loop, unless it is cancelled.

        Args:
            call: the question.
            answered: called with the answer.
            fits: descriptions of which a replica must have one; None: any.

        Returns:
            What cancels the call. Then ``answered`` is not called any more.
        """
        calling = RetryingCall(self, call, answered, fits)
        refusal = None
        if len(self._open) >= self._limits.worker_in_flight or self._backlog.bytes:
            refusal = self._refusal(call)
        self._open.add(calling)
        self._idle.clear()
        if refusal is not None:
            asyncio.get_running_loop().call_soon(calling.fail, refusal)
            return calling.cancel
        self.retries.calls += 1
        place = self.pick(calling)
        if place is not None:
            calling.put(*place)
        else:
            # Never inside the call that calls.
            asyncio.get_running_loop().call_soon(self._wait_or_fail, calling)
        return calling.cancel

    def _refusal(self, call: PolicyCall) -> Failure | None:
        """Why it cannot be taken on."""
        if len(self._open) >= self._limits.worker_in_flight:
            self.count(WorkerEvent.IN_FLIGHT)
            return self._failures.too_many(self._limits.worker_in_flight)
        if not self._backlog.has_room(len(call.document.content)):
            self.count(WorkerEvent.BACKLOG)
            return self._failures.too_much(self._backlog.bytes, self._backlog.limit)
        return None

    def pick(self, calling: RetryingCall, *, untried: bool = False) -> tuple[Endpoint, Connection] | None:
        """Who is called next.

        Args:
            calling: who calls.
            untried: only a replica at which it has not failed.
        """
        ring = self._ring
        count = len(ring)
        if not count:
            return None
        call, fits, tried = calling.call, calling.fits, calling.tried
        policy = call.policy.qualified_name
        last = self._last
        if last is not None and last[0] is call.document and not tried:
            _, endpoint, connection = last
            if (
                connection.can_be_called
                and (fits is None or connection.description in fits)
                and (not endpoint.breakers or endpoint.lets_through(policy, monotonic()))
            ):
                return endpoint, connection
        now = monotonic()
        turn = self._turn
        for step in range(1, count + 1):
            endpoint = ring[(turn + step) % count]
            if untried and endpoint in tried:
                continue
            picked = endpoint.pick(fits, now)
            if picked is None:
                continue
            if not endpoint.breakers or endpoint.lets_through(policy, now):
                self._turn = (turn + step) % count
                self._last = call.document, endpoint, picked
                return endpoint, picked
        return None

    def has_other(self, calling: RetryingCall, endpoint: Endpoint) -> bool:
        """Whether another endpoint than this one may be called, and its circuit is closed."""
        policy = calling.call.policy.qualified_name
        return any(
            other is not endpoint and other.is_closed(policy) and other.holds(calling.fits) for other in self._ring
        )

    def put_or_wait(self, calling: RetryingCall) -> bool:
        """Put it to somebody, or let it wait for somebody. Whether there is hope."""
        place = self.pick(calling)
        if place is not None:
            calling.put(*place)
            return True
        return self._wait(calling)

    def late(self) -> Failure:
        """A call's deadline is over."""
        return self._failures.late()

    def left(self, calling: RetryingCall) -> None:
        """A call has its answer, or nobody waits for it."""
        self._open.discard(calling)
        if self._waiting and (alarm := self._waiting.pop(calling, None)) is not None:
            alarm.cancel()
        if not self._open:
            self._idle.set()

    def count(self, event: WorkerEvent, number: int = 1) -> None:
        """Something happened."""
        count_worker_event(self._events, self.name, event, number)

    # ----------------------------------------------------------------------------------------------- waiting

    def _wait_or_fail(self, calling: RetryingCall) -> None:
        if not calling.is_done and not self.put_or_wait(calling):
            calling.fail(self.why_not(calling))

    def _wait(self, calling: RetryingCall) -> bool:
        if self._is_closed or not self._can_recover():
            return False
        if calling not in self._waiting:
            left = max(calling.call.deadline - monotonic(), 0.0)
            loop = asyncio.get_running_loop()
            # As far as a timer reaches: a day is longer than any call.
            self._waiting[calling] = loop.call_later(min(left, 86_400.0), calling.fail, self._failures.late())
        return True

    def _can_recover(self) -> bool:
        if not self._endpoints.is_resolved:
            return not self._endpoints.why
        connections = self._endpoints.connections()
        if any(connection.can_be_called for connection in connections):
            return False  # somebody is there, and may not be called this
        return any(
            connection.state in {State.CONNECTING, State.DESCRIBING} and not connection.why
            for connection in connections
        )

    def why_not(self, calling: RetryingCall) -> Failure:
        """Why nobody can be called."""
        connections = self._endpoints.connections()
        called = [connection for connection in connections if connection.can_be_called]
        if called:
            fits = calling.fits
            if fits is not None and not any(connection.description in fits for connection in called):
                return self._failures.other_version(calling.call.policy.policy)
            if self.pick(calling) is not None:
                return self._failures.unreachable("its connections break before anything is sent")
            return self._failures.circuit_open(calling.call.policy.policy, self._limits.worker_circuit_open_seconds)
        if any(connection.state is State.READY and not connection.is_serving for connection in connections):
            return self._failures.not_serving()
        return self._failures.because(self.why) if self.why else self._failures.unreachable("it is not connected")

    @property
    def why(self) -> str:
        """Why it is not reached, as far as anybody knows; empty if it is."""
        reported = Counter(connection.why for connection in self._endpoints.connections() if connection.why)
        return reported.most_common(1)[0][0] if reported else self._endpoints.why

    # ------------------------------------------------------------------------------------------- for a Connection

    def changed(self, connection: Connection) -> None:
        """See Owner."""
        if connection.state is State.CONNECTING:
            self._endpoints.lost()
        self._look()

    def unsolicited(self, connection: Connection, answers: int) -> None:  # noqa: ARG002 - as Owner has it
        """See Owner."""
        self.count(WorkerEvent.UNSOLICITED, answers)

    def stream_broke(self, connection: Connection, why: str, *, unsolicited_limit: bool) -> None:
        """See Owner."""
        self.count(WorkerEvent.UNSOLICITED_LIMIT if unsolicited_limit else WorkerEvent.STREAM_BROKE)
        _LOG.warning("a stream to a worker broke", worker=self.name, address=connection.address, next=why)

    # ----------------------------------------------------------------------------------------- its availability

    def listen(self, listener: Callable[[], object]) -> None:
        """Call this whenever somebody is connected, described or lost."""
        self._listeners.append(listener)

    def unlisten(self, listener: Callable[[], object]) -> None:
        """Don't any more."""
        self._listeners.remove(listener)

    @property
    def is_connected(self) -> bool:
        """Whether there is a connection at this moment, described or not."""
        return any(connection.state in {State.DESCRIBING, State.READY} for connection in self._endpoints.connections())

    def described(self) -> dict[Description, int]:
        """Which descriptions the connections have that may be called, and how many have each."""
        counted: dict[Description, int] = {}
        for connection in self._endpoints.connections():
            if connection.description is not None and connection.is_serving:
                counted[connection.description] = counted.get(connection.description, 0) + 1
        return counted

    def all_with(self, description: Description) -> tuple[DescribeClient, ...]:
        """Whom to call about settings: the connections on which this was said."""
        return tuple(each.describer for each in self._endpoints.connections() if each.description is description)

    def _look(self) -> None:
        """Something has changed: see who may be called, and who waits for that."""
        if self._is_closed:
            return
        for endpoint in self._endpoints.endpoints:
            endpoint.look()
        self._ring = [endpoint for endpoint in self._endpoints.endpoints if endpoint.can_be_called]
        self._last = None
        connections = self._endpoints.connections()
        self.live = tuple({each.description: None for each in connections if each.description is not None})
        self.is_doubted = any(each.is_doubted for each in connections)
        self._report_usable(sum(connection.can_be_called for connection in connections))
        for calling in tuple(self._waiting):
            if calling in self._waiting:
                alarm = self._waiting.pop(calling)
                alarm.cancel()
                self._wait_or_fail(calling)
        for listener in tuple(self._listeners):
            listener()

    def _report_usable(self, usable: int) -> None:
        before, self._usable = self._usable, usable
        if usable == before:
            return
        self._events.count(WORKER_CONNECTIONS, self.name, amount=usable - before)
        self.count(WorkerEvent.CONNECTED if usable > before else WorkerEvent.DISCONNECTED, abs(usable - before))
        if not usable:
            _LOG.warning("a worker is lost: no connection to it may be asked", worker=self.name, target=self.target)

    def _connect(self, address: str, channel: grpc.aio.Channel) -> Connection:
        return Connection(
            channel,
            address=address,
            owner=self,
            version_skew=self.version_skew,
            descriptions=self._descriptions,
            failures=self._failures,
            backlog=self._backlog,
            limits=self._limits,
            reading=self._reading,
        )

    def _opened(self, address: str, policy: str) -> None:
        self.count(WorkerEvent.CIRCUIT_OPENED)
        _LOG.warning(
            "circuit breaker opened: most of the latest calls were lost, late or failed",
            worker=self.name,
            endpoint=address,
            policy=policy,
            seconds=self._limits.worker_circuit_open_seconds,
        )

    # --------------------------------------------------------------------------------------------------- end

    async def idle(self) -> None:
        """Return when nothing is open. Each call has its deadline, so this ends."""
        while self._open:
            await self._idle.wait()

    async def close(self) -> None:
        """Break off what is open, and all connections."""
        self._is_closed = True
        for calling in tuple(self._open):
            calling.cancel()
        await self._endpoints.close()
        self._events.count(WORKER_CONNECTIONS, self.name, amount=-self._usable)
        self._events.worker_removed(self.name)
