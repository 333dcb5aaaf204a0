"""Converts between admission.worker.v1 and the engine's calls and answers, without any input or output.

A worker's answer is checked here, so that an error of a worker is a failure of that policy, and never an answer that
kube-apiserver rejects. Failure messages go to users and logs: they are put on one line, and cut.
"""

import re
from collections.abc import Callable
from typing import Any, Final, Protocol

from google.protobuf.duration_pb2 import Duration
from google.protobuf.message import DecodeError

from gateway.engine.policy_call import PolicyCall
from gateway.engine.verdicts import Allow, Answer, Change, ChangeKind, Deny, Failure
from gateway.policies.model import Phase
from gateway.reasons import Reason
from gateway.transports.field_count import parsed
from gateway.transports.limits import MOST_STATEMENTS
from gateway.transports.proto.admission.worker.v1 import worker_pb2 as pb

PHASES: Final = {Phase.MUTATING: pb.PHASE_MUTATING, Phase.VALIDATING: pb.PHASE_VALIDATING}

_REASONS: Final = {
    pb.FAILURE_REASON_UNSPECIFIED: Reason.WORKER_FAILURE,
    pb.FAILURE_REASON_INVALID_SETTINGS: Reason.INVALID_SETTINGS,
    pb.FAILURE_REASON_UNKNOWN_POLICY: Reason.CONFIGURATION,
}

_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f-\x9f]+")


_LONGEST_SECONDS: Final = 315_576_000_000
"""Of a Duration: "Must be from -315,576,000,000 to +315,576,000,000 inclusive" (google/protobuf/duration.proto), which
is 10,000 years."""

_NANOS: Final = 1_000_000_000
"""In a second; a Duration's nanos are fewer."""

MOST_FIELDS: Final = 5 * MOST_STATEMENTS
"""Fields of a ReviewResponse that is so large that its fields are counted before it is parsed. Each warning, annotation
or cause has four at most: a cause and its three texts. The messages around them have a dozen."""

_NEVER: Final = 0.0
"""``reuse`` of a verdict that must not be reused."""

InvalidHint = Callable[[PolicyCall, str], object]
"""Called with the call whose answer has an invalid cache hint, and a description of the hint."""


def _ignore_hint(_call: PolicyCall, _observed: str) -> None:
    """The default: invalid hints are not reported."""


def one_line(text: str, characters: int) -> str:
    """The first ``characters`` of a worker's text, on one line; with an ellipsis if there are more."""
    # Cut first: the whole may be as large as a message.
    line = _CONTROL.sub(" ", text[:characters]).strip()
    return line + "…" if len(text) > characters else line


def trace_metadata(call: PolicyCall) -> tuple[tuple[str, str], ...] | None:
    """The metadata of ``Review``: the trace context of the call, None without one."""
    if not call.traceparent:
        return None
    if not call.tracestate:
        return (("traceparent", call.traceparent),)
    return (("traceparent", call.traceparent), ("tracestate", call.tracestate))


def review_request(call: PolicyCall) -> bytes:
    """The ``ReviewRequest`` of a call, serialized."""
    return pb.ReviewRequest(
        call=pb.PolicyCall(
            policy=call.policy.policy,
            phase=PHASES[call.policy.phase],
            settings=call.policy.settings,
            document=call.document.content,
            uid=call.uid,
        )
    ).SerializeToString()


class OutcomeReader(Protocol):
    """Converts an Outcome to an answer, as ``outcome_answer`` does."""

    def __call__(self, call: PolicyCall, outcome: pb.Outcome, *, characters: int, invalid_hint: InvalidHint) -> Answer:
        """The answer."""


def review_answer(
    call: PolicyCall,
    content: bytes,
    *,
    characters: int,
    invalid_hint: InvalidHint = _ignore_hint,
    read_outcome: OutcomeReader | None = None,
) -> Answer:
    """The answer in a serialized ``ReviewResponse``; a failure ``INVALID_RESPONSE`` if it is invalid.

    Args:
        call: the call.
        content: the message.
        characters: how much of the worker's failure message is kept.
        invalid_hint: called with an invalid cache hint. Such a verdict is not reused.
        read_outcome: converts the outcome; None: ``outcome_answer``.
    """
    response = review_response(call, content)
    if isinstance(response, Failure):
        return response
    return (read_outcome or outcome_answer)(call, response.outcome, characters=characters, invalid_hint=invalid_hint)


def review_response(call: PolicyCall, content: bytes) -> pb.ReviewResponse | Failure:
    """A serialized ``ReviewResponse``; a failure ``INVALID_RESPONSE`` if it is invalid."""
    try:
        return parsed(pb.ReviewResponse, content, most=MOST_FIELDS)
    except DecodeError as error:
        return _invalid(call, f"an invalid ReviewResponse ({error})")


