"""The admin listener of a gateway with several processes. Its pages: ``pages``."""

import asyncio
import re
from collections.abc import Awaitable, Callable
from typing import Final, cast

import structlog

from gateway.serving import web
from gateway.serving.acceptor import listening_sockets
from gateway.serving.access import DASHBOARD, AdminAccess
from gateway.serving.connection import Connection, Connections
from gateway.serving.explain import PATH as EXPLAIN
from gateway.serving.limits import Limits
from gateway.serving.metrics_page import PATH as METRICS
from gateway.serving.metrics_page import MetricsPage
from gateway.serving.processes.pages import PROCESS, Pages
from gateway.serving.purge import PATH as PURGE
from gateway.serving.refusal_log import AdminRefusals
from gateway.serving.refusals import Refusal, Refused, answer, quote
from gateway.telemetry.events import Events, NoEvents

_LOG: Final = structlog.get_logger(__name__)

_PAGE_OF_ONE: Final = re.compile(f"{PROCESS}([1-9][0-9]?)(/.*)")
"""In the bytes that the client sent: what follows the number is what its process is asked for, and what the client has
to be let in for. Decoded, a number with "%2F" would end elsewhere."""

_Page = Callable[[web.BaseRequest], Awaitable[web.StreamResponse]]


class PodAdminListener:
    """Serves the pages.

    Args:
        pages: answer.
        access: who may call those that are not open to all.
        limits: of the connections.
        events: counts what is refused.
    """

    def __init__(self, pages: Pages, access: AdminAccess, limits: Limits, events: Events | None = None) -> None:
        self._pages = pages
        self._access = access
        self._limits = limits
        self._open: dict[str, _Page] = {
            "/livez": pages.livez,
            "/readyz": pages.readyz,
            METRICS: MetricsPage(pages.metrics, limits, events),
        }
        self._refusals = AdminRefusals(events or NoEvents())
        self._connections: Connections | None = None
        self._servers: list[asyncio.Server] = []

    async def start(self, host: str, port: int) -> tuple[str, int]:
        """Listen; port 0 selects a free port. Returns host and port of the listener. Raises ListenError."""
        self._connections = Connections(self._handle, limits=self._limits, note=self._refusals)
        loop = asyncio.get_running_loop()
        sockets = await listening_sockets(host, port, self._limits.backlog)
        name = sockets[0].getsockname()
        self._servers = [await loop.create_server(self._connections, sock=listening) for listening in sockets]
        return name[0], name[1]

    async def stop(self) -> None:
        """Stop listening, and close all connections."""
        for server in self._servers:
            server.close()
        if self._connections is not None:
            await self._connections.close()

    async def _handle(self, request: web.BaseRequest) -> web.StreamResponse:
        path = request.rel_url.path
        try:
            response = await self._answer(request, path)
        except Refused as refused:
            cast("Connection", request.protocol).refused(refused.refusal, refused.text)
            response = answer(refused.refusal, refused.text, challenge=refused.challenge)
        except Exception:  # noqa: BLE001 - a page's error is logged with its traceback, and answered
            _LOG.exception("a page of the admin listener failed", path=path)
            response = answer(Refusal.INTERNAL, f"{path} failed; see the gateway's log")
        if not request.content.is_eof() and not response.prepared:
            # No page takes a body: close the connection instead of reading one.
            response.force_close()
        return response

    async def _answer(self, request: web.BaseRequest, path: str) -> web.StreamResponse:
        one = _PAGE_OF_ONE.match(request.rel_url.raw_path)
        target = request.rel_url
        if one is not None:
            target = target.with_path(one[2], encoded=True, keep_query=True)
            self._access.require(request, target.path)
        elif path not in self._open:
            self._access.require(request, path)
        if path == PURGE:
            return await self._pages.purge(request)
        if request.method not in {"GET", "HEAD"}:
            text = f"{quote(request.method)} is not for {quote(path)}; GET it"
            cast("Connection", request.protocol).refused(Refusal.METHOD, text)
            return answer(Refusal.METHOD, text, allow="GET, HEAD")
        if one is not None:
            return await self._pages.process(request, one[1], target.raw_path_qs)
        return await self._page(path)(request)

    def _page(self, path: str) -> _Page:
        if path.startswith(EXPLAIN):
            return self._pages.explain
        if f"{path}/".startswith(f"{DASHBOARD}/"):
            return self._pages.dashboard
        page = self._open.get(path)
        if page is None:
            known = ", ".join((*self._open, PURGE, EXPLAIN, f"{DASHBOARD}/", f"{PROCESS}N/"))
            raise Refused(Refusal.PATH, f"nothing at {quote(path)}; there are {known}")
        return page
