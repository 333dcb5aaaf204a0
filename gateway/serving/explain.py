"""``GET /explain/UID`` on the admin listener: what became of a review, from the decisions that are retained.

The uid is in the message of a denial whose policy has a contact or documentation, in the decision log, and in the API
server's audit log. Found in this process, in the other processes of the pod, and with Redis in the other replicas.

    ======  ============================================================================================================
    status  when
    ======  ============================================================================================================
    200     found: a document, or with ``?o=text`` or ``Accept: text/plain`` the story in sentences and tables
    400     the uid is empty, too long, or not printable
    404     not found: what was searched, and since when decisions are retained
    405     neither GET nor HEAD
    429     too many explanations at once
    ======  ============================================================================================================

``apiVersion: admission-gateway.dev/explanation/v1alpha1``, ``kind: Explanation``:

=============================  ====================================================================================
member                         value
=============================  ====================================================================================
uid                            as asked for
decisions[]                    the decisions of this uid, refused ones first, each half in order of time; each a
                               Decision, as below
related[]                      other decisions about the same request: of the other phase, of other entries, of a
                               reinvocation
searched                       {replicas[], retained, since, why}: the replicas that answered, their retained decisions,
                               the time since which all of them retain refused ones; why others may be missing, or ""
=============================  ====================================================================================
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from http import HTTPStatus
from operator import itemgetter
from typing import Any, Final

import msgspec
import structlog
from msgspec import Struct
from msgspec.structs import replace

from gateway.serving import web
from gateway.serving.refusals import SERVER, Refusal, answer, line, quote
from gateway.telemetry.decision_memory import DecisionMemory
from gateway.telemetry.explanation import explanation_lines
from gateway.telemetry.findings import UID_CHARACTERS, Findings, Query, find, subject_of, timestamp

_LOG: Final = structlog.get_logger(__name__)

PATH: Final = "/explain/"
FINDINGS: Final = "/findings"
ELSEWHERE: Final = "/findings/elsewhere"
"""Pages that one process of several has for its parent: what it finds itself, and what it finds through Redis."""

API_VERSION: Final = "admission-gateway.dev/explanation/v1alpha1"
KIND: Final = "Explanation"

AT_ONCE: Final = 4
"""Explanations at once: each renders some documents, a few milliseconds in which reviews wait."""

EXPLAIN_SECONDS: Final = 5.0
"""The longest time that an explanation takes: the other replicas are asked at most twice, first for the decision, then
for what is related to it; each time for a second, which is the most for Redis too (``replica_findings``). And a second
for everything else."""


class OtherFindings(Struct, frozen=True, kw_only=True):
    """What others found, and why some may not have answered; "" if there is no known reason."""

    findings: Sequence[Findings] = ()
    why: str = ""


FindElsewhere = Callable[[Query], Awaitable[OtherFindings]]
"""Asks other processes or replicas. It limits its own time, and raises nothing."""


class FindingsPage:
    """What one process finds for the parent's ``/explain``: a Query in, Findings out, both as JSON."""

    def __init__(self, find: Callable[[Query], Findings]) -> None:
        self._find = find

    async def __call__(self, given: web.BaseRequest) -> web.Response:
        """The answer to the parent."""
        return _answer("application/json", msgspec.json.encode(self._find(_query(given))))


class ElsewherePage:
    """What one process finds elsewhere for the parent's ``/explain``: a Query in, OtherFindings out, both as JSON."""

    def __init__(self, find_elsewhere: FindElsewhere) -> None:
        self._find_elsewhere = find_elsewhere

    async def __call__(self, given: web.BaseRequest) -> web.Response:
        """The answer to the parent."""
        return _answer("application/json", msgspec.json.encode(await self._find_elsewhere(_query(given))))


def _query(given: web.BaseRequest) -> Query:
    return msgspec.json.decode(given.rel_url.query["query"], type=Query)


