"""One decision as a JSON document: what ``/explain``, the dashboard and the decision log show.

``apiVersion: admission-gateway.dev/decision/v1alpha1``, ``kind: Decision``. Within a version, members may be added, but
none is removed or changes its meaning. Times in milliseconds count from the arrival of the request's header.

=============================  ====================================================================================
member                         value
=============================  ====================================================================================
uid, time, replica             the review's uid; when it arrived, RFC 3339 in UTC; the gateway that decided it
traceId                        the id of the trace in which it is found, or null
phase, entry                   mutating or validating; the registered entry called, null for /mutate and /validate
request                        {uid, operation, kind, resource, subResource, namespace, name, dryRun, user, groups}
outcome, allowed               allowed, denied or failed; whether the request passes. canceled: the client hung up
                               before there was an answer; allowed is false
reason                         null, or why the gateway itself refused the request, whatever policies said: INTERNAL, an
                               error of the gateway; REQUEST_TOO_LARGE, of which the request is as far as its beginning
                               says
status                         null, or the metav1.Status of the refusal, as the gateway sends it
warnings, auditAnnotations     as the gateway sends them
patch[]                        the changes to the object: {op, path, value}; empty after a refusal. Instead of a hidden
                               value its digest, instead of a large one its size: valueDigest, valueBytes
changedBy[]                    the fields that patch changes and the policies that did, as in ``review -o json``; order
                               and earlier are indexes of policies[]
policies[]                     each invocation of a policy that has a rule about the request, in order, as in
                               ``review -o json`` (configuration … insteadOf); matched without a verdict: the review
                               ended first; and:
…changes[], wouldChange[]      its changes, as in patch; conflicts[]: as in ``review -o json``
…place, target                 where the policy is configured: FILE:LINE: FIELD, or the object in the cluster; where its
                               worker is: a gRPC target, a URL, a Service, a program, a stream
…contact, documentation        as configured
…cache                         null if the policy was not called, else {result, why}: memory, redis, shared, stale,
                               miss, expired, unshared, bypass, memo, or none: the cache was not asked; and why in words
…document                      null if it was not called, else {key, size}: the SHA-256 of the document that its worker
                               is sent, and its bytes
…startedMs, endedMs            its turn; null if it did not match. Before the call it may wait for a namespace's labels
…call                          null, or {calledMs, answeredMs, prefetched}: the call behind the answer, of this turn or
                               of an earlier one; answeredMs is null if no answer came in time
…leftMs                        what is left of the budget at the end of the turn
unmatched[]                    CONFIGURATION/NAME of the policies without a rule about the request
notReached[]                   those whose turn did not come: the review had ended, mostly by a refusal before them
prefetches                     calls that were made before their policy's turn
ledger                         {budgetMs, spentMs, stages[]}: the time from the header to the end of the budget; spent
…stages[]                      {name, startMs, spentMs, leftMs}: read (the body), decode, match (until the first calls
                               are under way, with verdicts from memory), calls (until the decision), encode
cuts[]                         what was cut to bound the document: PLACE: SHOWN of ALL
=============================  ====================================================================================

**Bounded**: whatever a request and the workers contain, the document has at most ``DocumentLimits.document_bytes``.
**Redacted**: no value of a Secret, of a token request or review, and none that a policy's inputs hide; equal values
have equal digests for as long as the process lives. Of a policy that received a value of a Secret, and of those after
it, no text is shown, because it may contain the value in any form; and document.key is a digest.
"""

import os
import socket
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from functools import cache
from time import monotonic, time
from typing import Any, Final

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from gateway.engine.decision import Decision
from gateway.engine.field_changes import digest, hides
from gateway.engine.invocation_record import InvocationRecord
from gateway.patching.difference import Operation
from gateway.review.request import ReviewError
from gateway.telemetry.decision_members import (
    changed_by_member,
    conflicts_member,
    policy_member,
    request_member,
    status_member,
)
from gateway.telemetry.decision_times import ledger_member, turn_members
from gateway.telemetry.redaction import HIDDEN_TEXT, Redaction

API_VERSION: Final = "admission-gateway.dev/decision/v1alpha1"
KIND: Final = "Decision"

DIGEST_KEY: Final = os.urandom(32)
"""Of the digests of hidden values: a reader must not guess values by them."""


