"""All failures of calls over gRPC, with their reason codes. No other module of this package makes one.

====================================================  ======================
error                                                 reason
====================================================  ======================
no connection, or a lost one                          WORKER_UNAVAILABLE
not called: NOT_SERVING, or an open circuit           WORKER_UNAVAILABLE
the deadline has passed                               WORKER_TIMEOUT
another status than OK                                WORKER_FAILURE
an invalid message or outcome                         INVALID_RESPONSE
too many unsolicited answers                          INVALID_RESPONSE
too many unwritten bytes, or no room for an answer    OVERLOADED
an exception in the gateway                           INTERNAL
====================================================  ======================
"""

from time import monotonic
from typing import Final

import grpc
import grpc.aio

from gateway.engine.verdicts import Failure
from gateway.policies.workers.targets import GrpcTls
from gateway.reasons import Reason
from gateway.transports.connection_errors import handshake_failure
from gateway.transports.messages import one_line

CLOCKS_SECONDS: Final = 0.005
"""A call that the worker cancelled so shortly before its deadline counts as timed out: both sides keep the deadline, in
milliseconds."""


class Failures:
    """Converts the errors of one worker to failures.

    Args:
        name: the worker's.
        target: as it is configured.
        characters: how much of the worker's text a message keeps.
        tls: the TLS configuration; None: plain text.
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
        """There is no connection; ``text`` is gRPC's message or the gateway's."""
        handshake = handshake_failure(text, self._tls)
        if handshake is not None:
            return Failure(
                reason=Reason.WORKER_UNAVAILABLE, message=f"worker {self.name!r} at {self.target} {handshake}"
            )
        return Failure(
            reason=Reason.WORKER_UNAVAILABLE,
            message=f"worker {self.name!r} at {self.target} cannot be reached; check that it runs: "
            f"{self.one_line(text)}",
        )

    def unavailable(self, why: str) -> Failure:
        """The worker is not connected or not described, for a known reason."""
        return Failure(reason=Reason.WORKER_UNAVAILABLE, message=why)

    def not_serving(self) -> Failure:
        """All connected replicas report NOT_SERVING."""
        return Failure(
            reason=Reason.WORKER_UNAVAILABLE,
            message=f"worker {self.name!r} at {self.target} reports NOT_SERVING (grpc.health.v1); see its log",
        )

    def circuit_open(self, policy: str, waiting: int, limit: int) -> Failure:
        """The circuit of the policy is open at all endpoints where it could be called, and enough calls wait."""
        return Failure(
            reason=Reason.WORKER_UNAVAILABLE,
            message=f"worker {self.name!r} at {self.target} does not answer: the circuit breaker of policy {policy!r} "
            f"is open, and {waiting} calls wait for an answer; the limit worker_circuit_in_flight is {limit}, of which "
            "one namespace may have as many as are free; see the worker's log",
        )

    def other_version(self, policy: str) -> Failure:
        """No connected replica has the policy as it was described."""
        return Failure(
            reason=Reason.WORKER_UNAVAILABLE,
            message=f"worker {self.name!r} at {self.target}: no connected replica has policy {policy!r} as it was "
            "described; it may be in an update",
        )

    def too_much(self, waiting: int, limit: int) -> Failure:
        """Too many bytes wait to be written."""
        return Failure(
            reason=Reason.OVERLOADED,
            message=f"worker {self.name!r} does not read: {waiting} bytes wait to be written, and the limit "
            f"worker_backlog_bytes is {limit}; check whether it hangs, or run more replicas of it",
        )

    def no_room(self, places: int) -> Failure:
        """There was no place in which to receive the answer."""
        return Failure(
            reason=Reason.OVERLOADED,
            message=f"worker {self.name!r} answered, but {places} answers of workers were being received, as many as "
            "fit if they are large (answer_bytes_in_flight), and none was complete in time; try again, let workers "
            "answer with patches, or raise --memory-budget",
        )

    def late(self) -> Failure:
        """The deadline has passed."""
        return Failure(reason=Reason.WORKER_TIMEOUT, message=f"worker {self.name!r} did not answer before its deadline")

    def ended_by_worker(self) -> Failure:
        """The worker ended its stream with calls open."""
        return Failure(
            reason=Reason.WORKER_UNAVAILABLE,
            message=f"worker {self.name!r} at {self.target} ended its stream without an answer; check whether it was "
            "stopped",
        )

    def closed(self) -> Failure:
        """The gateway has closed the connection."""
        return Failure(
            reason=Reason.WORKER_UNAVAILABLE, message=f"the connection to worker {self.name!r} has been closed"
        )

    def unreadable(self, what: str, error: Exception) -> Failure:
        """A message that cannot be parsed."""
        return Failure(
            reason=Reason.INVALID_RESPONSE,
            message=f"worker {self.name!r} sent an invalid {what}: {self.one_line(str(error))}",
        )

    def unsolicited_limit(self, limit: int) -> Failure:
        """The worker sent too many answers without a call."""
        return Failure(
            reason=Reason.INVALID_RESPONSE,
            message=f"worker {self.name!r} sent more unsolicited answers than the limit worker_unsolicited, which "
            f"is {limit}; the gateway ended its stream",
        )

    def premature(self) -> Failure:
        """The worker answered an id whose call was not sent yet."""
        return Failure(
            reason=Reason.INVALID_RESPONSE, message=f"worker {self.name!r} answered a call before it was sent"
        )

    def internal(self, error: Exception) -> Failure:
        """An error in the gateway."""
        return Failure(reason=Reason.INTERNAL, message=f"calling worker {self.name!r}: {type(error).__name__}")

    def one_line(self, text: str) -> str:
        """A worker's text, on one line and cut."""
        return one_line(text, self._characters)


def is_late(code: grpc.StatusCode, deadline: float) -> bool:
    """Whether a call ended because its deadline passed.

    Both sides keep the deadline. A server in Go or Java resets its call at the deadline, with the code CANCEL, and the
    reset may arrive in the millisecond before the client's own timer ends: in 30 of 1,000 calls.
    """
    if code is grpc.StatusCode.CANCELLED:
        return monotonic() >= deadline - CLOCKS_SECONDS
    return code is grpc.StatusCode.DEADLINE_EXCEEDED
