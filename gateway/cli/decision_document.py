"""``review -o json``: one JSON document for each review and phase, on a line of its own, in the order of the reviews.

``apiVersion: admission-gateway.dev/review/v1alpha1``, ``kind: ReviewDecision``. Within a version, members may be added,
but none is removed or changes its meaning. The document does not depend on the time or the machine: the same reviews,
configuration and workers give the same bytes.

=============================  ====================================================================================
member                         value
=============================  ====================================================================================
source                         the review's name: its file, and if the file has several, its number
phase                          mutating or validating. The validating phase sees the object after the mutating one. A
                               refusal in the mutating phase ends the review.
request                        {uid, operation, kind, resource, subResource, namespace, name, dryRun, user}: kind is
                               {group, version, kind}, resource {group, version, resource}
allowed                        whether the request passes the phase
status                         null, or the metav1.Status with which the API server answers its client: {status, code,
                               reason, message, details}; the complete message
refusedBy                      null, or the name of the entry that refuses the request
warnings                       the warnings that the API server sends to the client
auditAnnotations               the annotations of the audit event: ENTRY/KEY -> value
patch                          the changes of the phase to the object: a list of JSON Patch operations, add, replace and
                               remove only; empty without changes, and after a refusal
object                         the object after the phase; null if the request has none
entries[]                      the entries, in the order in which the API server calls them; a reinvoked entry appears
                               again; empty for the kinds that configure admission itself, which it sends to no
                               registered webhook
…name, path, isolated          the webhook's name, its path in the gateway, whether it has one isolated policy
…round                         0, or 1 when reinvoked
…called                        false: none of its policies matches the request, or the API server refuses before calling
…outcome                       allowed, denied, or failed: an enforced policy under failurePolicy Fail has no verdict
…changedBy[]                   the fields that the entry changes, and the policies that do; empty after a refusal
……path, op                     the field in the object after the entry (before it, if removed); add, replace or remove
……before, after                the values; no before if added, no after if removed
……beforeDigest, afterDigest    instead of hidden values: those of a Secret, or not shown to the policy itself. Equal
                               values have equal digests within one document
……hidden                       whether the values are hidden
……policy, worker, version      the last writer: CONFIGURATION/NAME; its worker; the version of the policy
……round, order, source         of its policy invocation, as below; order is its index in policies[]
……earlier                      the indices in policies[] of earlier writers of the field
…policies[]                    each policy invocation of the entry, in order, with reinvocations
……configuration, name          the policy; worker and policy: its worker, and its name there
……mode, failurePolicy          as configured
……round                        0, or 1 when reinvoked within the entry
……matched                      whether the policy matches the request; why: the reason if not, "" if it matches
……verdict                      null if it did not match; allow, deny, or failure
……reason                       the reason code of a denial or a failure, else ""
……message                      the message of a denial or a failure; code: the HTTP code of a denial, else 0
……refuses                      whether it refuses the request; failedOpen: whether a failure was ignored
……warnings, auditAnnotations   those of the worker
……version                      the version of the policy that judged
……source                       called, memo, shared, memory, redis or stale: the origin of the verdict; none: the
                               failure needed no call. age: the verdict's age in seconds
……insteadOf                    null, or the failure that a stale verdict replaces: {reason, message}
……changes                      its changes, as in patch; wouldChange: the changes that it would make in mode enforce
……conflicts[]                  the fields that another policy wrote before: {path, with, onConflict}: the other
                               policies, and the stricter rule; under deny its change was not applied. At most 100,
                               the strictest first
=============================  ====================================================================================
"""

from collections.abc import Iterable, Mapping
from typing import Any, Final

import msgspec

from gateway.engine.decision import Decision
from gateway.engine.field_changes import FieldChange, digest
from gateway.engine.invocation_record import InvocationRecord
from gateway.engine.verdicts import ANSWER_WORDS, Allow, Deny, Failure
from gateway.patching.difference import Operation
from gateway.reasons import Reason
from gateway.review.request import Request
from gateway.review.response import Status
from gateway.serving.dispatch_simulator import SimulatedCall, Simulation

API_VERSION: Final = "admission-gateway.dev/review/v1alpha1"
KIND: Final = "ReviewDecision"


def decision_document(source: str, simulation: Simulation) -> bytes:
    """The document of one review in one phase: JSON without a line break."""
    return msgspec.json.encode(
        {
            "apiVersion": API_VERSION,
            "kind": KIND,
            "source": source,
            "phase": simulation.phase.value,
            "request": _request(simulation.request),
            "allowed": simulation.allowed,
            "status": _status(simulation.status),
            "refusedBy": None if simulation.refused_by is None else simulation.refused_by.name,
            "warnings": simulation.warnings,
            "auditAnnotations": simulation.audit_annotations,
            "patch": _operations(simulation.changes if simulation.allowed else ()),
            "object": simulation.object,
            "entries": [_entry(call) for call in simulation.visits],
        }
    )


def _request(request: Request) -> dict[str, Any]:
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


def _status(status: Status | None) -> dict[str, Any] | None:
    if status is None:
        return None
    return {
        "status": "Failure",
        "code": status.code,
        "reason": status.reason,
        "message": status.message,
        "details": status.details or None,
    }


def _entry(call: SimulatedCall) -> dict[str, Any]:
    return {
        "name": call.entry.name,
        "path": call.entry.path,
        "isolated": call.entry.isolated,
        "round": call.round,
        "called": call.called,
        "outcome": call.decision.outcome.value,
        "changedBy": [_changed_by(each, call.decision) for each in call.decision.field_changes],
        "policies": [_call(each) for each in call.decision.all_calls],
    }


def _changed_by(change: FieldChange, decision: Decision) -> dict[str, Any]:
    """The key of the digests is the review's uid, which the document contains: the same review, the same bytes."""
    key = decision.request.uid.encode()
    places = [decision.all_calls.index(decision.calls[order]) for order in (change.order, *change.earlier)]
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


def _call(call: InvocationRecord) -> dict[str, Any]:
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
        "changes": _operations(call.changes),
        "wouldChange": _operations(call.would_change),
        "conflicts": [
            {"path": each.path, "with": each.with_policies, "onConflict": each.rule.value} for each in call.conflicts
        ],
    }


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


def _operations(operations: Iterable[Operation]) -> list[dict[str, Any]]:
    return [
        {"op": each.op, "path": each.path} | ({} if each.op == "remove" else {"value": each.value})
        for each in operations
    ]
