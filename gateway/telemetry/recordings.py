"""Recordings: a sample of the reviews, each with its decision, so that policies can be tried on them later.

A recording is the document of ``gateway.telemetry.decision_document`` with two more members:

=============================  ====================================================================================
member                         value
=============================  ====================================================================================
review                         the AdmissionReview: of its object, old object, options and user what the policies that
                               were called received, what their selectors and conditions read, and ``HIDDEN`` in the
                               place of a value that they changed without receiving it
replayable                     whether the review as it is recorded has the same decision: no value that a policy
                               received, or a condition read, is missing
=============================  ====================================================================================

Not replayable are the reviews of Secrets, unless no policy received their values; those in which a condition names
``authorizer``; and, while the policies' inputs leave out a part of an object, those in which a condition names it, or a
change of it could not be applied.
"""

import random
from collections.abc import Callable, Iterable
from typing import Any, Final

import structlog

from gateway.engine.decision import Decision, Outcome
from gateway.engine.invocation_record import InvocationRecord
from gateway.engine.verdicts import Failure
from gateway.json_values import VALUES
from gateway.reasons import Reason
from gateway.review.request import Request
from gateway.scopes.inputs import OBJECT
from gateway.scopes.pointer import Pointer, array_index, parse_pointer
from gateway.scopes.pointer_set import ANY
from gateway.scopes.projection import NOTHING
from gateway.telemetry.background_writer import BackgroundWriter
from gateway.telemetry.decision_batch import LARGE_BYTES, DecisionBatch, review_bytes
from gateway.telemetry.decision_document import decision_document, encoded
from gateway.telemetry.labels import Drop
from gateway.telemetry.masking import HIDDEN
from gateway.telemetry.redaction import OLD_OBJECT, Redaction

_LOG: Final = structlog.get_logger(__name__)

REVIEW_BYTES: Final = LARGE_BYTES
"""The largest review that is recorded: to decode and encode a part of it takes some 5 ms of the event loop, for which
other reviews wait; most objects have a tenth of it."""

_UNAPPLIED: Final = frozenset({Reason.INVALID_PATCH, Reason.PATCH_CONFLICT, Reason.WRITE_SCOPE})
"""Failures to apply a change: what of the object it would have changed is not known."""

_ABSENT: Final = "\0"
"""A member that no object has: the containers above it are shown, and nothing in them."""


class Recorder:
    """Records a sample of the reviews. A DecisionObserver.

    Args:
        writer: takes the recordings.
        ratio: of the reviews that are recorded: from 0, none, to 1, all.
        draw: returns a random number from 0 up to 1, 1 excluded.
    """

    def __init__(self, writer: BackgroundWriter, ratio: float, draw: Callable[[], float] = random.random) -> None:
        self._writer = writer
        self._ratio = ratio
        self._draw = draw
        self._batch = DecisionBatch(self._write)

    def decided(self, decision: Decision) -> None:
        """Record this review soon, if it is one of the sample; in the event loop. Not one that its policies have not
        decided: there is nothing to compare others with.
        """
        if self._draw() >= self._ratio or decision.reason is not None or decision.outcome is Outcome.CANCELED:
            return
        if review_bytes(decision) > REVIEW_BYTES:
            self._writer.drop(Drop.TOO_LARGE)
        elif self._writer.full:
            self._writer.drop(Drop.FULL, error="too many recordings wait to be written")
        else:
            self._batch.add(decision)

    def flush(self) -> None:
        """Record those that wait; in the event loop."""
        self._batch.flush()

    def _write(self, decision: Decision) -> None:
        try:
            content = encoded(recording(decision))
        except Exception:  # noqa: BLE001 - logged and counted: an observer must not raise
            _LOG.exception("a review cannot be recorded", uid=decision.request.uid)
            self._writer.drop(Drop.INTERNAL)
            return
        self._writer.put(content)


def recording(decision: Decision) -> dict[str, Any]:
    """The recording of a decision, ready for JSON.

    Raises:
        ReviewError: a member of the request cannot be read.
    """
    request, calls = decision.request, decision.calls
    changed = [parse_pointer(each.path) for call in calls for each in (*call.changes, *call.would_change)]
    conditions = {name for call in calls for each in call.policy.match_conditions for name in each.condition.variables}
    redaction = Redaction(request, calls, (*_matched_by(calls, conditions), *_containers(changed)))
    members: dict[str, Any] = {}
    for name, text in request.members.items():
        value = text if redaction.shows_whole(name) else redaction.member(name, text)
        if value is not NOTHING:
            members[name] = value
    if type(members.get(OBJECT)) is dict:
        members[OBJECT] = _with_changed(members[OBJECT], request, changed)
    review = {"apiVersion": request.api_version, "kind": "AdmissionReview", "request": members}
    replayable = (
        redaction.whole
        and "authorizer" not in conditions
        and "authorizer.requestResource" not in conditions
        and all(redaction.shows_whole(name) for name in {OBJECT, OLD_OBJECT} & conditions & request.members.keys())
        and not any(ANY in path for path in changed)
        and (redaction.shows_whole(OBJECT) or not any(_is_unapplied(call) for call in calls))
    )
    return {**decision_document(decision), "review": review, "replayable": replayable}


def _is_unapplied(call: InvocationRecord) -> bool:
    return isinstance(call.answer, Failure) and call.answer.reason in _UNAPPLIED


def _matched_by(calls: Iterable[InvocationRecord], conditions: set[str]) -> list[Pointer]:
    """Places over the request that decide whether a policy is called."""
    places: list[Pointer] = []
    if any(call.policy.object_selector.requirements or call.policy.namespace_selector.requirements for call in calls):
        places += [(member, "metadata", "labels") for member in (OBJECT, OLD_OBJECT)]
    if "request" in conditions:
        places += [("userInfo",), ("options",)]
    return places


def _containers(changed: Iterable[Pointer]) -> list[Pointer]:
    """Places that show the containers of changed values: a change applies to them, whether the policy sees them or not.

    (A name ``*`` would show everything; such a recording is not replayable.)
    """
    return [(OBJECT, *path[:-1], _ABSENT) for path in changed if path and ANY not in path]


def _with_changed(shown: dict[str, Any], request: Request, changed: Iterable[Pointer]) -> Any:
    """``shown`` with a value wherever a policy has replaced or removed one that is not shown."""
    # What is shown whole is shared with the request, which must not change.
    copy = VALUES.decode(encoded(shown))
    for path in changed:
        if path and _exists(request.object, path):
            container = _at(copy, path[:-1])
            if type(container) is dict:
                container.setdefault(path[-1], HIDDEN)
    return copy


def _at(value: Any, path: Pointer) -> Any:
    for token in path:
        if type(value) is dict:
            value = value.get(token)
        elif type(value) is list and (index := array_index(token)) is not None and index < len(value):
            value = value[index]
        else:
            return None
    return value


def _exists(value: Any, path: Pointer) -> bool:
    container = _at(value, path[:-1])
    return type(container) is dict and path[-1] in container
