"""One channel to one address of a worker: described, health-checked, and called.

    connecting   there is no connection, or it was lost; gRPC connects with backoff
    describing   there is a connection; the gateway calls Describe
    ready        the worker is described, and can be called unless it reports NOT_SERVING
    draining     a successor replaces it: it takes no new calls, and closes when its open calls are answered

A new connection may reach another version of the worker. So a description is valid for its connection only; the worker
is described again on the next connection, and when an answer contradicts the description.

A call uses the stream of the connection, except for these, which are unary calls:

* all calls, if the worker does not implement ReviewStream, and for some time if its streams break repeatedly;
* calls of a policy with side effects, so that no other policy can break their stream;
* calls with a large document, so that small documents do not wait behind it;
* retries of calls whose stream broke, so that the call that broke it does not break another one.
"""

import asyncio
from collections.abc import Coroutine
from enum import Enum
from time import monotonic
from typing import Any, Final, Protocol

import grpc
import grpc.aio
import structlog
from google.protobuf.message import DecodeError

from gateway.engine.policy_call import PolicyCall
from gateway.engine.verdicts import Answer, Failure
from gateway.slices import SLOW_BYTES
from gateway.telemetry.labels import WorkerEvent
from gateway.transports.answer_room import AnswerRoom
from gateway.transports.descriptions import Description, Descriptions
from gateway.transports.grpc.call_attempt import CallAttempt, CallResult
from gateway.transports.grpc.describe_client import SERVICE, DescribeClient
from gateway.transports.grpc.failures import Failures, is_late
from gateway.transports.grpc.health import HealthWatch
from gateway.transports.grpc.stream import ReviewStream
from gateway.transports.grpc.unary_review import NoRoomError, ReviewMethod, UnaryReview
from gateway.transports.limits import Backlog, TransportLimits
from gateway.transports.messages import OutcomeReader, outcome_answer, review_response
from gateway.transports.proto.admission.worker.v1 import worker_pb2 as pb
from gateway.transports.version_skew import VersionSkew
from gateway.transports.worker_channel import WorkerError

RETRY_SECONDS: Final = (0.25, 5.0)
"""First and longest pause before Describe is retried."""

SHORT_SECONDS: Final = 1.0
"""A connection that ended sooner was of no use: what accepts it is broken, or a proxy without a worker behind it."""

RECONNECT_SECONDS: Final = (0.1, 2.0)
"""First and longest pause before the next connection after two short ones in succession; doubled each time. gRPC's
backoff is for attempts that fail: it connected to a server that closes each connection 350 times a second."""

DESCRIBE_INTERVAL_SECONDS: Final = 1.0
"""The shortest time between two Describe calls on one connection. In a rolling update every second answer may have the
other version: a Describe call for each would double the worker's load; one a second costs less than health checks."""

STREAM_SECONDS: Final = (0.1, 1.0)
"""First and longest pause before a broken stream is opened again; after ``MAX_STREAM_BREAKS``,
``worker_stream_pause_seconds`` applies."""

REPORT_SECONDS: Final = 10.0
"""The time without a connection after which the log reports the reason. A worker that is starting does not accept
connections yet."""

MAX_STREAM_BREAKS: Final = 3
"""Consecutive streams that break without an answer, before unary calls replace streams for some time."""

NOT_CONNECTED: Final = "failed to connect to all addresses"
"""How gRPC begins the status of a call for which it had no connection: the call was not sent."""

_LOG: Final = structlog.get_logger(__name__)


class State(Enum):
    """The state of a connection, see above."""

    CONNECTING = 0
    DESCRIBING = 1
    READY = 2
    CLOSED = 3


class ConnectionObserver(Protocol):
    """The worker, as seen by one of its connections."""

    def changed(self, connection: "Connection") -> None:
        """The state, description or health of a connection has changed."""

    def unsolicited(self, connection: "Connection", answers: int) -> None:
        """A connection received so many unsolicited answers."""

    def stream_broke(self, connection: "Connection", why: str, *, unsolicited_limit: bool) -> None:
        """The stream of a connection broke; ``unsolicited_limit``: because of too many unsolicited answers."""

    def read(self, call: PolicyCall, outcome: pb.Outcome, *, is_large: bool) -> Answer:
        """The answer of an outcome; ``is_large``: of one that may be large."""

    def report_invalid_hint(self, call: PolicyCall, observed: str) -> None:
        """An answer has an invalid cache hint."""

    def count(self, event: WorkerEvent, number: int = 1) -> None:
        """Count an event of the worker."""


