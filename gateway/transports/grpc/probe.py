"""A probe: a copy of a call, sent to an endpoint whose circuit is open, to find out whether it judges again.

The call itself is sent elsewhere, and no review waits for the probe. So a probe has the policy's whole timeout, and an
endpoint that does not answer costs no user anything.
"""

from time import monotonic

from msgspec import Struct
from msgspec.structs import replace

from gateway.engine.policy_call import PolicyCall
from gateway.engine.verdicts import Answer, Failure
from gateway.transports.grpc.breaker import CircuitBreaker
from gateway.transports.grpc.call_attempt import CallResult
from gateway.transports.grpc.connection import Connection


class Probe(Struct, eq=False):
    """A CallAttempt that only its endpoint's circuit breaker hears of."""

    call: PolicyCall
    _breaker: CircuitBreaker
    _began: float
    number: int = 0

    def answered(self, answer: Answer) -> None:
        """See CallAttempt."""
        self._breaker.probe_ended()
        if not isinstance(answer, Failure):
            self._breaker.answered(monotonic(), self._began)

    def ended(self, failure: Failure, result: CallResult) -> None:  # noqa: ARG002 - CallAttempt's
        """See CallAttempt."""
        self._breaker.probe_ended()


def send_probe(call: PolicyCall, breaker: CircuitBreaker, connection: Connection) -> None:
    """Send a copy of a call."""
    now = monotonic()
    copy = replace(call, deadline=now + call.policy.timeout, invocations=[], claims=set())
    breaker.probe_started(now, copy.deadline)
    connection.call(Probe(copy, breaker, now), unary=False)
