"""All failures of a call through a queue, each with its reason code.

=========================================================  ======================
what happens                                               reason
=========================================================  ======================
the key file cannot be read                                CONFIGURATION
Redis is unavailable, or rejects the call                  WORKER_UNAVAILABLE
Redis has no free memory                                   OVERLOADED
no bridge is present, or none with that version or key     WORKER_UNAVAILABLE
the last bridge is gone, and may have had a side effect    WORKER_UNAVAILABLE
the queue is too long, too large, or too slow              OVERLOADED
the open calls are too large                               OVERLOADED
the deadline passes                                        WORKER_TIMEOUT
the bridge could not call its worker                       the bridge's reason
a reply without a verdict                                  INVALID_RESPONSE
an exception inside the gateway                            INTERNAL
=========================================================  ======================
"""

from collections.abc import Sequence
from typing import Final

from redis import exceptions

from gateway.engine.verdicts import Failure
from gateway.reasons import Reason
from gateway.redis.faults import reason_of
from gateway.transports.messages import one_line
from gateway.transports.proto.admission.queue.v1 import queue_pb2 as q
from gateway.transports.queue.request_stream import StreamBacklog

REPORTED: Final = frozenset(
    {
        Reason.WORKER_UNAVAILABLE,
        Reason.WORKER_TIMEOUT,
        Reason.WORKER_FAILURE,
        Reason.INVALID_RESPONSE,
        Reason.OVERLOADED,
    }
)
"""The reasons that a bridge may give."""


class Failures:
    """The failures of one worker.

    Args:
        name: the worker's.
        target: its queue, for messages.
        characters: to how many characters texts of bridges and Redis are cut.
    """

    __slots__ = ("_characters", "name", "target")

    def __init__(self, name: str, target: str, characters: int) -> None:
        self.name = name
        self.target = target
        self._characters = characters

    def misconfigured(self, why: str) -> Failure:
        """It cannot be called before its configuration changes."""
        return Failure(reason=Reason.CONFIGURATION, message=f"worker {self.name!r} cannot be called: {why}")

    def redis_away(self, why: str) -> Failure:
        """Redis cannot be reached."""
        why = why or "it does not answer"
        return self._unavailable(f"Redis is unavailable: {self._one_line(why)}; check that it runs, and --queue-redis")

    def refused(self, error: BaseException) -> Failure:
        """Redis rejected the call."""
        why = self._one_line(reason_of(error))
        if isinstance(error, exceptions.OutOfMemoryError):
            return self._overloaded(f"Redis has no free memory: {why}; raise its maxmemory, or run more bridges")
        return self._unavailable(f"Redis rejects the call: {why}")

    def no_consumer(self) -> Failure:
        """No bridge is present."""
        return self._unavailable(
            "no bridge takes calls from it: none runs with the same --queue and --key-file, or its worker is "
            "unavailable; see a bridge's /readyz and log"
        )

    def in_doubt(self) -> Failure:
        """The bridge that had a call with side effects is gone, and no other one is present."""
        return self._unavailable(
            "it was delivered to a bridge that is gone and has not answered, and may have had its effect: a policy "
            "with side effects is not called twice; see why that bridge stopped"
        )

    def unknown(self, fingerprints: Sequence[str]) -> Failure:
        """A bridge is present that has none of this gateway's keys, which have these fingerprints."""
        return self._unavailable(
            "a bridge is present, but has another key file, so its messages cannot be opened; compare `fingerprints` "
            f"in the log line `seal keys read` of both (this gateway's: {', '.join(fingerprints)})"
        )

    def other_version(self) -> Failure:
        """No present bridge has the description that the call was made for."""
        return self._unavailable("no bridge has this version of the policy; is the worker being updated?")

    def too_much(self, held: int, limit: int) -> Failure:
        """The open calls hold too many bytes."""
        return self._overloaded(
            f"the open calls have {held} bytes, and the limit queue_open_bytes is {limit}; run more bridges, or raise "
            "the limit"
        )

    def too_long(self, length: int, limit: int) -> Failure:
        """Too many calls are in the queue."""
        return self._overloaded(
            f"{length} calls are in it, and the limit queue_length is {limit}; run more bridges, or raise the limit"
        )

    def too_large(self, size: int, limit: int) -> Failure:
        """The queue uses too much of Redis' memory."""
        return self._overloaded(
            f"it uses {size} bytes in Redis, and the limit queue_bytes is {limit}; run more bridges, or raise the limit"
        )

    def too_slow(self, backlog: StreamBacklog, left: float) -> Failure:
        """The calls before this one take longer than its deadline allows."""
        return self._overloaded(
            f"{backlog.length} calls are in it, which take {backlog.seconds:.1f} s at the present rate, and this one "
            f"has {max(left, 0):.1f} s left; run more bridges"
        )

    def late(self) -> Failure:
        """The deadline has passed."""
        return Failure(reason=Reason.WORKER_TIMEOUT, message=f"worker {self.name!r} did not answer before its deadline")

    def from_bridge(self, error: q.Error) -> Failure:
        """The bridge reports why there is no verdict."""
        reason = Reason.WORKER_FAILURE
        if error.reason in REPORTED:
            reason = Reason(error.reason)
        text = self._one_line(error.message) or "it gives no reason"
        return Failure(reason=reason, message=f"a bridge of worker {self.name!r} ({self.target}): {text}")

    def empty_reply(self, what: str) -> Failure:
        """A reply without a verdict."""
        return Failure(reason=Reason.INVALID_RESPONSE, message=f"worker {self.name!r} ({self.target}) sent {what}")

    def internal(self, error: Exception) -> Failure:
        """An exception inside the gateway."""
        return Failure(reason=Reason.INTERNAL, message=f"calling worker {self.name!r}: {type(error).__name__}")

    def _unavailable(self, text: str) -> Failure:
        return Failure(reason=Reason.WORKER_UNAVAILABLE, message=f"worker {self.name!r} ({self.target}): {text}")

    def _overloaded(self, text: str) -> Failure:
        return Failure(reason=Reason.OVERLOADED, message=f"worker {self.name!r} ({self.target}): {text}")

    def _one_line(self, text: str) -> str:
        return one_line(text, self._characters)
