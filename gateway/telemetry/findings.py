"""What one process finds for ``/explain``: the decisions of a uid, and others about the same request.

kube-apiserver gives each call a uid of its own, so the mutating and the validating call of one request, its entries and
its reinvocations have different ones; only a retry after an HTTP error repeats a uid. A denied user knows one uid. The
others are **related**: within seconds, of the same trace, or of the same user about the same operation on the object of
the same name. (An object that the API server is still to name, by generateName, has no name in the mutating phase.)

A process answers a ``Query`` with ``Findings``; those of several processes and replicas are merged by the one that was
asked.
"""

from collections.abc import Iterable
from datetime import UTC, datetime
from itertools import islice
from time import monotonic, time
from typing import Any, Final

from msgspec import Struct

from gateway.engine.decision import Decision
from gateway.review.request import ReviewError
from gateway.telemetry.decision_document import DocumentLimits, decision_document, replica_name
from gateway.telemetry.decision_memory import DecisionMemory

UID_CHARACTERS: Final = 256
"""Kubernetes' uids have 36; no other sender needs more."""

RELATED_SECONDS: Final = 30.0
"""How far apart decisions about one request are: the longest time that kube-apiserver waits for a webhook."""

DECISIONS: Final = 8
"""Decisions of one uid that are shown: kube-apiserver retries an HTTP error a few times."""

RELATED: Final = 20
"""Related decisions that are shown: the entries of both phases, twice."""

_RELATED_LIMITS: Final = DocumentLimits(texts=1_000, items=50, values=500, document_bytes=50_000)
"""With those of the uid, 256 KB each, at most 3 MB from one process; mostly some 10 KB."""


class Subject(Struct, frozen=True, kw_only=True):
    """The request that decisions are about, as far as their documents tell: ``at`` is its Unix time."""

    operation: str
    group: str
    kind: str
    sub_resource: str
    namespace: str
    name: str
    user: str
    dry_run: bool
    trace_id: str | None
    at: float


class Query(Struct, frozen=True, kw_only=True):
    """What is looked for: the decisions of a uid, and those about a subject, if that is known already."""

    uid: str
    subject: Subject | None = None


class Findings(Struct, frozen=True, kw_only=True):
    """What one process found, and what it searched: how many decisions, and the Unix time since which it retains all
    refused ones. Documents: ``decision_document``. ``process`` tells apart what several processes of a host found.
    """

    replica: str
    retained: int
    since: float
    decisions: list[dict[str, Any]]
    related: list[dict[str, Any]]
    process: str = ""


def find(memory: DecisionMemory, query: Query, *, replica: str = "", process: str = "") -> Findings:
    """What this process finds. It takes some milliseconds for each decision that it shows."""
    decisions = memory.find(query.uid)[-DECISIONS:]
    documents = [decision_document(each, replica=replica or None) for each in decisions]
    subject = query.subject or (subject_of(documents[-1]) if documents else None)
    related = [] if subject is None else _related(memory.newest(), query.uid, subject)
    return Findings(
        replica=replica or replica_name(),
        retained=len(memory),
        since=memory.since,
        decisions=documents,
        related=[decision_document(each, replica=replica or None, limits=_RELATED_LIMITS) for each in related],
        process=process,
    )


def subject_of(document: dict[str, Any]) -> Subject:
    """The request that a decision's document is about."""
    request = document["request"]
    return Subject(
        operation=request["operation"],
        group=request["kind"]["group"],
        kind=request["kind"]["kind"],
        sub_resource=request["subResource"],
        namespace=request["namespace"],
        name=request["name"],
        user=request["user"] or "",
        dry_run=request["dryRun"],
        trace_id=document["traceId"],
        at=datetime.fromisoformat(document["time"]).timestamp(),
    )


def _related(decisions: Iterable[Decision], uid: str, subject: Subject) -> list[Decision]:
    offset = time() - monotonic()
    near = (each for each in decisions if abs(each.started + offset - subject.at) <= RELATED_SECONDS)
    others = (each for each in near if each.request.uid != uid and _is_about(each, subject))
    return list(islice(others, RELATED))


def _is_about(decision: Decision, subject: Subject) -> bool:
    trace = decision.trace
    if subject.trace_id is not None and subject.trace_id in {trace.trace_id, trace.traceparent[3:35]}:
        return True
    request = decision.request
    same = (
        request.name == subject.name != ""
        and request.namespace == subject.namespace
        and request.operation == subject.operation
        and request.kind.kind == subject.kind
        and request.kind.group == subject.group
        and request.sub_resource == subject.sub_resource
        and request.dry_run == subject.dry_run
    )
    return same and _user(decision) == subject.user


def _user(decision: Decision) -> str:
    try:
        return decision.request.user_info.username
    except ReviewError:
        return ""


def timestamp(seconds: float) -> str:
    """Unix time as RFC 3339 in UTC, whole seconds."""
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
