"""The admin listener: ``/livez``, ``/readyz``, ``/metrics``, ``/purge``, ``/explain/UID`` and ``/ui/``.

It is plain HTTP, on loopback by default.

The first three are open to every client, any other path only to those that ``access`` lets in.

The format is that of Kubernetes' components: ``ok``; with ``?verbose``, or if a check fails, one line for each check
(``[+]config ok``, ``[-]certificates failed: why``) and a summary line. A check that passes may have a note
(``[+]config ok: the last good one ...``). Warnings (``[!]mutating policy ... fails``) need an operator's attention,
but do not make the gateway unready.

``/livez`` passes while the process runs its event loop: ``liveness``. Readiness "depends on configuration and
certificates, never on workers, Redis or the collector": an unready gateway gets no traffic, whereas the failurePolicy
covers a lost worker.
"""

import asyncio
import socket
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Final, NamedTuple, Protocol, cast

import structlog

from gateway.serving import web
from gateway.serving.acceptor import ConnectionSource, listening_sockets
from gateway.serving.access import DASHBOARD, AdminAccess, ParentAccess
from gateway.serving.connection import Connection, Connections
from gateway.serving.limits import Limits
from gateway.serving.liveness import HEARTBEAT_SECONDS, Heartbeat, LivenessThread, liveness
from gateway.serving.metrics_page import PATH as METRICS
from gateway.serving.metrics_page import MetricsPage, WrittenMetrics
from gateway.serving.refusal_log import AdminRefusals
from gateway.serving.refusals import SERVER, Refusal, Refused, answer, quote
from gateway.telemetry.events import Events, NoEvents

_LOG: Final = structlog.get_logger(__name__)


class Check(NamedTuple):
    """One readiness check. ``problem``: why it fails; None: it passes, perhaps with a ``note``."""

    name: str
    problem: str | None = None
    note: str | None = None


Checks = Callable[[], Iterable[Check]]
"""The readiness checks, in the order in which they are shown."""

Warnings = Callable[[], Sequence[str]]
"""Problems that need an operator's attention although all checks pass; one line each."""

GuardedPage = Callable[[web.BaseRequest], Awaitable[web.Response]]
"""Answers a request for a page that only some clients may call, such as ``/purge``."""


class Dashboard(Protocol):
    """Answers all requests below ``/ui``."""

    async def answer(self, request: web.BaseRequest, path: str) -> web.StreamResponse:
        """The answer. Raises Refused."""

    def stop(self) -> None:
        """End the answers that have no end of their own."""


_OPEN: Final = ("/livez", "/readyz", METRICS)
"""The pages that every client may read."""


