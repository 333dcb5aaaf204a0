"""One channel to one address of a worker: described, watched over, and called.

    connecting   no connection yet, or lost; gRPC tries again and again
    describing   there is one; the worker is called what it holds
    ready        it is described: it may be called, unless it says NOT_SERVING
    draining     another one takes its place: nothing new, what is open is answered, and it closes itself

A new connection may meet another version, so what was described counts for the connection on which it was said, and
the worker is described again on the next one; and when an answer contradicts it.

A call goes over the stream of the connection, except:

* where the worker has no stream, or its streams break again and again: then all are calls, for a while;
* a policy with side effects has a call of its own: no other policy's mistake can break it;
* a large document has one too: small ones do not wait behind it;
* a call whose stream broke has one: if it was the one that broke it, it breaks nobody else's again.
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
from gateway.engine.verdicts import Answer
from gateway.transports.descriptions import Description, Descriptions
from gateway.transports.grpc.call_attempt import CallAttempt, CallResult
from gateway.transports.grpc.describe_client import SERVICE, DescribeClient
from gateway.transports.grpc.failures import Failures, is_late
from gateway.transports.grpc.health import HealthWatch
from gateway.transports.grpc.stream import ReviewStream
from gateway.transports.limits import Backlog, TransportLimits
from gateway.transports.messages import Reading, review_answer, review_request
from gateway.transports.proto.admission.worker.v1 import worker_pb2 as pb
from gateway.transports.version_skew import VersionSkew
from gateway.transports.worker_channel import WorkerError

RETRY_SECONDS: Final = (0.25, 5.0)
"""First and longest pause before a worker that cannot describe itself is called again."""

AGAIN_SECONDS: Final = 1.0
"""Shortest time between two descriptions on one connection. In a rolling update every second answer may be of the other
version: a Describe for each would double the worker's load, and one a second is less than its health checks."""

STREAM_SECONDS: Final = (0.1, 1.0)
"""First and longest pause before a stream that broke is opened again, while it is not given up for longer."""

REPORT_SECONDS: Final = 10.0
"""How long there is no connection before the log says why. Whoever is just being started is not there at the first
look, and on a busy machine not at the tenth."""

BREAKS: Final = 3
"""Streams that break one after another without an answer on them, before calls are used instead for a while."""

_LOG: Final = structlog.get_logger(__name__)


class State(Enum):
    """Of a connection, as the table above has it."""

    CONNECTING = 0
    DESCRIBING = 1
    READY = 2
    CLOSED = 3


class ConnectionObserver(Protocol):
    """Whose connection it is."""

    def changed(self, connection: "Connection") -> None:
        """Its state, its description or its health has changed."""

    def unsolicited(self, connection: "Connection", answers: int) -> None:
        """So many answers came that nobody asked for."""

    def stream_broke(self, connection: "Connection", why: str, *, unsolicited_limit: bool) -> None:
        """Its stream ended, and not because it should; ``unsolicited_limit``: for answers that nobody asked for."""

    def read(self, call: PolicyCall, outcome: pb.Outcome) -> Answer:
        """The answer that an outcome is."""

    def meaningless(self, call: PolicyCall, observed: str) -> None:
        """A cache hint means nothing."""


