"""Builds one response from the turns of several policies.

* A denial takes precedence over a failure. Code, reason and details are those of the first denial in chain order, else
  of the first failure that refuses.
* The message has one line ``POLICY: text`` for each policy that refuses, denials first; details.causes has one entry
  for each. If the plan has only one policy, its message is sent unchanged, and its own causes come first. The denial of
  an existing webhook or hook that is alone in its plan is sent unchanged as a whole.
* If the policy has a contact or documentation, its denial ends with them and the review's uid.
* A failure that refuses has the code and reason of the table below (500 InternalError if it is not in the table), and
  its reason code in front of the message. If kube-apiserver has a message of its own for the failure and the policy is
  alone, exactly that message is sent, and the reason code is in details.causes[].reason. A failure that a retry may
  resolve has retryAfterSeconds.
* A failure under Ignore makes an audit annotation, and a warning to the user unless there was one about this policy a
  moment ago (``open_warnings``).
* A warning is one sentence for the user: the policy, what happened, the reason code. Details for the operator are in
  the log. Annotations have only what stays the same if the API server calls again.
* A policy in mode warn or audit refuses nothing. In mode warn, its denial or failure is a warning to the user; in mode
  audit there is no warning, not even the worker's own. In both modes there is an audit annotation.
* A stale verdict used instead of a failure makes a warning and an audit annotation. So does a conflict with another
  policy if ``onConflict`` is warn.
* If the request is allowed, an audit annotation lists what each policy changed: operation and place of each field, as
  in the final object. It has no values: they may be secret, and readers of the audit log may not be allowed to read the
  object.
* The warnings and audit annotations of all other answers are kept, also beside a denial, and also for an answer whose
  change does not apply. A second annotation with the same key is dropped, as kube-apiserver drops it.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import accumulate
from types import MappingProxyType
from typing import Any, Final

from gateway.engine.conflicts import Conflict, fields, others, places
from gateway.engine.decision import Outcome
from gateway.engine.invocation_record import InvocationRecord
from gateway.engine.verdicts import Deny, Failure
from gateway.patching.difference import Operation
from gateway.policies.model import Mode, OnConflict, Policy
from gateway.quoting import quoted
from gateway.reasons import Reason
from gateway.review.response import Response, Status, annotation_key, denial_code

STATUSES: Final[Mapping[Reason, tuple[int, str]]] = {
    Reason.CONDITION_ERROR: (403, "Forbidden"),
    Reason.NAMESPACE_UNKNOWN: (404, "NotFound"),
    Reason.DRY_RUN_UNSUPPORTED: (400, "BadRequest"),
    Reason.OVERLOADED: (429, "TooManyRequests"),
    Reason.BUDGET_EXHAUSTED: (429, "TooManyRequests"),
}
"""HTTP code and metav1.StatusReason of each failure that refuses."""

INTERNAL_ERROR: Final = (500, "InternalError")
"""HTTP code and reason of every other failure, as for a webhook that could not be called."""

TRY_AGAIN: Final = frozenset(reason for reason, (_, status) in STATUSES.items() if status == "TooManyRequests")
"""Failures that a retry may resolve."""

RETRY_AFTER_SECONDS: Final = 1
"""Seconds: the API server's own max-in-flight filter sends its clients the same."""

WITHOUT_EXPLANATION: Final = "denied without explanation"

_NOT_JUDGED: Final = "could not judge this request"

CHANGES_LISTED: Final = 50
"""How many places an audit annotation lists: at a few hundred bytes each some 10 KB. The API server has accepted
300 KB."""

CHANGED_BYTES: Final = 1_000
"""How many bytes of places the annotation of a policy's changes lists, without the count of the others: twenty policies
have one each, on every change."""


def compose(
    records: Sequence[InvocationRecord],
    *,
    alone: bool,
    uid: str,
    patch: bytes | None,
    changed: Mapping[str, Sequence[Operation]] = MappingProxyType({}),
    warns_of: Callable[[Policy], bool] = lambda _: True,
) -> tuple[Outcome, Response]:
    """The outcome of a review, and the response.

    Args:
        records: all turns, in chain order, round by round.
        alone: whether the plan has a single policy.
        uid: the request's.
        patch: the patch to send if the request is allowed, or None.
        changed: the operations of the patch by the label of the policy that made them; their values are not read.
        warns_of: whether the user is warned that a failure of this policy was ignored.
    """
    audible = [record for record in records if not record.silent]
    if not audible and not changed:
        return Outcome.ALLOWED, Response(allowed=True, patch=patch)
    denials: list[InvocationRecord] = []
    failures: list[InvocationRecord] = []
    warnings: list[str] = []
    annotations: dict[str, str] = {}
    # The gateway's own annotations come first, so that no worker's annotation can replace them.
    for label, operations in changed.items():
        annotations[annotation_key(label, "changed")] = _places(operations, room=CHANGED_BYTES)
    for record in audible:
        if record.refuses:
            (denials if isinstance(record.answer, Deny) else failures).append(record)
        warnings.extend(_warnings(record, warns_of))
        for key, value in _own_annotations(record):
            annotations.setdefault(annotation_key(record.label, key), value)
    for record in audible:
        if record.answer is not None:
            for key, value in record.answer.audit_annotations.items():
                annotations.setdefault(annotation_key(record.label, key), value)
    if not denials and not failures:
        allowed = Response(allowed=True, patch=patch, warnings=tuple(warnings), audit_annotations=annotations)
        return Outcome.ALLOWED, allowed
    refusing = [*denials, *failures]
    status = _status(refusing[0], uid) if alone else _common_status(refusing, uid)
    refused = Response(allowed=False, status=status, warnings=tuple(warnings), audit_annotations=annotations)
    return (Outcome.DENIED if denials else Outcome.FAILED), refused


