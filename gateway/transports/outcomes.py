"""Decodes the outcomes of one worker. Most outcomes are equal to earlier ones, such as a plain allow, so the answers of
short ones are memoized.
"""

from collections.abc import Callable
from typing import Final

import structlog

from gateway.engine.policy_call import PolicyCall
from gateway.engine.verdicts import Allow, Answer, Failure
from gateway.transports.messages import OutcomeReader, outcome_answer
from gateway.transports.proto.admission.worker.v1 import worker_pb2 as pb

_LOG: Final = structlog.get_logger(__name__)

SHORT_VERDICT: Final = 256
"""Bytes of an outcome that is memoized: a version, a warning, a small patch."""

VERDICTS: Final = 256
"""Memoized outcomes, 64 KB; with one more, the memo is cleared."""


class Outcomes:
    """Decodes outcomes.

    Args:
        worker: the Worker's name.
        characters: how much of the worker's text one message keeps.
        internal: makes the failure for an error inside the gateway.
        read_outcome: converts an outcome to an answer.
    """

    def __init__(
        self,
        worker: str,
        characters: int,
        internal: Callable[[Exception], Failure],
        read_outcome: OutcomeReader = outcome_answer,
    ) -> None:
        self._worker = worker
        self._characters = characters
        self._internal = internal
        self._read_outcome = read_outcome
        self._verdicts: dict[bytes, Allow] = {}
        self._reported_on: set[str] = set()

    def read(self, call: PolicyCall, outcome: pb.Outcome, *, is_large: bool = False) -> Answer:
        """The answer of an outcome; ``is_large``: of one that may be large."""
        # Only these may be memoized: to serialize another one, of 38 MB, took 70 ms.
        is_short = (
            not is_large and outcome.WhichOneof("verdict") == "allow" and outcome.allow.WhichOneof("change") != "object"
        )
        content = outcome.SerializeToString() if is_short else b""
        known = self._verdicts.get(content)
        if known is not None:
            return known
        try:
            answer = self._read_outcome(
                call, outcome, characters=self._characters, invalid_hint=self.report_invalid_hint
            )
        except Exception as error:  # noqa: BLE001 - a review waits for an answer
            _LOG.exception("calling a worker failed inside the gateway", worker=self._worker, uid=call.uid)
            return self._internal(error)
        if is_short and len(content) <= SHORT_VERDICT and isinstance(answer, Allow) and answer.reuse is None:
            if len(self._verdicts) >= VERDICTS:
                self._verdicts.clear()
            self._verdicts[content] = answer
        return answer

    def report_invalid_hint(self, call: PolicyCall, observed: str) -> None:
        """Log an invalid cache hint, once for each policy: a policy usually repeats it with every answer."""
        if call.policy.policy not in self._reported_on:
            self._reported_on.add(call.policy.policy)
            _LOG.warning(
                "a worker's cache hint is invalid; the verdict is not cached",
                worker=self._worker,
                policy=call.policy.policy,
                observed=observed,
                expected="no_store, or a ttl that is not negative",
            )