class DocumentLimits(Struct, frozen=True, kw_only=True):
    """Bounds of one document.

    ``texts`` are characters of a text: a denial's message is shown whole if it is at most a screen; ``items`` members
    of a list; ``values`` bytes of a value as JSON. A document that is still larger than ``document_bytes`` is made
    again with limits of a quarter, and so on: twenty policies with five changes each are about 30 KB.
    """

    texts: int = 2_000
    items: int = 200
    values: int = 1_000
    document_bytes: int = 256_000

    def quarter(self) -> "DocumentLimits":
        """Smaller limits."""
        return replace(self, texts=self.texts // 4, items=self.items // 4, values=self.values // 4)


_WORKERS_TEXTS: Final = frozenset({"message", "warnings", "auditAnnotations", "insteadOf"})
"""The members of ``policies[]`` that a worker has written."""

DEFAULT_LIMITS: Final = DocumentLimits()


def decision_document(
    decision: Decision,
    *,
    replica: str | None = None,
    limits: DocumentLimits = DEFAULT_LIMITS,
    key: bytes = DIGEST_KEY,
    offset: float | None = None,
) -> dict[str, Any]:
    """The document, ready for JSON; each call makes a new one.

    Args:
        decision: any decision, at any time after it was made.
        replica: the name of this gateway; None: that of the machine or pod.
        limits: of the document.
        key: of the digests of hidden values.
        offset: seconds from the driver's clock to Unix time; None: those of now.
    """
    offset = time() - monotonic() if offset is None else offset
    name = replica_name() if replica is None else replica
    redaction = Redaction.of(decision)
    while True:
        document = _Document(decision, limits, key, redaction).made(name, offset)
        if not limits.items or len(encoded(document)) <= limits.document_bytes:
            return document
        limits = limits.quarter()


encoded: Final = msgspec.json.Encoder().encode
"""The JSON text of a document, without a line break."""


@cache
def replica_name() -> str:
    """The name of this gateway for people: the host's, which is the pod's in a cluster."""
    return socket.gethostname()[:253]


class _Document:
    """One document in the making."""

    def __init__(self, decision: Decision, limits: DocumentLimits, key: bytes, redaction: Redaction) -> None:
        self._decision = decision
        self._limits = limits
        self._key = key
        self._redaction = redaction
        self._cuts: list[str] = []

    def made(self, replica: str, offset: float) -> dict[str, Any]:
        decision = self._decision
        response = decision.response
        arrived = datetime.fromtimestamp(decision.started + offset, UTC)
        return {
            "apiVersion": API_VERSION,
            "kind": KIND,
            "uid": self._text("uid", decision.request.uid),
            "time": arrived.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
            "replica": replica,
            "traceId": decision.trace_id or None,
            "phase": decision.phase.value,
            "entry": decision.entry,
            "request": self._request(),
            "outcome": decision.outcome.value,
            "reason": None if decision.reason is None else decision.reason.value,
            "allowed": response.allowed,
            **self._response(),
            "patch": self._operations("patch", decision.patch),
            "changedBy": self._changed_by(),
            "policies": [
                self._policy(f"policies[{index}]", call)
                for index, call in enumerate(self._items("policies", decision.calls))
            ],
            **{name: self._bounded(name, names) for name, names in _others(decision).items()},
            "prefetches": decision.prefetches,
            "ledger": ledger_member(decision),
            # The outermost first: it says of the most that it is missing.
            "cuts": self._items("cuts", sorted(self._cuts, key=len)),
        }

    def _response(self) -> dict[str, Any]:
        response = self._decision.response
        members: dict[str, Any] = {
            "status": status_member(response.status),
            "warnings": response.warnings,
            "auditAnnotations": response.audit_annotations,
        }
        if self._redaction.hides_texts():
            members |= _without_texts(members)
            if members["status"] is not None:
                members["status"] |= {"reason": "", "message": HIDDEN_TEXT, "details": None}
        return {name: self._bounded(name, value, by_worker=True) for name, value in members.items()}

    def _request(self) -> dict[str, Any]:
        request = self._decision.request
        try:
            made = {**request_member(request), "groups": request.user_info.groups or []}
        except ReviewError:
            # Nothing needed the user, so nothing has noticed that it cannot be read.
            made = {"uid": request.uid, "operation": request.operation, "user": None, "groups": []}
        builtins: dict[str, Any] = msgspec.to_builtins(made)
        return {name: self._bounded(f"request.{name}", value) for name, value in builtins.items()}

    def _changed_by(self) -> list[dict[str, Any]]:
        shown = self._items("changedBy", self._decision.field_changes if self._decision.patch else ())
        made = []
        for index, each in enumerate(shown):
            place = f"changedBy[{index}]"
            hidden = replace(each, hidden=each.hidden or self._redaction.hides_changes)
            member = changed_by_member(hidden, (each.order, *each.earlier), self._key)
            member["path"] = self._text(f"{place}.path", self._redaction.path(each.path))
            if self._redaction.hides_texts(self._decision.calls[each.order]):
                member["version"] = self._decision.plan.members[self._decision.calls[each.order].index].version
            for side in member.keys() & {"before", "after"}:
                size = len(encoded(member[side]))
                if size > self._limits.values:
                    del member[side]
                    member[f"{side}Bytes"] = size
                    self._cuts.append(f"{place}.{side}: 0 of {size} bytes")
            made.append(member)
        return made

    def _policy(self, place: str, call: InvocationRecord) -> dict[str, Any]:
        decision, policy = self._decision, call.policy
        member = policy_member(call) | {"version": call.version}
        if self._redaction.hides_texts(call):
            member |= _without_texts(member) | {"version": decision.plan.members[call.index].version}
            member["message"] = member["message"] and HIDDEN_TEXT
            if member["insteadOf"] is not None:
                member["insteadOf"] |= {"message": HIDDEN_TEXT}
        member = {
            name: self._bounded(f"{place}.{name}", value, by_worker=name in _WORKERS_TEXTS)
            for name, value in member.items()
        }
        worker = decision.plan.workers.get(policy.worker)
        return {
            **member,
            "changes": self._operations(f"{place}.changes", call.changes),
            "wouldChange": self._operations(f"{place}.wouldChange", call.would_change),
            "conflicts": self._bounded(f"{place}.conflicts", conflicts_member(call)),
            "place": self._text(f"{place}.place", str(policy.place)) if policy.place.file else "",
            "target": "" if worker is None else self._text(f"{place}.target", worker.address),
            "contact": policy.contact,
            "documentation": policy.documentation,
            **self._turn(call),
        }

    def _turn(self, call: InvocationRecord) -> dict[str, Any]:
        members = turn_members(self._decision, call)
        if members["document"] is not None and self._redaction.hides_texts(call):
            # By the hash, a reader who knows the rest of the document could guess a value.
            members["document"] |= {"key": digest(members["document"]["key"], self._key)}
        return members

    def _operations(self, place: str, operations: Sequence[Operation]) -> list[dict[str, Any]]:
        decision = self._decision
        made = []
        for index, each in enumerate(self._items(place, operations)):
            operation: dict[str, Any] = {
                "op": each.op,
                "path": self._text(f"{place}[{index}].path", self._redaction.path(each.path)),
            }
            if each.op != "remove":
                size = len(encoded(each.value))
                if self._redaction.hides_changes or hides(decision.request, decision.calls, each):
                    operation["valueDigest"] = digest(each.value, self._key)
                elif size > self._limits.values:
                    operation["valueBytes"] = size
                    self._cuts.append(f"{place}[{index}].value: 0 of {size} bytes")
                else:
                    operation["value"] = each.value
            made.append(operation)
        return made

    # --------------------------------------------------------------------------------------------------- bounds

    def _text(self, place: str, text: str, *, by_worker: bool = False) -> str:
        limit = self._limits.texts
        cleaned = self._redaction.cleaned(text, limit) if by_worker else text[:limit]
        if len(text) <= limit:
            return cleaned
        self._cuts.append(f"{place}: {limit} of {len(text)} characters")
        return cleaned + "…"

    def _items(self, place: str, items: Sequence[Any]) -> Sequence[Any]:
        limit = self._limits.items
        if len(items) <= limit:
            return items
        self._cuts.append(f"{place}: {limit} of {len(items)} items")
        return items[:limit]

    def _bounded(self, place: str, value: Any, *, by_worker: bool = False) -> Any:
        """A text, number, list or object, within the limits. ``by_worker``: a worker has written it."""
        match value:
            case str():
                return self._text(place, value, by_worker=by_worker)
            case list() | tuple():
                shown = enumerate(self._items(place, value))
                return [self._bounded(f"{place}[{index}]", each, by_worker=by_worker) for index, each in shown]
            case Mapping():
                return {
                    self._text(place, name): self._bounded(f"{place}.{name[:50]}", each, by_worker=by_worker)
                    for name, each in self._items(place, list(value.items()))
                }
            case _:
                return value


def _without_texts(members: Mapping[str, Any]) -> dict[str, Any]:
    """The lists of texts that policies wrote, without the texts."""
    return {
        "warnings": [HIDDEN_TEXT for _ in members["warnings"]],
        "auditAnnotations": dict.fromkeys(members["auditAnnotations"], HIDDEN_TEXT),
    }


def _others(decision: Decision) -> dict[str, list[str]]:
    """``unmatched`` and ``notReached``: the policies of the plan without a record."""
    members = decision.plan.members
    turns = {record.index for record in decision.calls}
    known = {record.index for record in decision.all_calls}
    return {
        "unmatched": [members[index].policy.qualified_name for index in sorted(known - turns)],
        "notReached": [member.policy.qualified_name for index, member in enumerate(members) if index not in known],
    }
