"""The gateway's side of one ``ReviewStream``: it sends calls in batches, and receives outcomes by id.

* The calls of one iteration of the event loop are sent in one message, up to ``worker_batch_bytes``; while a message is
  written, the next one gathers calls. A document that several of its calls share is in it once.
* An id is open from its call until its outcome, its cancel, its deadline or the stream's end. An outcome for any other
  id is unsolicited: it is dropped and counted, because a cancelled call may have one under way. Too many of them end
  the stream.
* A call that is cancelled before it was written is not sent; afterwards a cancel message is.
* ``finish`` half-closes as soon as no call is open. When either side ends the stream, each open call fails.
* Reviews have their own timers. The stream checks periodically for calls whose deadline has passed, for calls that have
  no such timer: those that several reviews share.
"""

import asyncio
from collections.abc import Callable, Generator
from functools import lru_cache
from time import monotonic
from typing import Any, Final

import grpc
import grpc.aio
import structlog
from google.protobuf.duration_pb2 import Duration
from google.protobuf.message import DecodeError

from gateway.engine.policy_call import PolicyCall
from gateway.engine.verdicts import Answer, Failure
from gateway.policies.model import Policy
from gateway.slices import SLOW_BYTES
from gateway.transports.field_count import LARGE_BYTES, fields, parsed
from gateway.transports.grpc.call_attempt import CallAttempt, CallResult
from gateway.transports.grpc.failures import Failures
from gateway.transports.limits import Backlog, TransportLimits
from gateway.transports.messages import PHASES
from gateway.transports.proto.admission.worker.v1 import worker_pb2 as pb

SWEEP_SECONDS: Final = 0.1
"""The interval of checks for calls whose deadline has passed. Reviews that wait for one have their own timers."""

GATHER_TURNS: Final = 8
"""Iterations of the event loop in which a message gathers calls while other calls are open: a message costs some
100 µs, an iteration a tenth of that, and each iteration brings answers that lead to further calls. A single call does
not wait."""

BEHIND_SECONDS: Final = 0.002
"""The time after which writing a message counts as delayed. It takes some 50 µs, unless the worker does not read or the
message is large: a megabyte takes a millisecond at 10 Gbit/s."""

MOST_POLICIES: Final = 1000
"""The maximum number of policies whose serialized fields are kept. Those of removed policies remain; beyond this all
are discarded."""

_ENVELOPE_BYTES: Final = 128
"""The size of a call without its document and settings: names, a uid, a trace context."""

_HEAVY_BYTES: Final = 4096
"""An unsolicited message counts once for each of its items, and once for each of so many bytes."""

MOST_FIELDS: Final = 50_000
"""Fields of a large message with answers. A plain answer has six, one with a warning eight; this is enough for a
thousand answers with several warnings. Counting them takes some 30 ms. After a message with more, unary calls replace
streams for some time."""

_LOG: Final = structlog.get_logger(__name__)


