"""One worker: all its addresses, and the choice of the address for each call.

Calls use round robin over the addresses that have a callable connection, a closed circuit for the policy, and the
policy as it was described. Where no circuit is closed, they use all addresses: an open circuit prefers others, it never
leaves a policy without its worker. Then ``worker_circuit_in_flight`` bounds how many calls wait for the answers.
Consecutive calls with the same document use the same connection, where the document is sent once.

If no address can be called, a call waits while one is being resolved, connected or described, for the first time since
it was lost; and for a worker that the gateway has lost and starts again. Otherwise it fails at once, with the reason.
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
from gateway.transports.answer_room import AnswerRoom
from gateway.transports.descriptions import Description, Descriptions
from gateway.transports.grpc.addresses import resolve
from gateway.transports.grpc.connection import Connection, State
from gateway.transports.grpc.describe_client import DescribeClient
from gateway.transports.grpc.dialer import Dialer
from gateway.transports.grpc.endpoint import Endpoint
from gateway.transports.grpc.endpoint_set import EndpointSet
from gateway.transports.grpc.failures import Failures
from gateway.transports.grpc.probe import send_probe
from gateway.transports.grpc.retries import RetryingCall
from gateway.transports.grpc.retry_budget import RetryBudget
from gateway.transports.in_flight import InFlight, tenant_of
from gateway.transports.limits import Backlog, TransportLimits
from gateway.transports.loop_lag import LoopLag
from gateway.transports.messages import OutcomeReader, outcome_answer
from gateway.transports.outcomes import Outcomes
from gateway.transports.version_skew import VersionSkew
from gateway.transports.worker_channel import Answered, count_worker_event

_LOG: Final = structlog.get_logger(__name__)

RESTART_WAIT_SECONDS: Final = 3.0
"""The time after the loss of a worker that the gateway starts again, in which calls wait for it. A worker in Python
starts in 0.4 s; this is enough on a machine that is eight times as busy, and for a JVM."""


class GrpcWorker:
    """Calls one worker.

    Args:
        name: the Worker's name, for messages.
        target: a gRPC target.
        limits: see TransportLimits.
        dialer: creates channels.
        version_skew: records answers in another version than the described one.
        connections: the minimum number; None: ``limits.worker_connections``.
        events: counts the worker's events.
        lag: of the event loop; None: measured by the worker itself.
        is_supervised: the gateway starts the worker, and starts it again when it ends.
        resolver: resolves a target to addresses.
        read_outcome: converts an outcome to an answer; None: ``outcome_answer``. A Failure may be retried.
        room: in which the answers of unary calls of all workers are received; None: this worker has its own.
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
        lag: LoopLag | None = None,
        is_supervised: bool = False,
        resolver: Callable[[str], Awaitable[tuple[str, ...]]] = resolve,
        read_outcome: OutcomeReader | None = None,
        room: AnswerRoom | None = None,
    ) -> None:
        self.name = name
        self.target = target
        self.version_skew = version_skew or VersionSkew(limits.worker_settle_seconds)
        self.live: tuple[Description, ...] = ()
        """The descriptions of the connected replicas; more than one during a rolling update."""
        self.never = ""
        """See DescribableChannel: a gRPC worker may always become reachable."""
        self.is_doubted = False
        """Whether an answer has contradicted its connection's description, and Describe was not called again since."""
        self.retries = RetryBudget(limits.worker_retry_share)
        self.lag = lag or LoopLag()
        self._owns_lag = lag is None
        self._is_supervised = is_supervised
        self._lost_at = float("-inf")
        self._limits = limits
        self._read_outcome = read_outcome
        dialer = dialer or Dialer(target, limits)
        self._events = events or NoEvents()
        self._failures = Failures(name, target, limits.message_characters, dialer.tls)
        self._outcomes = Outcomes(
            name, limits.message_characters, self._failures.internal, read_outcome or outcome_answer
        )
        self.read = self._outcomes.read
        self.report_invalid_hint = self._outcomes.report_invalid_hint
        self._backlog = Backlog(limits.worker_backlog_bytes)
        self._room = room or AnswerRoom(limits)
        self._descriptions = Descriptions()
        self._ring: list[Endpoint] = []
        self._turn = 0
        self._last: tuple[object, Endpoint, Connection] | None = None
        self._open: set[RetryingCall] = set()
        self._opened: frozenset[str] = frozenset()  # policies whose circuit is open at an endpoint
        self._unanswered: dict[str, InFlight] = {}  # of policies whose circuits are open at all endpoints
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
            resolver=resolver,
            failures=self._failures,
            connect=self._connect,
            changed=self._update,
            circuit_changed=self._circuit_changed,
        )

    # ---------------------------------------------------------------------------------------------- for calls

    def call(
        self, call: PolicyCall, answered: Answered, fits: frozenset[Description] | None = None
    ) -> Callable[[], object]:
        """See WorkerChannel."""
        retrying = RetryingCall(self, call, answered, fits)
        refusal = self._refusal(call)
        self._open.add(retrying)
        self._idle.clear()
        if refusal is not None:
            asyncio.get_running_loop().call_soon(retrying.fail, refusal)
            return retrying.cancel
        self.retries.calls += 1
        picked = self.pick(retrying)
        if picked is not None and self._may_send(retrying, picked[0]):
            retrying.send(*picked)
            if call.policy.qualified_name in self._opened:
                self._probe(retrying, picked[0])
        else:
            # Later: ``answered`` must not be called inside this method.
            asyncio.get_running_loop().call_soon(self._wait_or_fail, retrying)
        return retrying.cancel

    def _refusal(self, call: PolicyCall) -> Failure | None:
        """The failure if a limit is reached."""
        if not self._backlog.has_room(len(call.document.content)):
            self.count(WorkerEvent.BACKLOG)
            return self._failures.too_much(self._backlog.bytes, self._backlog.limit)
        return None

    def pick(self, retrying: RetryingCall, *, untried: bool = False) -> tuple[Endpoint, Connection] | None:
        """The endpoint and connection for the next attempt of a call; None: there is none.

        Args:
            retrying: the call.
            untried: only an endpoint at which it has not failed.
        """
        ring = self._ring
        count = len(ring)
        if not count:
            return None
        call, fits, tried = retrying.call, retrying.fits, retrying.tried
        policy = call.policy.qualified_name
        last = self._last
        if last is not None and last[0] is call.document and not tried:
            _, endpoint, connection = last
            if (
                connection.can_be_called
                and (fits is None or connection.description in fits)
                and policy not in endpoint.open_circuits
            ):
                return endpoint, connection
        first: tuple[Endpoint, Connection] | None = None
        now = monotonic()
        turn = self._turn
        for step in range(1, count + 1):
            endpoint = ring[(turn + step) % count]
            if untried and endpoint in tried:
                continue
            picked = endpoint.pick(fits, now)
            if picked is None:
                continue
            is_closed = policy not in endpoint.open_circuits
            if is_closed or (not call.cancellable and endpoint.breaker(policy).lets_through(now)):
                self._turn = (turn + step) % count
                self._last = (call.document, endpoint, picked) if is_closed else None
                return endpoint, picked
            first = first or (endpoint, picked)
        if first is not None:
            self._turn = (turn + 1) % count
        return first

    def _probe(self, retrying: RetryingCall, called: Endpoint) -> None:
        """Send copies of a call to endpoints whose circuits are open, if they are due and the call goes to another."""
        call, now = retrying.call, monotonic()
        policy = call.policy.qualified_name
        if not call.cancellable or policy in called.open_circuits:
            return
        for endpoint in self._ring:
            if policy not in endpoint.open_circuits:
                continue
            breaker, connection = endpoint.breaker(policy), endpoint.pick(retrying.fits, now)
            if connection is not None and breaker.wants_probe(now) and self._backlog.has_room(call.size):
                self.count(WorkerEvent.CIRCUIT_PROBE)
                send_probe(call, breaker, connection)

    def _may_send(self, retrying: RetryingCall, endpoint: Endpoint) -> bool:
        """Whether a call may be sent to this endpoint. If its circuit is open, so are all others; then the calls that
        wait for an answer of the policy are bounded. A retry has its place already.
        """
        policy = retrying.call.policy.qualified_name
        if policy not in endpoint.open_circuits or retrying.is_retry or not retrying.call.cancellable:
            return True
        waiting = self._unanswered.get(policy)
        if waiting is None:
            waiting = self._unanswered[policy] = InFlight(self._limits.worker_circuit_in_flight)
        tenant = tenant_of(retrying.call)
        if not waiting.take(tenant):
            return False
        retrying.waits_in = waiting
        return True

    def send_or_wait(self, retrying: RetryingCall) -> bool:
        """See EndpointPicker."""
        picked = self.pick(retrying)
        if picked is None:
            return self._wait(retrying)
        if not self._may_send(retrying, picked[0]):
            return False
        retrying.send(*picked)
        return True

    def late(self) -> Failure:
        """See EndpointPicker."""
        return self._failures.late()

    def finished(self, retrying: RetryingCall) -> None:
        """See EndpointPicker."""
        self._open.discard(retrying)
        waits_in = retrying.waits_in
        if waits_in is not None:
            tenant = tenant_of(retrying.call)
            waits_in.remove(tenant)
            if not waits_in.open:
                self._unanswered.pop(tenant[0], None)
        if self._waiting and (alarm := self._waiting.pop(retrying, None)) is not None:
            alarm.cancel()
        if not self._open:
            self._idle.set()

    def count(self, event: WorkerEvent, number: int = 1) -> None:
        """See EndpointPicker."""
        count_worker_event(self._events, self.name, event, number)

    # ----------------------------------------------------------------------------------------------- waiting

    def _wait_or_fail(self, retrying: RetryingCall) -> None:
        if not retrying.is_done and not self.send_or_wait(retrying):
            retrying.fail(self.failure_of(retrying))

    def _wait(self, retrying: RetryingCall) -> bool:
        if self._is_closed or not self._can_recover():
            return False
        if retrying not in self._waiting:
            now, loop = monotonic(), asyncio.get_running_loop()
            left = max(retrying.call.deadline - now, 0.0)
            until_given_up = self._lost_at + RESTART_WAIT_SECONDS - now
            if self._is_supervised and 0.0 < until_given_up < left:
                self._waiting[retrying] = loop.call_later(until_given_up, self._has_waited, retrying)
            else:
                # Timers have a maximum; a day is longer than any call.
                self._waiting[retrying] = loop.call_later(min(left, 86_400.0), retrying.fail, self._failures.late())
        return True

    def _has_waited(self, retrying: RetryingCall) -> None:
        del self._waiting[retrying]
        self._wait_or_fail(retrying)

    def _can_recover(self) -> bool:
        if not self._endpoints.is_resolved:
            return not self._endpoints.why
        connections = self._endpoints.connections()
        if any(connection.can_be_called for connection in connections):
            return False  # callable, but not for this call
        if self._is_supervised and monotonic() < self._lost_at + RESTART_WAIT_SECONDS:
            return True
        return any(
            connection.state in {State.CONNECTING, State.DESCRIBING} and not connection.why
            for connection in connections
        )

    def failure_of(self, retrying: RetryingCall) -> Failure:
        """See EndpointPicker."""
        connections = self._endpoints.connections()
        called = [connection for connection in connections if connection.can_be_called]
        if called:
            fits = retrying.fits
            if fits is not None and not any(connection.description in fits for connection in called):
                return self._failures.other_version(retrying.call.policy.policy)
            policy = retrying.call.policy
            waiting = self._unanswered.get(policy.qualified_name)
            if waiting is not None and not retrying.is_retry and not waiting.has_room(tenant_of(retrying.call)):
                self.count(WorkerEvent.CIRCUIT_IN_FLIGHT)
                return self._failures.circuit_open(policy.policy, waiting.open, waiting.limit)
            return self._failures.unreachable("its connections break before the call is sent")
        if any(connection.state is State.READY and not connection.is_serving for connection in connections):
            return self._failures.not_serving()
        return self._failures.unavailable(self.why) if self.why else self._failures.unreachable("it is not connected")

    @property
    def why(self) -> str:
        """See DescribableChannel: the reason that most connections report."""
        reported = Counter(connection.why for connection in self._endpoints.connections() if connection.why)
        return reported.most_common(1)[0][0] if reported else self._endpoints.why

    # ------------------------------------------------------------------------------------------- for a Connection

    def changed(self, connection: Connection) -> None:
        """See ConnectionObserver."""
        if connection.state is State.CONNECTING:
            self._endpoints.lost()
        self._update()

    def unsolicited(self, connection: Connection, answers: int) -> None:  # noqa: ARG002 - ConnectionObserver's
        """See ConnectionObserver."""
        self.count(WorkerEvent.UNSOLICITED, answers)

    def stream_broke(self, connection: Connection, why: str, *, unsolicited_limit: bool) -> None:
        """See ConnectionObserver."""
        self.count(WorkerEvent.UNSOLICITED_LIMIT if unsolicited_limit else WorkerEvent.STREAM_BROKE)
        _LOG.warning("a stream to a worker broke", worker=self.name, address=connection.address, next=why)

    # ----------------------------------------------------------------------------------------- its availability

    def listen(self, listener: Callable[[], object]) -> None:
        """See DescribableChannel."""
        self._listeners.append(listener)

    def unlisten(self, listener: Callable[[], object]) -> None:
        """See DescribableChannel."""
        self._listeners.remove(listener)

    @property
    def is_connected(self) -> bool:
        """Whether there is a connection, described or not."""
        return any(connection.state in {State.DESCRIBING, State.READY} for connection in self._endpoints.connections())

    def described(self) -> dict[Description, int]:
        """See DescribableChannel."""
        counted: dict[Description, int] = {}
        for connection in self._endpoints.connections():
            if connection.description is not None and connection.is_serving:
                counted[connection.description] = counted.get(connection.description, 0) + 1
        return counted

    def all_with(self, description: Description) -> tuple[DescribeClient, ...]:
        """See DescribableChannel: the connections with this description."""
        return tuple(each.describe_client for each in self._endpoints.connections() if each.description is description)

    def _update(self) -> None:
        """Something has changed: determine which endpoints can be called, and send waiting calls."""
        if self._is_closed:
            return
        for endpoint in self._endpoints.endpoints:
            endpoint.update()
        self._ring = [endpoint for endpoint in self._endpoints.endpoints if endpoint.can_be_called]
        self._last = None
        self._find_open_circuits()
        connections = self._endpoints.connections()
        self.live = tuple({each.description: None for each in connections if each.description is not None})
        self.is_doubted = any(each.is_doubted for each in connections)
        self._report_usable(sum(connection.can_be_called for connection in connections))
        for retrying in tuple(self._waiting):
            if retrying in self._waiting:
                alarm = self._waiting.pop(retrying)
                alarm.cancel()
                self._wait_or_fail(retrying)
        for listener in tuple(self._listeners):
            listener()

    def _report_usable(self, usable: int) -> None:
        before, self._usable = self._usable, usable
        if usable == before:
            return
        self._events.count(WORKER_CONNECTIONS, self.name, amount=usable - before)
        self.count(WorkerEvent.CONNECTED if usable > before else WorkerEvent.DISCONNECTED, abs(usable - before))
        if not usable:
            self._lost_at = monotonic()
            _LOG.warning("a worker is lost: it has no callable connection", worker=self.name, target=self.target)

    def _connect(self, address: str, channel: grpc.aio.Channel) -> Connection:
        return Connection(
            channel,
            address=address,
            owner=self,
            version_skew=self.version_skew,
            descriptions=self._descriptions,
            failures=self._failures,
            backlog=self._backlog,
            room=self._room,
            limits=self._limits,
            read_outcome=self._read_outcome,
        )

    def _find_open_circuits(self) -> None:
        self._opened = frozenset().union(*(endpoint.open_circuits for endpoint in self._ring))

    def _circuit_changed(self, address: str, policy: str, is_open: bool) -> None:  # noqa: FBT001 - a callback
        self.count(WorkerEvent.CIRCUIT_OPENED if is_open else WorkerEvent.CIRCUIT_CLOSED)
        self._find_open_circuits()
        if is_open:
            _LOG.warning(
                "circuit breaker opened: the endpoint answered nothing in time, or another one judged what it did not",
                worker=self.name,
                endpoint=address,
                policy=policy,
            )
        else:
            _LOG.info("circuit breaker closed", worker=self.name, endpoint=address, policy=policy)

    # --------------------------------------------------------------------------------------------------- end

    async def idle(self) -> None:
        """Return when no call is open. Each call has its deadline, so this ends."""
        while self._open:
            await self._idle.wait()

    async def close(self) -> None:
        """Cancel the open calls, and close all connections."""
        self._is_closed = True
        for retrying in tuple(self._open):
            retrying.cancel()
        await self._endpoints.close()
        if self._owns_lag:
            self.lag.close()
        self._events.count(WORKER_CONNECTIONS, self.name, amount=-self._usable)
        self._events.worker_removed(self.name)
