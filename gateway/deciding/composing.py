"""One answer out of several policies' turns.

* A denial outranks a failure. Code, reason and details are those of the first denial in chain order, else of the first
  failure that refuses.
* The message has one line ``POLICY: text`` for each policy that refuses, denials first; details.causes one entry for
  each. A
  policy that is alone in its plan has its message and details sent untouched: nothing shows that a gateway stood
  between.
* A failure under Fail is 500 InternalError, with its reason code in the message. OVERLOADED and BUDGET_EXHAUSTED are
  429 with
  retryAfterSeconds 1: the client may try again, and should.
* A failure under Ignore is loud: a warning to the user and an audit annotation. (Metric and log are telemetry's.)
* Warnings and audit annotations of everybody who was heard are kept, with denials too. A second annotation under the
  same key is dropped, as kube-apiserver drops it.
"""

from collections.abc import Sequence
from typing import Any, Final

from gateway.deciding.decision import Call, Outcome
from gateway.deciding.verdicts import Allow, Deny, Failure
from gateway.reasons import Reason
from gateway.review import Response, Status, annotation_key, denial_code

TRY_AGAIN: Final = frozenset({Reason.OVERLOADED, Reason.BUDGET_EXHAUSTED})
"""Failures that pass by themselves."""

RETRY_AFTER_SECONDS: Final = 1
"""Seconds: a second is what the API server's own max-in-flight filter tells its clients."""

WITHOUT_EXPLANATION: Final = "denied without explanation"


def compose(calls: Sequence[Call], *, alone: bool, patch: bytes | None) -> tuple[Outcome, Response]:
    """The answer to a review.

    Args:
        calls: all turns, in chain order, round by round.
        alone: whether the plan has a single policy.
        patch: what to change if the request is allowed, or None.
    """
    denials = [call for call in calls if isinstance(call.answer, Deny)]
    failures = [call for call in calls if call.failed_closed]
    warnings = tuple(text for call in calls for text in _warnings(call))
    annotations: dict[str, str] = {}
    # Our own words about failures first: no worker's annotation may stand in their place.
    for call in sorted(calls, key=lambda call: not isinstance(call.answer, Failure)):
        for key, value in _annotations(call):
            annotations.setdefault(key, value)
    if denials or failures:
        status = _refusal([*denials, *failures], alone=alone)
        refused = Response(allowed=False, status=status, warnings=warnings, audit_annotations=annotations)
        return (Outcome.DENIED if denials else Outcome.FAILED), refused
    return Outcome.ALLOWED, Response(allowed=True, patch=patch, warnings=warnings, audit_annotations=annotations)


def _refusal(refusing: Sequence[Call], *, alone: bool) -> Status:
    first = _status(refusing[0])
    if alone:
        return first
    lines = [f"{call.label}: {_text(call)}" for call in refusing]
    causes = [*(first.details or {}).get("causes", ())]
    causes += [{"reason": _reason(call), "message": line} for call, line in zip(refusing, lines, strict=True)]
    return Status(
        code=first.code,
        reason=first.reason,
        message="\n".join(lines),
        details={**(first.details or {}), "causes": causes},
    )


def _status(call: Call) -> Status:
    match call.answer:
        case Deny(code=code, message=message, reason=reason, details=details):
            return Status(code=denial_code(code), message=message, reason=reason, details=details)
        case Failure(reason=reason):
            retry: dict[str, Any] | None = {"retryAfterSeconds": RETRY_AFTER_SECONDS} if reason in TRY_AGAIN else None
            return Status(
                code=429 if retry else 500,
                message=_text(call),
                reason="TooManyRequests" if retry else "InternalError",
                details=retry,
            )
        case answer:
            raise AssertionError(f"{call.label} does not refuse: {answer!r}")


def _text(call: Call) -> str:
    match call.answer:
        case Deny(message=message, reason=reason):
            return message or reason or WITHOUT_EXPLANATION
        case Failure(reason=reason, message=message):
            return f"{reason}: {message}"
        case _:
            return ""


def _reason(call: Call) -> str:
    return call.answer.reason if isinstance(call.answer, Failure) else Reason.DENIED


def _warnings(call: Call) -> tuple[str, ...]:
    if isinstance(call.answer, Allow | Deny):
        return call.answer.warnings
    if call.failed_open:
        return (f"{call.label}: not judged, let pass by failurePolicy Ignore: {_text(call)}",)
    return ()


def _annotations(call: Call) -> list[tuple[str, str]]:
    if isinstance(call.answer, Allow | Deny):
        return [(annotation_key(call.label, key), value) for key, value in call.answer.audit_annotations.items()]
    if isinstance(call.answer, Failure):
        kind = "failed-open" if call.failed_open else "failed"
        return [(annotation_key(call.label, kind), call.answer.reason)]
    return []