class AdminListener:
    """Serves health, metrics and guarded pages, by their paths. It serves no reviews.

    ``events`` counts what is refused.
    """

    def __init__(  # noqa: PLR0913 - all by name
        self,
        *,
        checks: Checks,
        metrics: WrittenMetrics,
        warnings: Warnings = tuple,
        pages: Mapping[str, GuardedPage] = MappingProxyType({}),
        dashboard: Callable[[], Dashboard] | None = None,
        access: AdminAccess | None = None,
        limits: Limits | None = None,
        events: Events | None = None,
    ) -> None:
        self._checks = checks
        self._warnings = warnings
        self._pages = pages
        self._make_dashboard = dashboard
        self._dashboard: Dashboard | None = None
        self._access = access or AdminAccess()
        self._health = {"/livez": self._livez, "/readyz": self._readyz}
        self._limits = limits or Limits()
        self._refusals = AdminRefusals(events or NoEvents())
        self._metrics = MetricsPage(metrics, self._limits, events)
        self._connections: Connections | None = None
        self._heartbeat = Heartbeat()
        self._heartbeat_timer: asyncio.Handle | None = None
        self._liveness: LivenessThread | None = None
        self._source: ConnectionSource | None = None
        self._tasks: set[asyncio.Task[object]] = set()

    async def start(
        self,
        host: str,
        port: int,
        *,
        source: ConnectionSource | None = None,
        parent_pages: Mapping[str, GuardedPage] = MappingProxyType({}),
    ) -> tuple[str, int]:
        """Listen; port 0 selects a free port. Returns host and port of the listener. Raises ListenError.

        ``source``: gives connections of the parent process instead, which checks who may call, and may call
        ``parent_pages``, too.
        """
        self._connections = Connections(self._handle, limits=self._limits, note=self._refusals)
        if source is not None:
            self._access, self._source = ParentAccess(), source
            self._pages = {**self._pages, **parent_pages}
            return await source.open(self._take)
        sockets = await listening_sockets(host, port, self._limits.backlog)
        name = sockets[0].getsockname()
        self._record_heartbeat()
        self._liveness = LivenessThread(
            sockets, self._take, self._heartbeat, asyncio.get_running_loop(), self._limits.heartbeat_seconds
        )
        self._liveness.start()
        return name[0], name[1]

    def _record_heartbeat(self) -> None:
        self._heartbeat.record()
        self._heartbeat_timer = asyncio.get_running_loop().call_later(HEARTBEAT_SECONDS, self._record_heartbeat)

    async def stop(self) -> None:
        """Stop listening, and close all connections."""
        if self._liveness is not None:
            self._liveness.stop()
        if self._heartbeat_timer is not None:
            self._heartbeat_timer.cancel()
        if self._dashboard is not None:
            self._dashboard.stop()
        if self._source is not None:
            self._source.close()
        if self._connections is not None:
            await self._connections.close()

    def _take(self, connected: socket.socket, peer: str) -> None:
        del peer
        assert self._connections is not None  # noqa: S101 - set before the source is opened
        loop = asyncio.get_running_loop()
        task = loop.create_task(loop.connect_accepted_socket(self._connections, connected))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _handle(self, request: web.BaseRequest) -> web.StreamResponse:
        path = request.rel_url.path
        try:
            response = await self._respond(request, path)
        except Refused as refused:
            cast("Connection", request.protocol).refused(refused.refusal, refused.text)
            response = answer(refused.refusal, refused.text, challenge=refused.challenge)
        except Exception:  # noqa: BLE001 - a page's error is logged with its traceback, and answered
            _LOG.exception("a page of the admin listener failed", path=path)
            response = answer(Refusal.INTERNAL, f"{path} failed; see the gateway's log")
        if not request.content.is_eof():
            # No page takes a body: close the connection instead of reading one.
            response.force_close()
        return response

    async def _respond(self, request: web.BaseRequest, path: str) -> web.StreamResponse:
        if path not in _OPEN:
            self._access.require(request, path)
        if self._make_dashboard is not None and f"{path}/".startswith(f"{DASHBOARD}/"):
            # When it is first opened: importing it takes 10 ms, and most gateways never need it.
            self._dashboard = self._dashboard or self._make_dashboard()
            return await self._dashboard.answer(request, path)
        return await self._answer(request, path)

    def _page_at(self, path: str) -> GuardedPage | None:
        """The guarded page of a path; those whose own ends with a slash have all paths below it."""
        return self._pages.get(path) or self._pages.get(path[: path.find("/", 1) + 1])

    async def _answer(self, request: web.BaseRequest, path: str) -> web.Response:
        guarded = self._page_at(path)
        if guarded is not None:
            return await guarded(request)
        if path not in _OPEN:
            known = [*_OPEN, *self._pages, *([] if self._make_dashboard is None else [f"{DASHBOARD}/"])]
            raise Refused(Refusal.PATH, f"nothing at {quote(path)}; there are {', '.join(known)}")
        if request.method not in {"GET", "HEAD"}:
            text = f"{quote(request.method)} is not for {path}; GET it"
            cast("Connection", request.protocol).refused(Refusal.METHOD, text)
            return answer(Refusal.METHOD, text, allow="GET, HEAD")
        if path == METRICS:
            return await self._metrics(request)
        return self._health[path](verbose="verbose" in request.rel_url.query)

    def _livez(self, *, verbose: bool) -> web.Response:
        # On a connection that is kept. The loop runs: it has just come here.
        return _page(*liveness(None, is_verbose=verbose))

    def _readyz(self, *, verbose: bool) -> web.Response:
        return _health("readyz", tuple(self._checks()), self._warnings(), verbose=verbose)


def _health(name: str, checks: Sequence[Check], warnings: Sequence[str], *, verbose: bool) -> web.Response:
    """Kubernetes' form of a health endpoint: `k8s.io/apiserver/pkg/server/healthz`."""
    failed = any(check.problem is not None for check in checks)
    if not failed and not verbose:
        return _page(200, b"ok\n")
    lines = [_line(check) for check in checks]
    lines += [f"[!]{warning}" for warning in warnings]
    lines.append(f"{name} check {'failed' if failed else 'passed'}")
    return _page(503 if failed else 200, "".join(f"{line}\n" for line in lines).encode())


def _line(check: Check) -> str:
    if check.problem is not None:
        return f"[-]{check.name} failed: {check.problem}"
    return f"[+]{check.name} ok" if check.note is None else f"[+]{check.name} ok: {check.note}"


def _page(status: int, body: bytes, content_type: str = "text/plain; charset=utf-8") -> web.Response:
    # A cached response would report outdated readiness.
    headers = {"Content-Type": content_type, "Cache-Control": "no-store", "Server": SERVER}
    return web.Response(status=status, body=body, headers=headers)