# ------------------------------------------------------------------------------------------------- refusals


def _common_status(refusing: Sequence[InvocationRecord], uid: str) -> Status:
    """The refusal of several policies, or of one among several."""
    first = _status(refusing[0], uid)
    lines = [f"{record.label}: {_text(record)}" for record in refusing]
    details = _details(refusing[0]) or {}
    causes = [*details.get("causes", ())]
    causes += [_cause(record, line) for record, line in zip(refusing, lines, strict=True)]
    message = "\n".join(line + help_text(record, uid) for record, line in zip(refusing, lines, strict=True))
    return Status(code=first.code, reason=first.reason, message=message, details={**details, "causes": causes})


def _status(record: InvocationRecord, uid: str) -> Status:
    """The refusal of a policy that is alone in its plan."""
    match record.answer:
        case Deny(code=code, message=message, reason=reason, details=details):
            if not record.policy.is_existing:
                details = details or {}
                details = {**details, "causes": [*details.get("causes", ()), _cause(record, _text(record))]}
            ending = help_text(record, uid)
            message = _text(record) + ending if ending else message
            return Status(code=denial_code(code), message=message, reason=reason, details=details or None)
        case Failure(reason=reason, message=message) as failure:
            code, status_reason = STATUSES.get(reason, INTERNAL_ERROR)
            text = _text(record) if failure.details is None else message
            details = {**(_details(record) or {}), "causes": [_cause(record, message)]}
            return Status(code=code, reason=status_reason, message=text, details=details)
        case answer:
            raise AssertionError(f"{record.label} does not refuse: {answer!r}")


def help_text(record: InvocationRecord, uid: str) -> str:
    """What follows a denial of a policy that has a contact or documentation."""
    policy = record.policy
    if not isinstance(record.answer, Deny) or not (policy.contact or policy.documentation):
        return ""
    parts = {"contact": policy.contact, "documentation": policy.documentation, "uid": uid}
    return f" ({'; '.join(f'{name}: {value}' for name, value in parts.items() if value)})"


def _details(record: InvocationRecord) -> Mapping[str, Any] | None:
    """A refusal's own details, without the causes of the others."""
    if isinstance(record.answer, Failure) and record.answer.reason in TRY_AGAIN:
        return {"retryAfterSeconds": RETRY_AFTER_SECONDS}
    return record.answer.details if isinstance(record.answer, Deny | Failure) else None


def _cause(record: InvocationRecord, message: str) -> dict[str, str]:
    if isinstance(record.answer, Failure):
        hint = record.answer.hint
        return {"reason": record.answer.reason, "message": f"{message}; {hint}" if hint else message}
    return {"reason": Reason.DENIED, "message": message}


def _text(record: InvocationRecord) -> str:
    match record.answer:
        case Deny(message=message, reason=reason):
            return message or reason or WITHOUT_EXPLANATION
        case Failure() as failure:
            return _failed(failure)
        case _:
            return ""


def _failed(failure: Failure) -> str:
    return f"{failure.reason}: {failure.message}"


# ---------------------------------------------------------------------------------- warnings and annotations


def _warnings(record: InvocationRecord, warns_of: Callable[[Policy], bool]) -> Iterator[str]:
    mode = record.policy.mode
    if mode is Mode.AUDIT:
        return
    if record.answer is not None:
        yield from record.answer.warnings
    if mode is Mode.WARN and isinstance(record.answer, Deny | Failure):
        text = _text(record) if isinstance(record.answer, Deny) else f"{_NOT_JUDGED}: {record.answer.reason}"
        yield f"{record.label}: {text} (mode warn: not enforced)"
    elif isinstance(record.answer, Failure) and record.failed_open and warns_of(record.policy):
        yield f"{record.label}: {_NOT_JUDGED}: {record.answer.reason} (failurePolicy Ignore: let pass)"
    if record.instead_of is not None:
        since = f"its answer from {record.age:.0f} s ago counts"
        yield f"{record.label}: {_NOT_JUDGED}: {record.instead_of.reason} (staleIfError: {since})"
    if record.conflicts and (warned := _warned(record)):
        yield f"{record.label}: changes {fields(warned)}, which {others(warned)} set (onConflict warn)"


def _own_annotations(record: InvocationRecord) -> Iterator[tuple[str, str]]:
    if isinstance(record.answer, Failure):
        yield "failed-open" if record.failed_open else "failed", record.answer.reason
    elif isinstance(record.answer, Deny) and record.policy.mode is not Mode.ENFORCE:
        yield "would-deny", _text(record)
    if record.instead_of is not None:
        yield "stale", record.instead_of.reason
    if record.conflicts and (warned := _warned(record)):
        yield "conflict", f"{places(warned)} with {others(warned)}"
    if record.would_change:
        yield "would-change", _places(record.would_change)


def _warned(record: InvocationRecord) -> list[Conflict]:
    """The conflicts with ``onConflict`` warn of a change that was applied."""
    return [each for each in record.conflicts if each.rule is OnConflict.WARN] if record.changes else []


def _places(operations: Sequence[Operation], *, room: int | None = None) -> str:
    """``add /metadata/labels/team, replace /spec/replicas``: at most 50, in at most ``room`` bytes."""
    listed = [f"{each.op} {quoted(each.path)}" for each in operations[:CHANGES_LISTED]]
    if room is not None:
        ends = accumulate(len(text.encode(errors="replace")) + len(", ") for text in listed)
        listed = listed[: sum(end <= room for end in ends)]
    more = len(operations) - len(listed)
    return ", ".join([*listed, f"and {more} more"] if more else listed)
