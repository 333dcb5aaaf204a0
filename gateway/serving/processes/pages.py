"""The pages of the admin listener of a gateway with several processes: each is asked of the processes.

    ====================  ============================================================================================
    page                  answer
    ====================  ============================================================================================
    ``/livez``            whether all processes that serve answer
    ``/readyz``           ``health``
    ``/metrics``          ``gateway.telemetry.merged``
    ``/purge``            all purge; an answer other than 200 is that of the gateway
    ``/explain/…``        that of the first process that knows the review
    every other           that of one process: ``?process=N``, else the first that serves. An event stream has the
                          events of all processes, unless one is named
    ====================  ============================================================================================

Who may call them: ``gateway.serving.access``, as with one process. The processes ask for nothing: they are reached by
this one only.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from http import HTTPStatus
from typing import Final

import msgspec

from gateway.serving import web
from gateway.serving.processes.health import combined
from gateway.serving.processes.member import Member
from gateway.serving.processes.metrics import PodMetrics
from gateway.serving.processes.requests import Reply, Unanswered, request
from gateway.serving.purge import PATH as PURGE
from gateway.serving.refusals import SERVER, Refusal, answer

_EVENTS: Final = "text/event-stream"
_PASSED: Final = ("accept", "accept-encoding", "accept-language", "if-none-match", "last-event-id", "range")
"""The fields of a request that a process gets. None of them is a credential."""

_DROPPED: Final = frozenset({"connection", "keep-alive", "transfer-encoding", "content-length", "server", "date"})
"""Fields of an answer that belong to the connection."""


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
    """

    def __init__(self, processes: Callable[[], Processes], metrics: PodMetrics) -> None:
        self._processes = processes
        self._metrics = metrics

    async def livez(self, given: web.BaseRequest) -> web.StreamResponse:
        """Whether all processes that serve answer."""
        found = await _every(self._processes().serving, "GET", "/livez")
        problems = {number: each for number, each in found.items() if isinstance(each, Unanswered)}
        hung = [f"[-]process {number} failed: {each}\n" for number, each in problems.items()]
        text = "".join(hung) or "[+]ping ok\n"
        return _health(given, not hung, f"{text}livez check {'failed' if hung else 'passed'}\n")

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
        """The answer of the first process that knows the review."""
        found = await _every(self._processes().serving, given.method, given.rel_url.raw_path_qs, _fields(given))
        replies = [each for each in found.values() if not isinstance(each, Unanswered)]
        if not replies:
            return answer(Refusal.NOT_READY, "no process answers; try again")
        return _passed_on(*min(replies, key=lambda each: each[0].status))

    async def other(self, given: web.BaseRequest) -> web.StreamResponse:
        """The answer of one process, or an event stream of all."""
        serving = self._processes().serving
        named = given.rel_url.query.get("process")
        chosen = [member for member in serving if named is None or str(member.number) == named]
        if not chosen:
            known = ", ".join(str(member.number) for member in serving) or "none"
            return answer(Refusal.NOT_READY, f"that process does not serve; those that do: {known}")
        try:
            first = await request(chosen[0], given.method, given.rel_url.raw_path_qs, _fields(given))
            if not first.headers.get("content-type", "").startswith(_EVENTS):
                return _passed_on(first, await first.body())
        except Unanswered as error:
            return answer(Refusal.NOT_READY, f"process {chosen[0].number} does not answer: {error}")
        rest = await asyncio.gather(
            *(request(member, given.method, given.rel_url.raw_path_qs, _fields(given)) for member in chosen[1:]),
            return_exceptions=True,
        )
        return await _merged_events(given, [first, *(each for each in rest if isinstance(each, Reply))])


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


def _fields(given: web.BaseRequest) -> dict[str, str]:
    return {name: given.headers[name] for name in _PASSED if name in given.headers}


def _health(given: web.BaseRequest, is_well: bool, text: str) -> web.Response:  # noqa: FBT001 - the answer's subject
    if is_well and "verbose" not in given.rel_url.query:
        return _page(200, b"ok\n")
    return _page(200 if is_well else 503, text.encode())


def _passed_on(reply: Reply, body: bytes) -> web.Response:
    headers = {name: text for name, text in reply.headers.items() if name not in _DROPPED}
    return web.Response(status=reply.status, body=body, headers={**headers, "Server": SERVER})


def _page(status: int, body: bytes, content_type: str = "text/plain; charset=utf-8") -> web.Response:
    headers = {"Content-Type": content_type, "Cache-Control": "no-store", "Server": SERVER}
    return web.Response(status=status, body=body, headers=headers)


async def _merged_events(given: web.BaseRequest, replies: Sequence[Reply]) -> web.StreamResponse:
    """Write whole events of all these streams as they come, until the client leaves or all have ended."""
    headers = {name: text for name, text in replies[0].headers.items() if name not in _DROPPED}
    response = web.StreamResponse(headers={**headers, "Server": SERVER})
    await response.prepare(given)

    async def copy(reply: Reply) -> None:
        async for event in _events(reply.chunks):
            await response.write(event)

    copies = [asyncio.create_task(copy(reply)) for reply in replies]
    try:
        await asyncio.gather(*copies)
    finally:
        for each in copies:
            each.cancel()
        await asyncio.gather(*copies, return_exceptions=True)
    return response


async def _events(chunks: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """Whole events: a blank line ends each."""
    rest = b""
    async for chunk in chunks:
        whole, separator, rest = (rest + chunk).rpartition(b"\n\n")
        if separator:
            yield whole + separator