def outcome_answer(
    call: PolicyCall, outcome: pb.Outcome, *, characters: int, invalid_hint: InvalidHint = _ignore_hint
) -> Answer:
    """The answer in an ``Outcome``; ``characters`` and ``invalid_hint`` as for ``review_answer``."""
    statements = len(outcome.warnings) + len(outcome.audit_annotations) + len(outcome.deny.details.causes)
    if statements > MOST_STATEMENTS:
        return _invalid(
            call,
            f"{statements} warnings, audit annotations and causes, more than the limit of {MOST_STATEMENTS}",
        )
    match outcome.WhichOneof("verdict"):
        case "allow":
            return Allow(
                change=_change(outcome.allow),
                warnings=tuple(outcome.warnings),
                audit_annotations=_annotations(outcome) if outcome.audit_annotations else {},
                version=outcome.version,
                reuse=_reuse(call, outcome, invalid_hint) if outcome.HasField("cache") else None,
            )
        case "deny":
            return _deny(outcome, _reuse(call, outcome, invalid_hint) if outcome.HasField("cache") else None)
        case "failure":
            reason = _REASONS.get(outcome.failure.reason, Reason.WORKER_FAILURE)
            text = one_line(outcome.failure.message, characters) or "it gave no reason"
            return Failure(reason=reason, message=f"worker {call.policy.worker!r} could not judge: {text}")
        case _:
            return _invalid(call, "an Outcome without allow, deny or failure")


def _annotations(outcome: pb.Outcome) -> dict[str, str]:
    """In the order of their keys: "map iteration ordering of map values is undefined" (protobuf), and all replicas,
    with and without a cached verdict, must return the same bytes.
    """
    return dict(sorted(outcome.audit_annotations.items()))


def _change(allow: pb.Allow) -> Change | None:
    match allow.WhichOneof("change"):
        case "json_patch":
            return Change(kind=ChangeKind.JSON_PATCH, content=allow.json_patch)
        case "merge_patch":
            return Change(kind=ChangeKind.MERGE_PATCH, content=allow.merge_patch)
        case "object":
            return Change(kind=ChangeKind.OBJECT, content=allow.object)
        case _:
            return None


def _reuse(call: PolicyCall, outcome: pb.Outcome, invalid_hint: InvalidHint) -> float:
    """The maximum seconds for which the verdict may be reused, by its cache hint."""
    match outcome.cache.WhichOneof("hint"):
        case "no_store":
            return _NEVER
        case "ttl" if _is_meant(outcome.cache.ttl):
            return outcome.cache.ttl.seconds + outcome.cache.ttl.nanos / _NANOS
        case "ttl":
            ttl = outcome.cache.ttl
            invalid_hint(call, f"a ttl of {ttl.seconds} s and {ttl.nanos} ns")
        case _:
            # Perhaps a hint of a later contract. A hint can only shorten the reuse, so the verdict is not reused.
            invalid_hint(call, "neither no_store nor ttl")
    return _NEVER


def _is_meant(ttl: Duration) -> bool:
    return 0 <= ttl.seconds <= _LONGEST_SECONDS and 0 <= ttl.nanos < _NANOS


def _deny(outcome: pb.Outcome, reuse: float | None) -> Deny:
    deny = outcome.deny
    explicit = deny.HasField("code")
    return Deny(
        code=deny.code if explicit else 403,
        message=deny.message,
        reason=deny.reason or ("" if explicit else "Forbidden"),
        details=_details(deny.details) if deny.HasField("details") else None,
        warnings=tuple(outcome.warnings),
        audit_annotations=_annotations(outcome) if outcome.audit_annotations else {},
        version=outcome.version,
        reuse=reuse,
    )


def _details(details: pb.StatusDetails) -> dict[str, Any]:
    causes = [
        {key: value for key, value in (("reason", c.reason), ("message", c.message), ("field", c.field)) if value}
        for c in details.causes
    ]
    members: dict[str, Any] = {
        "name": details.name,
        "group": details.group,
        "kind": details.kind,
        "uid": details.uid,
        "causes": causes,
        "retryAfterSeconds": details.retry_after_seconds,
    }
    return {key: value for key, value in members.items() if value}


def _invalid(call: PolicyCall, observed: str) -> Failure:
    return Failure(
        reason=Reason.INVALID_RESPONSE,
        message=f"worker {call.policy.worker!r} answered policy {call.policy.policy!r} with {observed}",
    )
