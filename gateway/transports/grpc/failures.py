"""Every way in which calling a worker over gRPC can go wrong, as a Failure with its reason code; here and nowhere else.

====================================================  ======================
what happens                                          reason
====================================================  ======================
no connection, or lost on the way                     WORKER_UNAVAILABLE
it is not called: not serving, its circuit is open     WORKER_UNAVAILABLE
the deadline passes                                   WORKER_TIMEOUT
another status than OK                                WORKER_FAILURE
bytes or an outcome that say nothing                  INVALID_RESPONSE
answers that nobody asked for, again and again        INVALID_RESPONSE
too many calls are open, or too much is unwritten      OVERLOADED
an exception of ours                                  INTERNAL
====================================================  ======================
"""

from time import monotonic
from typing import Final

import grpc
import grpc.aio

from gateway.engine.verdicts import Failure
from gateway.policies.workers.targets import GrpcTls
from gateway.reasons import Reason
from gateway.transports.handshakes import handshake_failure
from gateway.transports.messages import one_line

CLOCKS_SECONDS: Final = 0.005
"""A call that was cancelled from the other side so little before its deadline has ended by its deadline: gRPC counts
deadlines in milliseconds, on both sides."""


class Failures:
    """Names what goes wrong with one worker.

    Args:
        name: the worker's.
        target: as it is configured.
        characters: how much of the worker's own words is kept.
        tls: how the connections are secured; None: plain text.
    """

    __slots__ = ("_characters", "_tls", "name", "target")

    def __init__(self, name: str, target: str, characters: int, tls: GrpcTls | None = None) -> None:
        self._tls = tls
        self.name = name
        self.target = target
        self._characters = characters

    def of(self, error: grpc.aio.AioRpcError) -> Failure:
        """A call that ended with a status."""
        code = error.code()
        if code is grpc.StatusCode.UNAVAILABLE:
            return self.unreachable(error.details() or "")
        if code is grpc.StatusCode.DEADLINE_EXCEEDED:
            return self.late()
        text = self.one_line(error.details() or "")
        return Failure(
            reason=Reason.WORKER_FAILURE, message=f"worker {self.name!r} answered with status {code.name}: {text}"
        )

    def unreachable(self, text: str) -> Failure:
        """There is no connection; ``text`` is gRPC's or ours."""
        handshake = handshake_failure(text, self._tls)
        if handshake is not None:
            return Failure(
                reason=Reason.WORKER_UNAVAILABLE, message=f"worker {self.name!r} at {self.target} {handshake}"
            )
        return Failure(
            reason=Reason.WORKER_UNAVAILABLE,
            message=f"worker {self.name!r} at {self.target} cannot be reached; see whether it runs: "
            f"{self.one_line(text)}",
        )

    def because(self, why: str) -> Failure:
        """It is not connected or not described, for a reason that is known."""
        return Failure(reason=Reason.WORKER_UNAVAILABLE, message=why)

    def not_serving(self) -> Failure:
        """All that are connected say NOT_SERVING."""
        return Failure(
            reason=Reason.WORKER_UNAVAILABLE,
            message=f"worker {self.name!r} at {self.target} says by grpc.health.v1 that it is NOT_SERVING; see its log",
        )

    def circuit_open(self, policy: str, seconds: float) -> Failure:
        """Wherever the policy could be called, it is not for now."""
        return Failure(
            reason=Reason.WORKER_UNAVAILABLE,
            message=f"worker {self.name!r} at {self.target} is not asked about policy {policy!r} for {seconds:g} s at "
            "a time, since most of its latest calls were lost, late or failed; see its log",
        )

    def other_version(self, policy: str) -> Failure:
        """Whoever is connected holds the policy in another way than it was described."""
        return Failure(
            reason=Reason.WORKER_UNAVAILABLE,
            message=f"worker {self.name!r} at {self.target}: nobody who is connected holds policy {policy!r} as it was "
            "described; is it being updated?",
        )

    def too_many(self, limit: int) -> Failure:
        """One more call than may be open."""
        return Failure(
            reason=Reason.OVERLOADED,
            message=f"worker {self.name!r} has {limit} asks open, which is the limit worker_in_flight; is it too slow? "
            "run more replicas of it, or raise the limit",
        )

    def too_much(self, waiting: int, limit: int) -> Failure:
        """More bytes than may wait to be written."""
        return Failure(
            reason=Reason.OVERLOADED,
            message=f"worker {self.name!r} does not read: {waiting} bytes wait to be written, and the limit "
            f"worker_backlog_bytes is {limit}; see whether it hangs, or run more replicas of it",
        )

    def late(self) -> Failure:
        """The deadline is over."""
        return Failure(reason=Reason.WORKER_TIMEOUT, message=f"worker {self.name!r} did not answer before its deadline")

    def ended_by_worker(self) -> Failure:
        """The worker ended its stream with calls open."""
        return Failure(
            reason=Reason.WORKER_UNAVAILABLE,
            message=f"worker {self.name!r} at {self.target} ended its stream without an answer; see whether it was "
            "stopped",
        )

    def closed(self) -> Failure:
        """The gateway itself has let go of the connection."""
        return Failure(
            reason=Reason.WORKER_UNAVAILABLE, message=f"the connection to worker {self.name!r} has been closed"
        )

    def unreadable(self, what: str, error: Exception) -> Failure:
        """Bytes that are none."""
        return Failure(
            reason=Reason.INVALID_RESPONSE,
            message=f"worker {self.name!r} sent bytes that are no {what}: {self.one_line(str(error))}",
        )

    def unsolicited_limit(self, limit: int) -> Failure:
        """It answers what nobody called."""
        return Failure(
            reason=Reason.INVALID_RESPONSE,
            message=f"worker {self.name!r} sent more unsolicited answers than the limit worker_unsolicited, which "
            f"is {limit}; the gateway ended its stream",
        )

    def guessed(self) -> Failure:
        """It answers what has not been sent to it."""
        return Failure(
            reason=Reason.INVALID_RESPONSE, message=f"worker {self.name!r} answered an ask before it was sent"
        )

    def internal(self, error: Exception) -> Failure:
        """A mistake of ours."""
        return Failure(reason=Reason.INTERNAL, message=f"calling worker {self.name!r}: {type(error).__name__}")

    def one_line(self, text: str) -> str:
        """A worker's own words, for people."""
        return one_line(text, self._characters)


def is_late(code: grpc.StatusCode, deadline: float) -> bool:
    """Whether a call ended because its deadline passed.

    Both sides keep the deadline. A server in Go or Java resets its call when it passes, with the code CANCEL, and that
    may come in the very millisecond before the client's own clock says that it is over: of 1,000 calls it was 30.
    """
    if code is grpc.StatusCode.CANCELLED:
        return monotonic() >= deadline - CLOCKS_SECONDS
    return code is grpc.StatusCode.DEADLINE_EXCEEDED
