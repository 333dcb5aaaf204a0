"""``review -o json``: one JSON document for each review and phase, on a line of its own, in the order of the reviews.

``apiVersion: admission-gateway.dev/review/v1alpha1``, ``kind: ReviewDecision``. Within a version, members are added and
none is taken away or comes to mean something else. Nothing in it depends on the time or on the machine: the same
reviews, configuration and workers give the same bytes.

=============================  ====================================================================================
member                         value
=============================  ====================================================================================
source                         what the review is called: its file, and its number in there where there are several
phase                          mutating or validating. The validating phase sees the object as the mutating one left
                               it, and there is none behind a refusal.
request                        {uid, operation, kind, resource, subResource, namespace, name, dryRun, user}: kind is
                               {group, version, kind}, resource {group, version, resource}
allowed                        whether the request passes the phase
status                         null, or the metav1.Status with which the API server answers its client: {status, code,
                               reason, message, details}; the message in its full wording
refusedBy                      null, or the name of the entry whose answer that is
warnings                       what the client is warned of, as the API server shows it
auditAnnotations               what is added to the audit event: ENTRY/KEY -> value
patch                          what the phase changes in the object: a list of JSON Patch operations, add, replace and
                               remove only; empty where nothing changes, and behind a refusal
object                         the object after the phase; null where the request has none
entries[]                      the entries, in the order in which the API server calls them; one that is reinvoked
                               stands here again; empty for the kinds that configure admission itself, which it sends
                               to no registered webhook
…name, path, isolated          the entry: its webhook's name, where the gateway serves it, whether its policy is alone
…round                         0, or 1 when reinvoked
…called                        false: no policy of it is about this request, or the API server refuses before calling
…outcome                       allowed, denied, or failed: somebody who must be heard could not judge
…changedBy[]                       the fields that the entry changes, and whose change it is; empty behind a refusal
……path, op                     where, in the object that goes on (in the one that came, if it is gone); add, replace
                               or remove
……before, after                the values; no before where it is added, no after where it is removed
……beforeDigest, afterDigest    in their place where hidden: a Secret's, or not shown to the policy itself. Equal values
                               have equal digests within one document
……hidden                       whether it is so
……policy, worker, version      the last writer: CONFIGURATION/NAME; whose it is; the version of the policy
……round, order, source         of that turn, as below; order is its place in policies[]
……earlier                      the places in policies[] of those who wrote the field before
…policies[]                    each policy's turn in the entry, in order, reinvoked ones again
……configuration, name          which policy; worker and policy: whose, under which name
……mode, failurePolicy          as configured
……round                        0, or 1 when reinvoked within the entry
……matched                      whether it is about the request; why: what said no, "" if it matched
……verdict                      null if it did not match; allow, deny, or failure
……reason                       the reason code of a denial or a failure, else ""
……message                      what it said; code: the HTTP code of a denial, else 0
……refuses                      whether this turn refuses the request; failedOpen: a failure that was let pass
……warnings, auditAnnotations   the worker's own
……version                      the version of the policy that judged
……source                       called, memo, shared, memory, redis or stale: where the verdict is from; nobody: the
                               failure was known without. age: how many seconds before the worker had said it
……insteadOf                    null, or the failure in whose place a stale verdict stands: {reason, message}
……changes                      what it changed, as in patch; wouldChange: what it would have, were its mode enforce
……conflicts[]                  the fields that another policy wrote before it: {path, with, onConflict}: whose they
                               are, and the stricter one's rule; under deny its change was not applied. At most 100,
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


def decision_document(source: str, walk: Simulation) -> bytes:
    """The document of one review in one phase: JSON without a line break."""
    return msgspec.json.encode(
        {
            "apiVersion": API_VERSION,
            "kind": KIND,
            "source": source,
            "phase": walk.phase.value,
            "request": _request(walk.request),
            "allowed": walk.allowed,
            "status": _status(walk.status),
            "refusedBy": None if walk.refused_by is None else walk.refused_by.name,
            "warnings": walk.warnings,
            "auditAnnotations": walk.audit_annotations,
            "patch": _operations(walk.changes if walk.allowed else ()),
            "object": walk.object,
            "entries": [_visit(visit) for visit in walk.visits],
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


def _visit(visit: SimulatedCall) -> dict[str, Any]:
    return {
        "name": visit.entry.name,
        "path": visit.entry.path,
        "isolated": visit.entry.isolated,
        "round": visit.round,
        "called": visit.called,
        "outcome": visit.decision.outcome.value,
        "changedBy": [_changed_by(each, visit.decision) for each in visit.decision.field_changes],
        "policies": [_call(call) for call in visit.decision.all_calls],
    }


def _changed_by(change: FieldChange, decision: Decision) -> dict[str, Any]:
    """Digests have the review's own uid as their key, which stands in the document: the same review, the same bytes."""
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
