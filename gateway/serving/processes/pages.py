"""The pages of the admin listener of a gateway with several processes: each is asked of the processes.

    ====================  ============================================================================================
    page                  answer
    ====================  ============================================================================================
    ``/livez``            whether the event loops of all processes that serve run: by their heartbeats, none is asked
    ``/readyz``           ``health``
    ``/metrics``          ``gateway.telemetry.merged``
    ``/purge``            all purge; an answer other than 200 is that of the gateway
    ``/explain/…``        what all processes know of the review, and with Redis what all replicas do, of which one asks
    ``/ui/…``             the dashboard: the reviews of all processes, their numbers added up, and the rest of the first
    ``/process/N/…``      any page of process N
    ====================  ============================================================================================

Who may call them: ``gateway.serving.access``, as with one process. The processes ask for nothing: they are reached by
this one only.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from http import HTTPStatus
from typing import Final
from urllib.parse import urlencode

import msgspec

from gateway.serving import web
from gateway.serving.access import DASHBOARD
from gateway.serving.dashboard.policy_statistics import added_up
from gateway.serving.explain import (
    ELSEWHERE,
    EXPLAIN_SECONDS,
    FINDINGS,
    ExplainPage,
    FindElsewhere,
    OtherFindings,
)
from gateway.serving.explain import PATH as EXPLAIN
from gateway.serving.liveness import liveness
from gateway.serving.processes.health import combined
from gateway.serving.processes.member import Member
from gateway.serving.processes.metrics import PodMetrics
from gateway.serving.processes.requests import ANSWER_SECONDS, Reply, Unanswered, request
from gateway.serving.processes.streams import DROPPED, copied, merged
from gateway.serving.purge import PATH as PURGE
from gateway.serving.refusals import SERVER, Refusal, answer
from gateway.telemetry.decision_memory import DecisionMemory
from gateway.telemetry.findings import Findings, Query

PROCESS: Final = "/process/"

_LIVE: Final = f"{DASHBOARD}/api/live"
_POLICIES: Final = f"{DASHBOARD}/api/policies"
_REVIEWS: Final = f"{DASHBOARD}/api/reviews/"

_EVENTS: Final = "text/event-stream"
_PASSED: Final = ("accept", "accept-encoding", "accept-language", "if-none-match", "last-event-id", "range")
"""The fields of a request that a process gets. None of them is a credential."""


class Processes(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of the processes: those that run, why others make the gateway unready, and why others do not."""

    serving: Sequence[Member]
    problems: Mapping[int, str]
    notes: Mapping[int, str]