class ReviewStream:
    """Calls one worker over one stream.

    Args:
        call: the new gRPC call.
        limits: of batches, and of unsolicited outcomes.
        backlog: of the worker.
        failures: converts errors to failures.
        read: converts an outcome to an answer, as ``ConnectionObserver.read`` does.
        unsolicited: called with a number of unsolicited outcomes.
        ended: called once, when the stream has ended, before its open calls fail.
    """

    def __init__(  # noqa: PLR0913 - all by name
        self,
        call: Any,
        *,
        limits: TransportLimits,
        backlog: Backlog,
        failures: Failures,
        read: Callable[..., Answer],
        unsolicited: Callable[[int], object],
        ended: Callable[["ReviewStream"], object],
    ) -> None:
        self._call = call
        self._limits = limits
        self._backlog = backlog
        self._failures = failures
        self._read_outcome = read
        self._on_unsolicited = unsolicited
        self._on_end = ended
        self._loop = asyncio.get_running_loop()
        self._last_id = 0
        self._open: dict[int, CallAttempt] = {}
        self._unsent: dict[int, CallAttempt] = {}
        self._cancels: list[int] = []
        self._prefixes: dict[int, tuple[Policy, bytes]] = {}
        self._wake = asyncio.Event()
        self._sweeping: asyncio.TimerHandle | None = None
        self.takes_calls = True
        """Whether it takes calls: it is neither finishing nor has ended."""
        self._unsolicited = 0.0
        self._writing_since: float | None = None
        self.answered = 0
        self.has_written = False
        self.is_unimplemented = False
        self.over_limit = False
        self.violated_protocol = False
        self.has_ended = False
        self._writer = self._loop.create_task(self._write())
        self._reader = self._loop.create_task(self._read())

    def is_behind(self, now: float) -> bool:
        """Whether writing one message takes too long."""
        return self._writing_since is not None and now - self._writing_since > BEHIND_SECONDS

    @property
    def is_idle(self) -> bool:
        """Whether no call is open."""
        return not self._open

    def call(self, attempt: CallAttempt) -> int:
        """Add a call. Returns its id, for ``cancel``. The attempt gets its result later, never inside this method."""
        self._last_id = number = self._last_id + 1
        self._open[number] = self._unsent[number] = attempt
        self._backlog.bytes += attempt.call.size
        self._wake.set()
        if self._sweeping is None:
            self._sweeping = self._loop.call_later(SWEEP_SECONDS, self._sweep)
        return number

    def cancel(self, number: int) -> None:
        """Cancel a call."""
        if self._open.pop(number, None) is None:
            return
        unsent = self._unsent.pop(number, None)
        if unsent is None:
            self._cancels.append(number)
        else:
            self._backlog.bytes -= unsent.call.size
        self._wake.set()

    def finish(self) -> None:
        """Take no new calls, and end when the open calls are answered."""
        self.takes_calls = False
        self._wake.set()

    async def close(self) -> None:
        """End the stream at once. Its open calls end as LOST."""
        self._call.cancel()
        self._writer.cancel()
        self._reader.cancel()
        await asyncio.gather(self._writer, self._reader, return_exceptions=True)
        self._end(self._failures.closed(), CallResult.LOST)

    # ----------------------------------------------------------------------------------------------- sending

    async def _write(self) -> None:
        try:
            while True:
                await self._wake.wait()
                self._wake.clear()
                while self._unsent or self._cancels:
                    if len(self._open) > len(self._unsent):
                        await self._gather()
                    content = self._batch()
                    self._writing_since = monotonic()
                    await self._call.write(content)
                    self.has_written = True
                    self._writing_since = None
                if not self.takes_calls and not self._open:
                    await self._call.done_writing()
                    return
        except (grpc.aio.AioRpcError, grpc.aio.UsageError, asyncio.InvalidStateError, asyncio.CancelledError):
            pass  # the stream has ended; the reader reports how. (A task that keeps its error would refer to itself.)
        except Exception:  # noqa: BLE001 - logged; without a writer no call would be sent
            _LOG.exception("writing to a worker's stream failed inside the gateway", worker=self._failures.name)
            self._call.cancel()
        finally:
            self._writing_since = None

    async def _gather(self) -> None:
        for _ in range(GATHER_TURNS):
            if len(self._open) == len(self._unsent):
                return
            await asyncio.sleep(0)

    def _batch(self) -> bytes:
        """The next message: cancels, and the oldest calls that fit; the oldest one in any case."""
        batch = pb.ReviewStreamRequest()
        items = batch.items
        for number in self._cancels:
            items.add(id=number, cancel=pb.ReviewStreamRequest.Cancel())
        self._cancels.clear()
        now = monotonic()
        room = self._limits.worker_batch_bytes
        sent: list[int] = []
        places: dict[int, int] = {}
        same: tuple[str, float, str, bytes] | None = None
        for number, attempt in self._unsent.items():
            policy_call = attempt.call
            content = policy_call.document.content
            room -= len(policy_call.policy.settings) + _ENVELOPE_BYTES
            place = places.get(id(content))
            if place is None:
                room -= len(content)
            if room < 0 and sent:
                break
            if place is None:
                place = places[id(content)] = len(places)
                batch.documents.append(content)
            if (
                same is None
                or policy_call.uid != same[0]
                or policy_call.deadline != same[1]
                or policy_call.traceparent != same[2]
            ):
                same = policy_call.uid, policy_call.deadline, policy_call.traceparent, _review_fields(policy_call, now)
            # "Parsing the concatenation of two messages" is as merging them: each part is serialized once.
            items.add(id=number).call.MergeFromString(self._prefix(policy_call.policy) + same[3] + _index(place))
            sent.append(number)
        for number in sent:
            self._backlog.bytes -= self._unsent.pop(number).call.size
        return bytes(batch.SerializeToString())

    def _prefix(self, policy: Policy) -> bytes:
        """The fields that all calls of a policy share, serialized."""
        known = self._prefixes.get(id(policy))
        if known is not None and known[0] is policy:
            return known[1]
        if len(self._prefixes) >= MOST_POLICIES:
            self._prefixes.clear()
        same = pb.PolicyCall(policy=policy.policy, phase=PHASES[policy.phase], settings=policy.settings)
        content = bytes(same.SerializeToString())
        self._prefixes[id(policy)] = policy, content
        return content

    # --------------------------------------------------------------------------------------------- receiving

    async def _read(self) -> None:
        failure, result = self._failures.ended_by_worker(), CallResult.LOST
        try:
            while (content := await self._call.read()) is not grpc.aio.EOF:
                if len(content) > SLOW_BYTES:
                    await self._received_in_turns(content)
                elif len(content) <= LARGE_BYTES or not self._is_too_many(content):
                    self._received(content)
                if self._unsolicited > self._limits.worker_unsolicited:
                    failure = self._failures.unsolicited_limit(self._limits.worker_unsolicited)
                    self.over_limit = self.violated_protocol = True
                    break
        except grpc.aio.AioRpcError as error:
            self.is_unimplemented = error.code() is grpc.StatusCode.UNIMPLEMENTED
            failure = self._failures.of(error)
            # If the stream ends while the first message is written, gRPC reports the write (INTERNAL), and the worker's
            # own status is lost. No call was sent then.
            result = CallResult.LOST if self.has_written and not self.is_unimplemented else CallResult.UNSENT
        except DecodeError as error:
            failure = self._failures.unreadable("ReviewStreamResponse", error)
            self.violated_protocol = True
        except asyncio.CancelledError:
            if not self._call.cancelled():
                self._call.cancel()
            failure = self._failures.closed()
        except Exception as error:  # noqa: BLE001 - logged; without a reader no call would get an answer
            _LOG.exception("reading a worker's stream failed inside the gateway", worker=self._failures.name)
            failure = self._failures.internal(error)
        self._call.cancel()
        self._writer.cancel()
        self._end(failure, result)

    def _is_too_many(self, content: bytes) -> bool:
        """Whether a large message has so many answers that most must be unsolicited; then it is not parsed."""
        most = len(self._open) + self._limits.worker_unsolicited
        if fields(content, most) <= most:
            return False
        self._unsolicited += most
        self._on_unsolicited(1)
        return True

    def _received(self, content: bytes) -> None:
        for number, answer in self._answers(_parsed(content), len(content)):
            self._open.pop(number).answered(answer)

    async def _received_in_turns(self, content: bytes) -> None:
        """The same for a slow message, in several iterations of the event loop."""
        await asyncio.sleep(0)
        if not self._is_too_many(content):
            response = _parsed(content)
            await asyncio.sleep(0)
            for number, answer in self._answers(response, len(content)):
                await asyncio.sleep(0)
                attempt = self._open.pop(number, None)
                if attempt is not None:  # it was not given up meanwhile
                    attempt.answered(answer)

    def _answers(self, response: pb.ReviewStreamResponse, size: int) -> Generator[tuple[int, Answer], None, None]:
        """The answers in a message, each with the number of an open call; close it before the next one."""
        unsolicited = 0
        for item in response.items:
            attempt = self._open.get(item.id)
            if attempt is None:
                unsolicited += 1
                continue
            unsent = self._unsent.pop(item.id, None)
            if unsent is not None:
                # An answer to a call that was not sent: no policy can have judged it.
                del self._open[item.id]
                self._backlog.bytes -= unsent.call.size
                attempt.ended(self._failures.premature(), CallResult.FAILED)
                continue
            self.answered += 1
            self._unsolicited = max(0.0, self._unsolicited - 0.1)
            yield item.id, self._read_outcome(attempt.call, item.outcome, is_large=size > SLOW_BYTES)
        if unsolicited or not response.items:
            self._unsolicited += max(unsolicited, 1) + size / _HEAVY_BYTES
            self._on_unsolicited(max(unsolicited, 1))
        if not self.takes_calls and not self._open:
            self._wake.set()

    # -------------------------------------------------------------------------------------------------- end

    def _sweep(self) -> None:
        self._sweeping = None
        now = monotonic()
        late = [number for number, attempt in self._open.items() if attempt.call.deadline <= now]
        for number in late:
            attempt = self._open.get(number)
            if attempt is not None:
                self.cancel(number)
                attempt.ended(self._failures.late(), CallResult.LATE)
        if self._open and self._sweeping is None:
            self._sweeping = self._loop.call_later(SWEEP_SECONDS, self._sweep)

    def _end(self, failure: Failure, result: CallResult) -> None:
        if self.has_ended:
            return
        self.has_ended = True
        self.takes_calls = False
        if self._sweeping is not None:
            self._sweeping.cancel()
        # First, so that no call is retried on this stream.
        self._on_end(self)
        for number in tuple(self._open):
            attempt = self._open.pop(number, None)
            if attempt is None:
                continue  # cancelled by the end of an earlier one
            unsent = self._unsent.pop(number, None)
            if unsent is not None:
                self._backlog.bytes -= unsent.call.size
            attempt.ended(failure, result if unsent is None else CallResult.UNSENT)


def _parsed(content: bytes) -> pb.ReviewStreamResponse:
    if len(content) <= LARGE_BYTES:
        return pb.ReviewStreamResponse.FromString(content)
    return parsed(pb.ReviewStreamResponse, content, most=MOST_FIELDS)


def _review_fields(policy_call: PolicyCall, now: float) -> bytes:
    """The fields that all calls of a review share, serialized; the timeout is as of now."""
    left = max(policy_call.deadline - now, 0.0)
    seconds = int(left)
    timeout = Duration(seconds=seconds, nanos=int((left - seconds) * 1e9))
    return bytes(
        pb.PolicyCall(
            uid=policy_call.uid,
            traceparent=policy_call.traceparent,
            tracestate=policy_call.tracestate,
            timeout=timeout,
        ).SerializeToString()
    )


@lru_cache(maxsize=1024)
def _index(place: int) -> bytes:
    """The index of a document in its message, serialized."""
    return bytes(pb.PolicyCall(document_index=place).SerializeToString())
