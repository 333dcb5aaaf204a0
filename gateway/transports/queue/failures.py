"""Every way in which calling a worker through a queue can go wrong, as a Failure with its reason code; here and nowhere
else.

====================================================  ======================
what happens                                          reason
====================================================  ======================
the key file cannot be read                           CONFIGURATION
Redis is away, or does not take the call               WORKER_UNAVAILABLE
Redis is full                                         OVERLOADED
no bridge is there, or none with that version or key  WORKER_UNAVAILABLE
the last one is gone, and may have had an effect      WORKER_UNAVAILABLE
the queue is too long, too large, or too slow         OVERLOADED
too many calls are open, or they are too large         OVERLOADED
the deadline passes                                   WORKER_TIMEOUT
the bridge could not call its worker                   what the bridge says
an answer that says nothing                           INVALID_RESPONSE
an exception of ours                                  INTERNAL
====================================================  ======================
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
    """Names what goes wrong with one worker.

    Args:
        name: the worker's.
        target: its queue, as people are told.
        characters: how much of others' words is kept.
    """

    __slots__ = ("_characters", "name", "target")

    def __init__(self, name: str, target: str, characters: int) -> None:
        self.name = name
        self.target = target
        self._characters = characters

    def misconfigured(self, why: str) -> Failure:
        """It cannot be called before somebody changes something."""
        return Failure(reason=Reason.CONFIGURATION, message=f"worker {self.name!r} cannot be asked: {why}")

    def redis_away(self, why: str) -> Failure:
        """There is no Redis to put calls into."""
        why = why or "it does not answer"
        return self._unavailable(f"Redis is away: {self._one_line(why)}; see whether it runs, and --queue-redis")

    def refused(self, error: BaseException) -> Failure:
        """Redis did not take the call."""
        why = self._one_line(reason_of(error))
        if isinstance(error, exceptions.OutOfMemoryError):
            return self._overloaded(f"Redis has no room: {why}; raise its maxmemory, or run more bridges")
        return self._unavailable(f"Redis refuses the ask: {why}")

    def no_consumer(self) -> Failure:
        """No bridge is there."""
        return self._unavailable(
            "no bridge takes asks from it: none runs with the same --queue and --key-file, or its worker is away; a "
            "bridge's /readyz and log say which"
        )

    def in_doubt(self) -> Failure:
        """The bridge that had a call with side effects is gone, and no other one is there."""
        return self._unavailable(
            "it was given to a bridge that is gone and has not answered, and may have had its effect: a policy with "
            "side effects is not asked twice; see why that bridge stopped"
        )

    def unknown(self, fingerprints: Sequence[str]) -> Failure:
        """A bridge is there that has none of our keys, which have these fingerprints."""
        return self._unavailable(
            "a bridge is there, but its messages cannot be opened: its key file is another one; compare `fingerprints` "
            f"in the log line `seal keys read` of both (this gateway's: {', '.join(fingerprints)})"
        )

    def other_version(self) -> Failure:
        """Whoever is there holds the policy in another way than it was described."""
        return self._unavailable("nobody who is there holds the policy as it was described; is it being updated?")

    def too_many(self, limit: int) -> Failure:
        """One more call than may be open."""
        return self._overloaded(
            f"{limit} asks are open, which is the limit worker_in_flight; run more bridges, or raise the limit"
        )

    def too_much(self, held: int, limit: int) -> Failure:
        """More bytes than may be open."""
        return self._overloaded(
            f"the open asks have {held} bytes, and the limit queue_open_bytes is {limit}; run more bridges, or raise "
            "the limit"
        )

    def too_long(self, length: int, limit: int) -> Failure:
        """More calls are in the queue than may be."""
        return self._overloaded(
            f"{length} asks are in it, and the limit queue_length is {limit}; run more bridges, or raise the limit"
        )

    def too_large(self, size: int, limit: int) -> Failure:
        """It takes more of Redis' memory than it may."""
        return self._overloaded(
            f"it has {size} bytes in Redis, and the limit queue_bytes is {limit}; run more bridges, or raise the limit"
        )

    def too_slow(self, backlog: StreamBacklog, left: float) -> Failure:
        """What is before the call takes longer than the call has."""
        return self._overloaded(
            f"{backlog.length} asks are in it, which take {backlog.seconds:.1f} s at the present pace, and this one "
            f"has {max(left, 0):.1f} s; run more bridges"
        )

    def late(self) -> Failure:
        """The deadline is over."""
        return Failure(reason=Reason.WORKER_TIMEOUT, message=f"worker {self.name!r} did not answer before its deadline")

    def said(self, error: q.Error) -> Failure:
        """The bridge says why there is no answer."""
        reason = Reason.WORKER_FAILURE
        if error.reason in REPORTED:
            reason = Reason(error.reason)
        text = self._one_line(error.message) or "it does not say why"
        return Failure(reason=reason, message=f"a bridge of worker {self.name!r} ({self.target}): {text}")

    def meaningless(self, what: str) -> Failure:
        """An answer that says nothing."""
        return Failure(reason=Reason.INVALID_RESPONSE, message=f"worker {self.name!r} ({self.target}) sent {what}")

    def internal(self, error: Exception) -> Failure:
        """A mistake of ours."""
        return Failure(reason=Reason.INTERNAL, message=f"calling worker {self.name!r}: {type(error).__name__}")

    def _unavailable(self, text: str) -> Failure:
        return Failure(reason=Reason.WORKER_UNAVAILABLE, message=f"worker {self.name!r} ({self.target}): {text}")

    def _overloaded(self, text: str) -> Failure:
        return Failure(reason=Reason.OVERLOADED, message=f"worker {self.name!r} ({self.target}): {text}")

    def _one_line(self, text: str) -> str:
        return one_line(text, self._characters)