class Pages:
    """Answers requests of the admin listener.

    Args:
        processes: the present state of them.
        metrics: of all processes.
        has_redis: whether each process can ask the other replicas.
        heartbeat_seconds: how long the event loop of a process may stand still.
    """

    def __init__(
        self,
        processes: Callable[[], Processes],
        metrics: PodMetrics,
        *,
        has_redis: bool,
        heartbeat_seconds: float,
    ) -> None:
        self._heartbeat_seconds = heartbeat_seconds
        self._processes = processes
        self._metrics = metrics
        others: list[FindElsewhere] = [self._find, self._find_in_replicas] if has_redis else [self._find]
        self._explain = ExplainPage(DecisionMemory(1, 1), others, reaches_replicas=has_redis)

    async def livez(self, given: web.BaseRequest) -> web.StreamResponse:
        """Whether the event loops of all processes that serve run."""
        problems = (
            f"process {member.number}: {problem}"
            for member in self._processes().serving
            if (problem := member.heartbeat.problem(self._heartbeat_seconds)) is not None
        )
        status, body = liveness("; ".join(problems) or None, is_verbose="verbose" in given.rel_url.query)
        return _page(status, body)

    async def readyz(self, given: web.BaseRequest) -> web.StreamResponse:
        """See ``health``."""
        state = self._processes()
        found = await _every(state.serving, "GET", "/readyz?verbose")
        answers: dict[int, str] = {}
        problems = dict(state.problems)
        for number, each in found.items():
            if isinstance(each, Unanswered):
                problems[number] = str(each)
            else:
                answers[number] = each[1].decode()
        health = combined(answers, problems, state.notes)
        return _health(given, health.is_ready, health.text)

    async def metrics(self, *, openmetrics: bool) -> tuple[str, bytes]:
        """The metrics of all processes."""
        return await self._metrics.written(self._processes().serving, openmetrics=openmetrics)

    async def purge(self, given: web.BaseRequest) -> web.StreamResponse:
        """Purge in all processes."""
        found = await _every(self._processes().serving, given.method, f"{PURGE}?{given.rel_url.raw_query_string}")
        replies = [each for each in found.values() if not isinstance(each, Unanswered)]
        failed = next((each for each in replies if each[0].status != HTTPStatus.OK), None)
        if failed is not None:
            return _passed_on(*failed)
        lost = [f"process {number}: {each}" for number, each in found.items() if isinstance(each, Unanswered)]
        if lost or not replies:
            why = "; ".join(lost) or "no process serves"
            return answer(Refusal.NOT_READY, f"not purged everywhere: {why}; purge again")
        results = [msgspec.json.decode(body, type=dict[str, object]) for _, body in replies]
        # One that could not notify the other replicas says so.
        result = min(results, key=lambda each: each["replicasNotified"] is not False)
        return _page(200, msgspec.json.encode(result), "application/json")

    async def explain(self, given: web.BaseRequest) -> web.StreamResponse:
        """What all processes, and with Redis all replicas, know of a review."""
        return await self._explain(given)

    async def _find(self, query: Query) -> OtherFindings:
        found = await _every(self._processes().serving, "GET", _target(FINDINGS, query))
        findings = [
            msgspec.json.decode(each[1], type=Findings)
            for each in found.values()
            if not isinstance(each, Unanswered) and each[0].status == HTTPStatus.OK
        ]
        lost = [f"process {number}: {each}" for number, each in found.items() if isinstance(each, Unanswered)]
        return OtherFindings(findings=findings, why="; ".join(lost))

    async def _find_in_replicas(self, query: Query) -> OtherFindings:
        """What the first process finds through Redis, the other processes of this pod included."""
        member = next(iter(self._processes().serving), None)
        if member is None:
            return OtherFindings(why="other replicas were not asked: no process serves")
        try:
            reply = await request(member, "GET", _target(ELSEWHERE, query), seconds=EXPLAIN_SECONDS)
            return msgspec.json.decode(await reply.body(), type=OtherFindings)
        except (Unanswered, msgspec.MsgspecError) as error:
            return OtherFindings(why=f"other replicas were not asked: process {member.number}: {error}")

    async def dashboard(self, given: web.BaseRequest) -> web.StreamResponse:
        """The page and its files, which are those of the first process; and the data of all processes."""
        path = given.rel_url.path
        if path == _LIVE:
            return await self._live(given)
        if path != _POLICIES and not path.startswith(_REVIEWS):
            return await self.process(given, None, given.rel_url.raw_path_qs)
        found = await _every(self._processes().serving, given.method, given.rel_url.raw_path_qs, _fields(given))
        replies = [each for each in found.values() if not isinstance(each, Unanswered)]
        if not replies:
            return answer(Refusal.NOT_READY, "no process answers; try again")
        ok = [each for each in replies if each[0].status == HTTPStatus.OK]
        if path != _POLICIES or not ok:
            # Of a review, that of the process that knows it.
            return _passed_on(*(ok or replies)[0])
        # In a thread: with thousands of policies it takes so long that connections would wait for it.
        return _passed_on(ok[0][0], await asyncio.to_thread(added_up, [body for _, body in ok]))

    async def _live(self, given: web.BaseRequest) -> web.StreamResponse:
        """The events of all processes."""
        serving = self._processes().serving
        found = await asyncio.gather(
            *(request(member, given.method, given.rel_url.raw_path_qs, _fields(given)) for member in serving),
            return_exceptions=True,
        )
        streams = [each for each in found if isinstance(each, Reply) and each.status == HTTPStatus.OK]
        refused = next((each for each in found if isinstance(each, Reply) and each.status != HTTPStatus.OK), None)
        if streams:
            return await merged(given, streams)
        if refused is not None:
            return _passed_on(refused, await refused.body())
        return answer(Refusal.NOT_READY, "no process answers; try again")

    async def process(self, given: web.BaseRequest, number: str | None, target: str) -> web.StreamResponse:
        """A page of one process; None: of the first."""
        serving = self._processes().serving
        member = next((each for each in serving if number in {None, str(each.number)}), None)
        if member is None:
            known = ", ".join(str(each.number) for each in serving) or "none"
            return answer(Refusal.NOT_READY, f"that process does not serve; those that do: {known}")
        try:
            seconds = EXPLAIN_SECONDS if target.startswith(EXPLAIN) else ANSWER_SECONDS
            reply = await request(member, given.method, target, _fields(given), seconds=seconds)
            if not reply.headers.get("content-type", "").startswith(_EVENTS):
                return _passed_on(reply, await reply.body())
        except Unanswered as error:
            return answer(Refusal.NOT_READY, f"process {member.number} does not answer: {error}")
        return await copied(given, reply)


async def _every(
    members: Sequence[Member], method: str, target: str, headers: Mapping[str, str] | None = None
) -> dict[int, tuple[Reply, bytes] | Unanswered]:
    """The answers of these processes, by number."""

    async def answered(member: Member) -> tuple[Reply, bytes] | Unanswered:
        try:
            reply = await request(member, method, target, headers)
            return reply, await reply.body()
        except Unanswered as error:
            return error

    found = await asyncio.gather(*map(answered, members))
    return {member.number: each for member, each in zip(members, found, strict=True)}


def _target(page: str, query: Query) -> str:
    return f"{page}?{urlencode({'query': msgspec.json.encode(query)})}"


def _fields(given: web.BaseRequest) -> dict[str, str]:
    return {name: given.headers[name] for name in _PASSED if name in given.headers}


def _health(given: web.BaseRequest, is_well: bool, text: str) -> web.Response:  # noqa: FBT001 - the answer's subject
    if is_well and "verbose" not in given.rel_url.query:
        return _page(200, b"ok\n")
    return _page(200 if is_well else 503, text.encode())


def _passed_on(reply: Reply, body: bytes) -> web.Response:
    headers = {name: text for name, text in reply.headers.items() if name not in DROPPED}
    return web.Response(status=reply.status, body=body, headers={**headers, "Server": SERVER})


def _page(status: int, body: bytes, content_type: str = "text/plain; charset=utf-8") -> web.Response:
    headers = {"Content-Type": content_type, "Cache-Control": "no-store", "Server": SERVER}
    return web.Response(status=status, body=body, headers=headers)
