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

from typing import Any, Final

import msgspec

from gateway.engine.decision import Decision
from gateway.engine.field_changes import FieldChange
from gateway.engine.invocation_record import InvocationRecord
from gateway.serving.dispatch_simulator import SimulatedCall, Simulation
from gateway.telemetry.decision_members import (
    changed_by_member,
    conflicts_member,
    operations_member,
    policy_member,
    request_member,
    status_member,
)

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
            "request": request_member(simulation.request),
            "allowed": simulation.allowed,
            "status": status_member(simulation.status),
            "refusedBy": None if simulation.refused_by is None else simulation.refused_by.name,
            "warnings": simulation.warnings,
            "auditAnnotations": simulation.audit_annotations,
            "patch": operations_member(simulation.changes if simulation.allowed else ()),
            "object": simulation.object,
            "entries": [_entry(call) for call in simulation.visits],
        }
    )


def _entry(call: SimulatedCall) -> dict[str, Any]:
    return {
        "name": call.entry.name,
        "path": call.entry.path,
        "isolated": call.entry.isolated,
        "round": call.round,
        "called": call.called,
        "outcome": call.decision.outcome.value,
        "changedBy": [_changed_by(each, call.decision) for each in call.decision.field_changes],
        "policies": [_policy(each) for each in call.decision.all_calls],
    }


def _changed_by(change: FieldChange, decision: Decision) -> dict[str, Any]:
    """The key of the digests is the review's uid, which the document contains: the same review, the same bytes."""
    places = [decision.all_calls.index(decision.calls[order]) for order in (change.order, *change.earlier)]
    return changed_by_member(change, places, decision.request.uid.encode())


def _policy(call: InvocationRecord) -> dict[str, Any]:
    return {
        **policy_member(call),
        "changes": operations_member(call.changes),
        "wouldChange": operations_member(call.would_change),
        "conflicts": conflicts_member(call),
    }