class Connection:
    """One channel.

    Args:
        channel: to one address; closed by this.
        address: for messages.
        owner: is told what becomes of it.
        version_skew: of the worker.
        descriptions: of the worker.
        failures: names what goes wrong.
        backlog: of the worker.
        limits: see TransportLimits.
        reading: makes answers of outcomes; None: as usual.
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
        limits: TransportLimits,
        reading: Reading | None = None,
    ) -> None:
        self.address = address
        self.state = State.CONNECTING
        self.description: Description | None = None
        self.is_serving = True
        self.is_draining = False
        self.is_doubted = False
        self.why = ""
        """Why there is no connection, or no description, in a sentence; empty: nobody knows yet."""
        self._reported_why = False
        self._without_since = monotonic()
        self._channel = channel
        self._owner = owner
        self._version_skew = version_skew
        self._descriptions = descriptions
        self._failures = failures
        self._backlog = backlog
        self._limits = limits
        self._reading = reading
        # Bytes in, bytes out: what cannot be parsed is the worker's failure, not an exception inside grpc.
        self._review: Any = channel.unary_unary(SERVICE + "Review")
        self._open_stream: Any = channel.stream_stream(SERVICE + "ReviewStream")
        self._health = HealthWatch(channel, failures.name, self._serving)
        self.describer = DescribeClient(channel, address, failures, limits)
        """Describe and ValidateSettings."""
        self._calls: set[asyncio.Task[None]] = set()
        self._streams: set[ReviewStream] = set()
        self._stream: ReviewStream | None = None
        self._may_stream = False  # on the connection that there is
        self._breaks = 0
        self._reopening: asyncio.TimerHandle | None = None
        self._idle = asyncio.Event()
        self._life = asyncio.get_running_loop().create_task(self._live())

    # ------------------------------------------------------------------------------------------------ calling

    @property
    def can_be_called(self) -> bool:
        """Whether it is described, serving, and not on its way out."""
        return self.state is State.READY and self.is_serving and not self.is_draining

    def is_behind(self, now: float) -> bool:
        """Whether it has been writing one message for too long: the worker does not read, or the document is large."""
        return self._stream is not None and self._stream.is_behind(now)

    def call(self, attempt: CallAttempt, *, alone: bool) -> "asyncio.Task[None] | ReviewStream":
        """Put a call; the attempt is told later, never inside this call.

        Args:
            attempt: is told what comes of it.
            alone: as a call of its own.

        Returns:
            What carries it out: the task of a call of its own, or the stream, on which it is ``attempt.number``.
        """
        call = attempt.call
        stream = self._stream
        if (
            stream is None
            or not stream.takes_calls
            or alone
            or not call.cancellable
            or len(call.document.content) > self._limits.worker_stream_bytes
        ):
            return self._begin(self._call_review(attempt))
        attempt.number = stream.call(attempt)
        return stream

    async def _call_review(self, attempt: CallAttempt) -> None:
        call = attempt.call
        size = len(call.document.content)
        self._backlog.bytes += size
        try:
            left = call.deadline - monotonic()
            metadata = (("traceparent", call.traceparent),) if call.traceparent else None
            content = await self._review(review_request(call), timeout=max(left, 0.0), metadata=metadata)
            answer = review_answer(
                call,
                content,
                characters=self._limits.message_characters,
                meaningless=self._owner.meaningless,
                reading=self._reading,
            )
        except grpc.aio.AioRpcError as error:
            if is_late(error.code(), call.deadline):
                attempt.ended(self._failures.late(), CallResult.LATE)
            else:
                lost = error.code() is grpc.StatusCode.UNAVAILABLE
                attempt.ended(self._failures.of(error), CallResult.LOST if lost else CallResult.SAID)
        except Exception as error:  # noqa: BLE001 - whatever it is, somebody waits for an answer
            _LOG.exception("calling a worker failed inside the gateway", worker=self._failures.name, uid=call.uid)
            attempt.ended(self._failures.internal(error), CallResult.LATE)
        else:
            attempt.answered(answer)
        finally:
            self._backlog.bytes -= size

    def _begin(self, work: Coroutine[Any, Any, None]) -> "asyncio.Task[None]":
        task = asyncio.get_running_loop().create_task(work)
        self._calls.add(task)
        task.add_done_callback(self._call_ended)
        return task

    def _call_ended(self, task: "asyncio.Task[None]") -> None:
        self._calls.discard(task)
        self._look_idle()

    def _look_idle(self) -> None:
        if not self._calls and all(stream.is_idle for stream in self._streams):
            self._idle.set()

    # -------------------------------------------------------------------------------------------------- life

    async def _live(self) -> None:
        while True:
            try:
                await self._look()
            except Exception:  # noqa: BLE001 - logged, and tried again: nobody else would
                _LOG.exception("keeping a connection to a worker failed inside the gateway", worker=self._failures.name)
                await asyncio.sleep(RETRY_SECONDS[1])

    async def _look(self) -> None:
        channel = self._channel
        while True:
            state = channel.get_state(try_to_connect=True)
            if state is grpc.ChannelConnectivity.READY:
                await self._while_connected()
                continue
            if state is grpc.ChannelConnectivity.TRANSIENT_FAILURE:
                await self._call_why()
            await channel.wait_for_state_change(state)

    async def _call_why(self) -> None:
        """Take down why there is no connection: a call that is not willing to wait is told at once."""
        before = self.why
        self.why = await self.describer.why_not() or self.why
        if self.why != before:
            self._owner.changed(self)
        if not self._reported_why and monotonic() - self._without_since > REPORT_SECONDS:
            self._reported_why = True
            _LOG.warning("a worker cannot be reached", worker=self._failures.name, address=self.address, why=self.why)

    async def _while_connected(self) -> None:
        lost = asyncio.create_task(self._channel.wait_for_state_change(grpc.ChannelConnectivity.READY))
        healthy: asyncio.Task[None] | None = None
        self._become(State.DESCRIBING)
        pause = RETRY_SECONDS[0]
        try:
            while not lost.done():
                seen = self._version_skew.disagreements
                try:
                    self.description = self._descriptions.of(await self.describer.describe())
                except (WorkerError, DecodeError) as error:
                    why = str(error)
                    if isinstance(error, DecodeError):
                        name = self._failures.name
                        why = f"worker {name!r} answered Describe with bytes that cannot be read: {error}"
                    self._cannot_be_described(why, pause)
                    await asyncio.wait((lost,), timeout=pause)
                    pause = min(2 * pause, RETRY_SECONDS[1])
                    continue
                pause = RETRY_SECONDS[0]
                if healthy is None:
                    self._breaks = 0
                    healthy = asyncio.create_task(self._health.keep())
                    self._may_stream = True
                    self._begin_stream()
                self.why, self._reported_why, self.is_doubted = "", False, False
                self._become(State.READY)
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
            self._leave_stream()
            self.description = None
            self.is_doubted = False
            self.is_serving = True
            self._without_since = monotonic()
            self._become(State.CONNECTING)

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
        await asyncio.sleep(AGAIN_SECONDS)
        await self._version_skew.beyond(seen)

    def _become(self, state: State) -> None:
        self.state = state
        self._owner.changed(self)

    # ------------------------------------------------------------------------------------------------ health

    def _serving(self, serving: bool) -> None:  # noqa: FBT001 - it is what is told
        if serving is self.is_serving:
            return
        self.is_serving = serving
        _LOG.info("a worker's health has changed", worker=self._failures.name, address=self.address, serving=serving)
        if serving:
            self._begin_stream()
        else:
            self._leave_stream()
        self._owner.changed(self)

    # ------------------------------------------------------------------------------------------------ stream

    def _begin_stream(self) -> None:
        """Open a stream, if it is time."""
        self._reopening = None
        if self._stream is not None or not self._may_stream or self.is_draining or not self.is_serving:
            return
        stream = self._stream = ReviewStream(
            self._open_stream(),
            limits=self._limits,
            backlog=self._backlog,
            failures=self._failures,
            read=self._owner.read,
            unsolicited=lambda answers: self._owner.unsolicited(self, answers),
            gone=self._stream_gone,
        )
        self._streams.add(stream)

    def _leave_stream(self) -> None:
        """Call it no more; what is open is answered, and then it ends."""
        stream, self._stream = self._stream, None
        if stream is not None:
            stream.finish()
        if self._reopening is not None:
            self._reopening.cancel()
            self._reopening = None

    def _stream_gone(self, stream: ReviewStream) -> None:
        self._streams.discard(stream)
        self._look_idle()
        if stream is not self._stream:
            return
        self._stream = None
        if stream.is_unimplemented:
            self._may_stream = False
            return
        if self._channel.get_state() is not grpc.ChannelConnectivity.READY:
            return  # it went with the connection
        self._breaks = 1 if stream.answered else self._breaks + 1
        pause = min(STREAM_SECONDS[0] * 2 ** min(self._breaks - 1, BREAKS), STREAM_SECONDS[1])
        if self._breaks > BREAKS or stream.is_abused:
            pause = self._limits.worker_stream_pause_seconds
        self._reopening = asyncio.get_running_loop().call_later(pause, self._begin_stream)
        self._owner.stream_broke(
            self, f"the next one in {pause:g} s, calls until then", unsolicited_limit=stream.over_limit
        )

    # --------------------------------------------------------------------------------------------------- end

    def drain(self) -> None:
        """Take no more."""
        self.is_draining = True
        self._leave_stream()

    async def idle(self) -> None:
        """Return when nothing is open. Each call has its deadline, so this ends."""
        self._idle.clear()
        self._look_idle()
        while not self._idle.is_set():
            # A call of a stream ends without a word to the connection.
            try:
                await asyncio.wait_for(self._idle.wait(), IDLE_SECONDS)
            except TimeoutError:
                self._look_idle()

    async def close(self) -> None:
        """Break off what is open, and the connection."""
        self._life.cancel()
        if self._reopening is not None:
            self._reopening.cancel()
        await asyncio.gather(self._life, return_exceptions=True)
        self.state = State.CLOSED
        for task in tuple(self._calls):
            task.cancel()
        await asyncio.gather(*self._calls, *(stream.close() for stream in tuple(self._streams)), return_exceptions=True)
        await self._channel.close()


IDLE_SECONDS: Final = 0.05
"""How often a connection that is to be closed looks whether its streams have nothing open."""