class Connection:
    """One channel.

    Args:
        channel: to one address; ``close`` closes it.
        address: for messages.
        owner: is notified of changes.
        version_skew: of the worker.
        descriptions: of the worker.
        failures: converts errors to failures.
        backlog: of the worker.
        room: in which the answers of unary calls are received.
        limits: see TransportLimits.
        read_outcome: converts an outcome to an answer; None: ``outcome_answer``.
    """

    def __init__(  # noqa: PLR0913 - all by name
        self,
        channel: grpc.aio.Channel,
        *,
        address: str,
        owner: ConnectionObserver,
        version_skew: VersionSkew,
        descriptions: Descriptions,
        failures: Failures,
        backlog: Backlog,
        room: AnswerRoom,
        limits: TransportLimits,
        read_outcome: OutcomeReader | None = None,
    ) -> None:
        self.address = address
        self.state = State.CONNECTING
        self.description: Description | None = None
        self.is_serving = True
        self.is_draining = False
        self.is_doubted = False
        self.why = ""
        """Why there is no connection, or no description, in a sentence; empty if that is unknown."""
        self._reported_why = False
        self._without_since = monotonic()
        self._channel = channel
        self._owner = owner
        self._version_skew = version_skew
        self._descriptions = descriptions
        self._failures = failures
        self._backlog = backlog
        self._room = room
        self._limits = limits
        self._read_outcome = read_outcome or outcome_answer
        self._review = ReviewMethod(channel)
        self._review_stream: Any = channel.stream_stream(SERVICE + "ReviewStream")
        self._health = HealthWatch(channel, failures.name, self._serving)
        self.describe_client = DescribeClient(channel, address, failures, limits)
        """Describe and ValidateSettings."""
        self._calls: set[asyncio.Task[None]] = set()
        self._streams: set[ReviewStream] = set()
        self._stream: ReviewStream | None = None
        self._may_stream = False  # on the current connection
        self._breaks = 0
        self._reopening: asyncio.TimerHandle | None = None
        self._idle = asyncio.Event()
        self._task = asyncio.get_running_loop().create_task(self._run())

    # -------------------------------------------------------------------------------------------------- calls

    @property
    def can_be_called(self) -> bool:
        """Whether it is described, serving, and not draining."""
        return self.state is State.READY and self.is_serving and not self.is_draining

    def is_behind(self, now: float) -> bool:
        """Whether writing one message takes too long: the worker does not read, or the document is large."""
        return self._stream is not None and self._stream.is_behind(now)

    def call(self, attempt: CallAttempt, *, unary: bool) -> "asyncio.Task[None] | ReviewStream":
        """Send a call. The attempt gets its result later, never inside this method.

        Args:
            attempt: gets the result.
            unary: do not use the stream.

        Returns:
            The task of the unary call, or the stream, on which the call has the id ``attempt.number``.
        """
        call = attempt.call
        stream = self._stream
        if (
            stream is None
            or not stream.takes_calls
            or unary
            or not call.cancellable
            or len(call.document.content) > self._limits.worker_stream_bytes
        ):
            return self._start(self._call_review(attempt))
        attempt.number = stream.call(attempt)
        return stream

    async def _call_review(self, attempt: CallAttempt) -> None:
        call, name = attempt.call, self._failures.name
        size = len(call.document.content)
        self._backlog.bytes += size
        try:
            with UnaryReview(self._review, self._room, name) as review:
                await self._attempt(attempt, review)
        finally:
            self._backlog.bytes -= size

    async def _attempt(self, attempt: CallAttempt, review: UnaryReview) -> None:
        call = attempt.call
        try:
            answer = await self._answer(call, await review.message(call))
        except grpc.aio.AioRpcError as error:
            if is_late(error.code(), call.deadline):
                attempt.ended(self._failures.late(), CallResult.LATE)
            else:
                attempt.ended(self._failures.of(error), self._result(error))
        except NoRoomError:
            self._owner.count(WorkerEvent.ANSWER_BYTES)
            # As if it was late: another attempt would need a place too, and the worker is not to blame.
            attempt.ended(self._failures.no_room(self._room.places), CallResult.LATE)
        except DecodeError as error:
            attempt.ended(self._failures.unreadable("ReviewResponse", error), CallResult.FAILED)
        except Exception as error:  # noqa: BLE001 - a review waits for an answer
            _LOG.exception("calling a worker failed inside the gateway", worker=self._failures.name, uid=call.uid)
            attempt.ended(self._failures.internal(error), CallResult.LATE)
        else:
            attempt.answered(answer)

    async def _answer(self, call: PolicyCall, content: bytes) -> Answer:
        """The answer in a message; of a large one in several iterations of the event loop."""
        is_slow = len(content) > SLOW_BYTES
        if is_slow:
            await asyncio.sleep(0)
        response = review_response(call, content)
        del content  # its copy is as large
        if isinstance(response, Failure):
            return response
        if is_slow:
            await asyncio.sleep(0)
        answer = self._read_outcome(
            call,
            response.outcome,
            characters=self._limits.message_characters,
            invalid_hint=self._owner.report_invalid_hint,
        )
        if is_slow:
            await asyncio.sleep(0)
        return answer

    def _result(self, error: grpc.aio.AioRpcError) -> CallResult:
        if error.code() is not grpc.StatusCode.UNAVAILABLE:
            return CallResult.FAILED
        self.find_loss()
        return CallResult.UNSENT if (error.details() or "").startswith(NOT_CONNECTED) else CallResult.LOST

    def _start(self, work: Coroutine[Any, Any, None]) -> "asyncio.Task[None]":
        task = asyncio.get_running_loop().create_task(work)
        self._calls.add(task)
        task.add_done_callback(self._call_ended)
        return task

    def _call_ended(self, task: "asyncio.Task[None]") -> None:
        self._calls.discard(task)
        self._check_idle()

    def _check_idle(self) -> None:
        if not self._calls and all(stream.is_idle for stream in self._streams):
            self._idle.set()

    # --------------------------------------------------------------------------------------------- lifecycle

    async def _run(self) -> None:
        while True:
            try:
                await self._watch_channel()
            except Exception:  # noqa: BLE001 - logged, and tried again: no other task would
                _LOG.exception("keeping a connection to a worker failed inside the gateway", worker=self._failures.name)
                await asyncio.sleep(RETRY_SECONDS[1])

    async def _watch_channel(self) -> None:
        channel = self._channel
        pause = 0.0
        may_idle = True  # IDLE after an attempt: it connected, and was closed before this task noticed
        while True:
            state = channel.get_state()
            if state is grpc.ChannelConnectivity.READY:
                since = monotonic()
                await self._while_connected()
                pause = 0.0 if monotonic() - since >= SHORT_SECONDS else await self._pause(pause)
                may_idle = True
                continue
            if state is grpc.ChannelConnectivity.IDLE:
                if not may_idle:
                    pause = await self._pause(pause)
                may_idle = False
            elif state is grpc.ChannelConnectivity.TRANSIENT_FAILURE:
                may_idle = True
                await self._find_connect_error()
            channel.get_state(try_to_connect=True)
            await channel.wait_for_state_change(state)

    async def _pause(self, pause: float) -> float:
        """Pause after a short connection. Returns how long to pause after the next one."""
        if pause:
            self.why = self._failures.unreachable("it closes connections as soon as they are open").message
            self._owner.changed(self)
            await asyncio.sleep(pause)
        return min(max(2 * pause, RECONNECT_SECONDS[0]), RECONNECT_SECONDS[1])

    async def _find_connect_error(self) -> None:
        """Keep the reason why there is no connection; log it after ``REPORT_SECONDS``."""
        before = self.why
        self.why = await self.describe_client.connect_error() or self.why
        if self.why != before:
            self._owner.changed(self)
        if not self._reported_why and monotonic() - self._without_since > REPORT_SECONDS:
            self._reported_why = True
            _LOG.warning("a worker cannot be reached", worker=self._failures.name, address=self.address, why=self.why)

    async def _while_connected(self) -> None:
        lost = asyncio.create_task(self._channel.wait_for_state_change(grpc.ChannelConnectivity.READY))
        healthy: asyncio.Task[None] | None = None
        self._set_state(State.DESCRIBING)
        pause = RETRY_SECONDS[0]
        try:
            while not lost.done():
                seen = self._version_skew.disagreements
                try:
                    self.description = self._descriptions.of(await self.describe_client.describe())
                except (WorkerError, DecodeError) as error:
                    why = str(error)
                    if isinstance(error, DecodeError):
                        name = self._failures.name
                        why = f"worker {name!r} answered Describe with an invalid message: {error}"
                    self._cannot_be_described(why, pause)
                    await asyncio.wait((lost,), timeout=pause)
                    pause = min(2 * pause, RETRY_SECONDS[1])
                    continue
                pause = RETRY_SECONDS[0]
                if healthy is None:
                    self._breaks = 0
                    healthy = asyncio.create_task(self._health.keep())
                    self._may_stream = True
                    self._open_stream()
                self.why, self._reported_why, self.is_doubted = "", False, False
                self._set_state(State.READY)
                await self._until_lost_or_contradicted(lost, seen)
                self.is_doubted = not lost.done()
        finally:
            if lost.done() and not self.is_draining:
                _LOG.warning("a connection to a worker is lost", worker=self._failures.name, address=self.address)
            lost.cancel()
            if healthy is not None:
                healthy.cancel()
            await asyncio.gather(lost, *(() if healthy is None else (healthy,)), return_exceptions=True)
            self._may_stream = False
            self._finish_stream()
            self.description = None
            self.is_doubted = False
            self.is_serving = True
            self._without_since = monotonic()
            self._set_state(State.CONNECTING)

    def _cannot_be_described(self, why: str, pause: float) -> None:
        self.why = why
        _LOG.warning(
            "a worker cannot be described",
            worker=self._failures.name,
            address=self.address,
            error=why,
            again_in=pause,
        )
        self._owner.changed(self)

    async def _until_lost_or_contradicted(self, lost: "asyncio.Task[Any]", seen: int) -> None:
        contradicted = asyncio.create_task(self._contradicted(seen))
        try:
            await asyncio.wait((lost, contradicted), return_when=asyncio.FIRST_COMPLETED)
        finally:
            contradicted.cancel()
            await asyncio.gather(contradicted, return_exceptions=True)

    async def _contradicted(self, seen: int) -> None:
        await asyncio.sleep(DESCRIBE_INTERVAL_SECONDS)
        await self._version_skew.beyond(seen)

    def _set_state(self, state: State) -> None:
        self.state = state
        self._owner.changed(self)

    # ------------------------------------------------------------------------------------------------ health

    def _serving(self, serving: bool) -> None:  # noqa: FBT001 - a callback
        if serving is self.is_serving:
            return
        self.is_serving = serving
        _LOG.info("a worker's health has changed", worker=self._failures.name, address=self.address, serving=serving)
        if serving:
            self._open_stream()
        else:
            self._finish_stream()
        self._owner.changed(self)

    # ------------------------------------------------------------------------------------------------ stream

    def _open_stream(self) -> None:
        """Open a stream, if one is allowed and there is none."""
        self._reopening = None
        if self._stream is not None or not self._may_stream or self.is_draining or not self.is_serving:
            return
        stream = self._stream = ReviewStream(
            self._review_stream(),
            limits=self._limits,
            backlog=self._backlog,
            failures=self._failures,
            read=self._owner.read,
            unsolicited=lambda answers: self._owner.unsolicited(self, answers),
            ended=self._stream_ended,
        )
        self._streams.add(stream)

    def _finish_stream(self) -> None:
        """Stop using the stream; it ends when its open calls are answered."""
        stream, self._stream = self._stream, None
        if stream is not None:
            stream.finish()
        if self._reopening is not None:
            self._reopening.cancel()
            self._reopening = None

    def _stream_ended(self, stream: ReviewStream) -> None:
        self._streams.discard(stream)
        self._check_idle()
        if stream is not self._stream:
            return
        self._stream = None
        if stream.is_unimplemented:
            self._may_stream = False
            return
        if self.find_loss():
            return
        self._breaks = 1 if stream.answered else self._breaks + 1
        pause = min(STREAM_SECONDS[0] * 2 ** min(self._breaks - 1, MAX_STREAM_BREAKS), STREAM_SECONDS[1])
        if self._breaks > MAX_STREAM_BREAKS or stream.violated_protocol:
            pause = self._limits.worker_stream_pause_seconds
        self._reopening = asyncio.get_running_loop().call_later(pause, self._open_stream)
        self._owner.stream_broke(
            self, f"reopened in {pause:g} s, unary calls until then", unsolicited_limit=stream.over_limit
        )

    def find_loss(self) -> bool:
        """Whether the connection is lost. Calls that were lost with it must not be retried on it before the task that
        watches it notices.
        """
        if self._channel.get_state() is grpc.ChannelConnectivity.READY:
            return False
        if self.state is State.READY:
            self._set_state(State.CONNECTING)
        return True

    # --------------------------------------------------------------------------------------------------- end

    def drain(self) -> None:
        """Take no new calls."""
        self.is_draining = True
        self._finish_stream()

    async def idle(self) -> None:
        """Return when no call is open. Each call has its deadline, so this ends."""
        self._idle.clear()
        self._check_idle()
        while not self._idle.is_set():
            # A stream does not notify the connection when a call ends.
            try:
                await asyncio.wait_for(self._idle.wait(), IDLE_SECONDS)
            except TimeoutError:
                self._check_idle()

    async def close(self) -> None:
        """Cancel the open calls, and close the channel."""
        self._task.cancel()
        if self._reopening is not None:
            self._reopening.cancel()
        await asyncio.gather(self._task, return_exceptions=True)
        self.state = State.CLOSED
        for task in tuple(self._calls):
            task.cancel()
        await asyncio.gather(*self._calls, *(stream.close() for stream in tuple(self._streams)), return_exceptions=True)
        await self._channel.close()


IDLE_SECONDS: Final = 0.05
"""The interval at which a draining connection checks whether its streams have open calls."""