class ExplainPage:
    """Answers requests for explanations.

    Args:
        memory: the decisions of this process.
        others: ask the other processes of this pod, and the other replicas.
        reaches_replicas: whether the other replicas are among them.
    """

    def __init__(
        self, memory: DecisionMemory, others: Sequence[FindElsewhere] = (), *, reaches_replicas: bool = False
    ) -> None:
        self._memory = memory
        self._others = others
        self._reaches_replicas = reaches_replicas
        self._running = 0

    async def __call__(self, request: web.BaseRequest) -> web.Response:
        """The answer to one request."""
        if request.method not in {"GET", "HEAD"}:
            return answer(Refusal.METHOD, f"{quote(request.method)} is not for {PATH}UID; GET it", allow="GET, HEAD")
        uid = request.rel_url.path[len(PATH) :]
        if not uid or len(uid) > UID_CHARACTERS or not uid.isprintable():
            return _text(HTTPStatus.BAD_REQUEST, f"name a review: {PATH}UID, with the uid of a denial's message")
        if self._running >= AT_ONCE:
            text = f"{AT_ONCE} explanations are being made already, the most at once; try again"
            return _text(HTTPStatus.TOO_MANY_REQUESTS, text)
        self._running += 1
        try:
            found = await self._explain(uid)
        finally:
            self._running -= 1
        if not found["decisions"]:
            return _text(HTTPStatus.NOT_FOUND, _not_found(uid, found["searched"], self._reaches_replicas))
        _LOG.info("a review was explained", uid=uid, peer=request.remote)
        if _wants_text(request):
            return _answer(
                "text/plain; charset=utf-8", "".join(f"{each}\n" for each in explanation_lines(found)).encode()
            )
        return _answer("application/json", msgspec.json.encode(found))

    async def _explain(self, uid: str) -> dict[str, Any]:
        query = Query(uid=uid)
        own = find(self._memory, query)
        if own.decisions:
            query = replace(query, subject=subject_of(own.decisions[-1]))
        others, why = await self._find_elsewhere(query)
        first = next((each.decisions[-1] for each in others if each.decisions), None)
        if query.subject is None and first is not None:
            # Found elsewhere: now it is known which decisions are related to it, here too.
            query = replace(query, subject=subject_of(first))
            own = find(self._memory, query)
            again, why = await self._find_elsewhere(query)
            others = _each_once([*(each for each in others if each.process and each.decisions), *again])
        return explanation(uid, [own, *others], why)

    async def _find_elsewhere(self, query: Query) -> tuple[list[Findings], str]:
        answers = await asyncio.gather(*(find_there(query) for find_there in self._others))
        findings = _each_once([each for one in answers for each in one.findings])
        return findings, "; ".join(one.why for one in answers if one.why)


def _each_once(findings: Sequence[Findings]) -> list[Findings]:
    """Of each process its last findings: those in the same pod answer the parent, and through Redis."""
    return list({each.process or number: each for number, each in enumerate(findings)}.values())


def explanation(uid: str, findings: Sequence[Findings], why: str = "") -> dict[str, Any]:
    """The document, from what all have found."""
    return {
        "apiVersion": API_VERSION,
        "kind": KIND,
        "uid": uid,
        # A user asks why something was refused; a client that repeats a uid must not hide that.
        "decisions": sorted((one for each in findings for one in each.decisions), key=itemgetter("allowed", "time")),
        "related": sorted((one for each in findings for one in each.related), key=itemgetter("time")),
        "searched": {
            "replicas": sorted({each.replica for each in findings}),
            "retained": sum(each.retained for each in findings),
            "since": timestamp(max(each.since for each in findings)),
            "why": why,
        },
    }


def _not_found(uid: str, searched: dict[str, Any], reaches_replicas: bool) -> str:  # noqa: FBT001 - of the page
    replicas = searched["replicas"]
    where = replicas[0] if len(replicas) == 1 else f"{len(replicas)} replicas ({', '.join(replicas)})"
    why = f"; others may have it: {searched['why']}" if searched["why"] else ""
    if not reaches_replicas:
        why += "; only this gateway was asked: without --redis it cannot ask other replicas, so ask each of them"
    return (
        f"no decision of review {quote(uid)} is retained; {where} retained {searched['retained']} decisions, all "
        f"refused ones since {searched['since']}{why}; older ones are in the decision log"
    )


def _wants_text(request: web.BaseRequest) -> bool:
    chosen = request.rel_url.query.get("o")
    if chosen is not None:
        return chosen == "text"
    accepted = request.headers.get("Accept", "")
    return "text/plain" in accepted and "json" not in accepted


def _answer(content_type: str, body: bytes) -> web.Response:
    headers = {"Content-Type": content_type, "Cache-Control": "no-store", "Server": SERVER}
    return web.Response(body=body, headers=headers)


def _text(status: HTTPStatus, text: str) -> web.Response:
    headers = {"Content-Type": "text/plain; charset=utf-8", "Cache-Control": "no-store", "Server": SERVER}
    return web.Response(status=status, body=line(text), headers=headers)
