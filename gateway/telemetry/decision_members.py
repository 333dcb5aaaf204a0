"""The JSON members that each document about a decision has: ``review -o json`` and ``decision_document``.

Values that ``FieldChange.hidden`` hides are digests. The rest is as the workers and the API server wrote it.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from gateway.engine.field_changes import FieldChange, digest
from gateway.engine.invocation_record import InvocationRecord
from gateway.engine.verdicts import ANSWER_WORDS, Allow, Deny, Failure
from gateway.patching.difference import Operation
from gateway.reasons import Reason
from gateway.review.request import Request
from gateway.review.response import Status


def request_member(request: Request) -> dict[str, Any]:
    """``request``: what the review is about, and the user. Raises ReviewError if the user cannot be read."""
    return {
        "uid": request.uid,
        "operation": request.operation,
        "kind": request.kind,
        "resource": request.resource,
        "subResource": request.sub_resource,
        "namespace": request.namespace,
        "name": request.name,
        "dryRun": request.dry_run,
        "user": request.user_info.username,
    }


def status_member(status: Status | None) -> dict[str, Any] | None:
    """``status``: a metav1.Status; None if the request is allowed."""
    if status is None:
        return None
    return {
        "status": "Failure",
        "code": status.code,
        "reason": status.reason,
        "message": status.message,
        "details": status.details or None,
    }


def changed_by_member(change: FieldChange, places: Sequence[int], key: bytes) -> dict[str, Any]:
    """One of ``changedBy[]``.

    Args:
        change: the field.
        places: the indexes in ``policies[]`` of its last writer, and of those before.
        key: of the digests of hidden values.
    """
    sides = [("before", change.before)] if change.op != "add" else []
    sides += [("after", change.after)] if change.op != "remove" else []
    return {
        "path": change.path,
        "op": change.op,
        **{
            f"{side}Digest" if change.hidden else side: digest(value, key) if change.hidden else value
            for side, value in sides
        },
        "hidden": change.hidden,
        "policy": change.qualified_name,
        "worker": change.worker,
        "version": change.version,
        "round": change.round,
        "order": places[0],
        "source": change.source.value,
        "earlier": places[1:],
    }


def policy_member(call: InvocationRecord) -> dict[str, Any]:
    """One of ``policies[]``, without its changes."""
    return {
        "configuration": call.policy.configuration,
        "name": call.policy.name,
        "worker": call.policy.worker,
        "policy": call.policy.policy,
        "mode": call.policy.mode.value,
        "failurePolicy": call.policy.failure_policy.value,
        "round": call.round,
        "matched": call.matched,
        "why": call.why,
        **_answer(call),
        "refuses": call.refuses,
        "failedOpen": call.failed_open,
        "source": call.source.value,
        "age": call.age,
        "insteadOf": None
        if call.instead_of is None
        else {"reason": call.instead_of.reason.value, "message": call.instead_of.message},
    }


def conflicts_member(call: InvocationRecord) -> list[dict[str, Any]]:
    """``policies[].conflicts``."""
    return [{"path": each.path, "with": each.with_policies, "onConflict": each.rule.value} for each in call.conflicts]


def operations_member(operations: Iterable[Operation]) -> list[dict[str, Any]]:
    """``patch``, ``changes`` and ``wouldChange``, with all values."""
    return [
        {"op": each.op, "path": each.path} | ({} if each.op == "remove" else {"value": each.value})
        for each in operations
    ]


def _answer(call: InvocationRecord) -> dict[str, Any]:
    answer = call.answer
    reason, message, code, version = "", "", 0, ""
    warnings: tuple[str, ...] = ()
    annotations: Mapping[str, str] = {}
    if isinstance(answer, Allow | Deny):
        warnings, annotations, version = answer.warnings, answer.audit_annotations, answer.version
    if isinstance(answer, Deny):
        reason, message, code = Reason.DENIED.value, answer.message or answer.reason, answer.code
    if isinstance(answer, Failure):
        reason, message = answer.reason.value, answer.message
    return {
        "verdict": None if answer is None else ANSWER_WORDS[type(answer)],
        "reason": reason,
        "message": message,
        "code": code,
        "warnings": warnings,
        "auditAnnotations": annotations,
        "version": version,
    }
