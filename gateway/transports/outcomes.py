"""Outcomes of one worker, read. Most verdicts say the same as many before them, a plain allow above all: what short
ones mean is kept.
"""

from collections.abc import Callable
from typing import Final

import structlog

from gateway.engine.policy_call import PolicyCall
from gateway.engine.verdicts import Allow, Answer, Failure
from gateway.transports.messages import Reading, outcome_answer
from gateway.transports.proto.admission.worker.v1 import worker_pb2 as pb

_LOG: Final = structlog.get_logger(__name__)

SHORT_VERDICT: Final = 256
"""Bytes of an allow that is kept to be told again: a version, a warning, a small patch."""

VERDICTS: Final = 256
"""How many of them, 64 KB; one more, and all start anew."""


class Outcomes:
    """Reads them.

    Args:
        worker: the Worker's name.
        characters: how much of the worker's own words is kept in one message.
        internal: names a mistake of ours.
        reading: makes an answer of an outcome.
    """

    def __init__(
        self,
        worker: str,
        characters: int,
        internal: Callable[[Exception], Failure],
        reading: Reading = outcome_answer,
    ) -> None:
        self._worker = worker
        self._characters = characters
        self._internal = internal
        self._reading = reading
        self._verdicts: dict[bytes, Allow] = {}
        self._reported_on: set[str] = set()

    def read(self, ask: PolicyCall, outcome: pb.Outcome) -> Answer:
        """The answer that an outcome is."""
        content = outcome.SerializeToString()
        known = self._verdicts.get(content)
        if known is not None:
            return known
        try:
            answer = self._reading(ask, outcome, characters=self._characters, meaningless=self.meaningless)
        except Exception as error:  # noqa: BLE001 - whatever it is, somebody waits for an answer
            _LOG.exception("calling a worker failed inside the gateway", worker=self._worker, uid=ask.uid)
            return self._internal(error)
        if isinstance(answer, Allow) and answer.reuse is None and len(content) <= SHORT_VERDICT:
            if len(self._verdicts) >= VERDICTS:
                self._verdicts.clear()
            self._verdicts[content] = answer
        return answer

    def meaningless(self, ask: PolicyCall, observed: str) -> None:
        """A cache hint means nothing. Told once for each policy: one that says so once says so with every answer."""
        if ask.policy.policy not in self._reported_on:
            self._reported_on.add(ask.policy.policy)
            _LOG.warning(
                "a worker's cache hint means nothing; the verdict is not kept",
                worker=self._worker,
                policy=ask.policy.policy,
                observed=observed,
                expected="no_store, or a ttl that is not negative",
            )
