"""Answers as the contract's Outcomes. An answer that the phase does not allow is an error."""

from datetime import timedelta
from typing import Any

from google.protobuf.duration_pb2 import Duration

from admission_worker import values
from admission_worker.answers import Allow, CacheHint, Deny, Failure
from admission_worker.changes import Change, ChangeKind
from admission_worker.errors import InvalidAnswerError
from admission_worker.policies import Phase
from admission_worker.proto.admission.worker.v1 import worker_pb2

Outcome = worker_pb2.Outcome

_NO_CHANGE = {ChangeKind.JSON_PATCH: b"[]", ChangeKind.MERGE_PATCH: b"{}", ChangeKind.OBJECT: None}
"""Changes without an effect, which are not sent."""


def accepted(answer: Any, phase: Phase) -> Allow | Deny | Failure:
    """Check a policy function's return value.

    Args:
        answer: the return value; None is allow.
        phase: the phase of the call.

    Raises:
        InvalidAnswerError: it is not an answer, or is a change in the validating phase.
    """
    if answer is None:
        return _ALLOW
    if not isinstance(answer, Allow | Deny | Failure):
        raise InvalidAnswerError(
            f"returned {values.type_of(answer)}: must be allow(), deny(), patch(), merge(), mutated(), fail() or None"
        )
    if phase is Phase.VALIDATING and isinstance(answer, Allow) and answer.change is not None:
        raise InvalidAnswerError(
            f"returned a change ({answer.change.kind}): only a mutating policy may change the object"
        )
    return answer


def outcome_of(answer: Allow | Deny | Failure, version: str) -> Outcome:
    """The answer as an Outcome.

    Args:
        answer: from ``accepted``.
        version: the policy's version, as in its description.
    """
    if isinstance(answer, Failure):
        return failure(answer.message, version=version)
    outcome = Outcome(
        warnings=answer.warnings, audit_annotations=answer.audit_annotations, cache=_hint(answer.cache), version=version
    )
    if isinstance(answer, Deny):
        outcome.deny.CopyFrom(_deny(answer))
    else:
        outcome.allow.CopyFrom(_allow(answer.change))
    return outcome


def failure(
    message: str,
    reason: worker_pb2.FailureReason = worker_pb2.FAILURE_REASON_UNSPECIFIED,
    *,
    version: str = "",
) -> Outcome:
    """An Outcome without a verdict, with the reason in one sentence."""
    return Outcome(failure=worker_pb2.Failure(message=message, reason=reason), version=version)


def _allow(change: Change | None) -> worker_pb2.Allow:
    if change is None or change.content == _NO_CHANGE[change.kind]:
        return worker_pb2.Allow()
    return worker_pb2.Allow(**{change.kind.value: change.content})


def _deny(answer: Deny) -> worker_pb2.Deny:
    denied = worker_pb2.Deny(code=answer.code, message=answer.message, reason=answer.reason)
    details = answer.details
    causes = [
        worker_pb2.StatusCause(reason=cause.reason, message=cause.message, field=cause.field) for cause in answer.causes
    ]
    about = worker_pb2.StatusDetails(
        name=details.name,
        group=details.group,
        kind=details.kind,
        uid=details.uid,
        causes=causes,
        retry_after_seconds=details.retry_after_seconds,
    )
    if about.ByteSize():
        denied.details.CopyFrom(about)
    return denied


def _hint(cache: CacheHint | None) -> worker_pb2.CacheHint | None:
    if cache is None:
        return None
    if isinstance(cache, timedelta):
        lifetime = Duration()
        lifetime.FromTimedelta(cache)
        return worker_pb2.CacheHint(ttl=lifetime)
    return worker_pb2.CacheHint(no_store=worker_pb2.CacheHint.NoStore())


_ALLOW = Allow()
