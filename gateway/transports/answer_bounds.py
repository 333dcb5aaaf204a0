"""Bounds what the answers of all workers of one process occupy, before anything is done with them.

* The texts of an answer are cut at ``answer_characters`` (``answer_texts``).
* A large change is charged before it is parsed, and as long as somebody keeps it: the review, those that share the
  answer, a decision that is retained with it. If it does not fit beside the others, the call fails with ``OVERLOADED``.
  It does not wait: its bytes are in memory already, and waiting would keep them there.
"""

import weakref
from collections.abc import Callable
from typing import Final

from gateway.engine.policy_call import PolicyCall
from gateway.engine.verdicts import Allow, Answer, Change, Failure
from gateway.reasons import Reason
from gateway.telemetry.events import Events
from gateway.telemetry.labels import WorkerEvent
from gateway.transports.answer_texts import characters, shortened
from gateway.transports.limits import Backlog, TransportLimits
from gateway.transports.worker_channel import count_worker_event

LARGE_BYTES: Final = 65_536
"""A change of this size is charged. The 1,024 smaller ones of as many reviews take 64 MiB at most, a sixteenth of the
memory budget."""


class AnswerBounds:
    """The bounds of all answers of one process.

    Args:
        limits: how many characters an answer may have, and how many bytes of changes may be held.
        events: counts the answers that reach a limit, for each worker.
        large: called when an answer was large; None: nothing is.
    """

    def __init__(self, limits: TransportLimits, events: Events, large: Callable[[], object] | None = None) -> None:
        self._large = large
        self._characters = limits.answer_characters
        self._changes = Backlog(limits.answer_bytes_in_flight)
        self._events = events

    @property
    def held(self) -> int:
        """The bytes of the large changes that are in memory."""
        return self._changes.bytes

    def bounded(self, call: PolicyCall, answer: Answer) -> Answer:
        """The answer with bounded texts; a failure if its change does not fit."""
        if characters(answer) > self._characters:
            count_worker_event(self._events, call.policy.worker, WorkerEvent.ANSWER_CUT)
            answer = shortened(answer, self._characters)
            self._was_large()
        if isinstance(answer, Allow) and answer.change is not None and len(answer.change.content) > LARGE_BYTES:
            return self._charged(call, answer, answer.change)
        return answer

    def _charged(self, call: PolicyCall, answer: Allow, change: Change) -> Answer:
        size = len(change.content)
        self._was_large()
        if not self._changes.has_room(size):
            count_worker_event(self._events, call.policy.worker, WorkerEvent.ANSWER_BYTES)
            return Failure(
                reason=Reason.OVERLOADED,
                message=f"worker {call.policy.worker!r} answered policy {call.policy.policy!r} with a change of {size} "
                f"bytes, while {self._changes.bytes} bytes of changes are in memory and the limit "
                f"answer_bytes_in_flight is {self._changes.limit}; try again, let the worker answer with a patch, or "
                "raise --memory-budget",
            )
        self._changes.bytes += size
        weakref.finalize(change, self._release, size).atexit = False
        return answer

    def _was_large(self) -> None:
        if self._large is not None:
            self._large()

    def _release(self, size: int) -> None:
        self._changes.bytes -= size
