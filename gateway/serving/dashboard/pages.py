"""The pages of the dashboard.

======================  ====================================================================================
path                    answer
======================  ====================================================================================
``/ui/``                the page, and its files below it
``/ui/api/live``        the live stream (``live_data``)
``/ui/api/policies``    the numbers of all policies (``policy_statistics``)
``/ui/api/reviews/UID`` the reviews with this uid: each decision, and the object after it
======================  ====================================================================================

**Who may see it.** The data need the token of ``--admin-token-file``, as every other guarded page. A browser cannot
send one with a page or an EventSource, so the page is open, asks the user for the token, and reads the data by fetch
with ``Authorization: Bearer``. It keeps the token for its tab. There is no cookie: a browser sends a cookie of
``localhost`` to every port of it, and each process of a pod would have to know every session.

Without a token file, clients on this machine may see it, as ``AdminAccess`` explains.
"""

from collections.abc import Awaitable, Callable
from http import HTTPStatus
from typing import Any, Final

import msgspec

from gateway.serving import web
from gateway.serving.access import DASHBOARD
from gateway.serving.dashboard.live_stream import LiveStream
from gateway.serving.dashboard.static_files import HEADERS, file_page
from gateway.serving.refusals import Refusal, Refused, answer, line, quote

_DATA: Final = "api/"
_REVIEW: Final = "api/reviews/"


class DashboardPages:
    """Answers requests for the dashboard.

    Args:
        stream: the live stream.
        policies: the numbers of all policies, as JSON.
        reviews: the reviews with a uid; none if they are not known (any more).
    """

    def __init__(
        self,
        stream: LiveStream,
        *,
        policies: Callable[[], Awaitable[bytes]],
        reviews: Callable[[str], list[dict[str, Any]]],
    ) -> None:
        self._stream = stream
        self._policies = policies
        self._reviews = reviews

    async def answer(self, request: web.BaseRequest, path: str) -> web.StreamResponse:
        """The answer to a request of a client that may call ``path``, which begins with DASHBOARD.

        Raises:
            Refused: there is nothing at this path.
        """
        if request.method != "GET":
            return answer(Refusal.METHOD, f"{quote(request.method)} is not for {quote(path)}; GET it", allow="GET")
        if path == DASHBOARD:
            # Relative, so that it works behind a proxy that adds a prefix.
            return web.Response(status=HTTPStatus.PERMANENT_REDIRECT, headers={**HEADERS, "Location": "ui/"})
        name = path.removeprefix(f"{DASHBOARD}/")
        if not name.startswith(_DATA):
            page = file_page(name)
            if page is None:
                raise Refused(Refusal.PATH, f"nothing at {quote(path)}; the dashboard is at {DASHBOARD}/")
            return page
        return await self._data(request, name, path)

    async def _data(self, request: web.BaseRequest, name: str, path: str) -> web.StreamResponse:
        if name == "api/live":
            return await self._stream.answer(request)
        if name == "api/policies":
            return _json(await self._policies())
        if name.startswith(_REVIEW):
            found = self._reviews(name.removeprefix(_REVIEW))
            if found:
                return _json(msgspec.json.encode({"reviews": found}))
            text = (
                "no review with this uid is retained in this process: it is too old, or another replica decided it; "
                "without a Redis that all replicas share, run `admission-gateway explain UID` in each pod"
            )
            return web.Response(
                status=HTTPStatus.NOT_FOUND,
                body=line(text),
                headers={**HEADERS, "Content-Type": "text/plain; charset=utf-8"},
            )
        raise Refused(Refusal.PATH, f"nothing at {quote(path)}; the dashboard is at {DASHBOARD}/")

    def stop(self) -> None:
        """End the live streams."""
        self._stream.stop()


def _json(content: bytes) -> web.Response:
    return web.Response(body=content, headers={**HEADERS, "Content-Type": "application/json"})
