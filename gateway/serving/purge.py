"""Purge by policy: ``POST /purge?policy=CONFIGURATION/NAME`` on the admin listener, with ``policy`` once for each.

The gateway does not reuse cached verdicts of these policies (in both phases, if both have a policy of that name) from
then on: in this process at once, and with Redis on every replica within a moment.

    ======  ============================================================================================================
    status  when
    ======  ============================================================================================================
    200     purged here: ``{"purged": ["CONFIGURATION/NAME"], "replicasNotified": true}``. replicasNotified is false
            while Redis is unavailable or refuses a command, with ``why``; this process, as long as it runs, notifies
            the other replicas when Redis works again. It is null without Redis: no replicas share verdicts
    400     no policy is named, or something else than policies
    404     there is no such policy, or it has no cache; then nothing is purged
    405     not POST
    ======  ============================================================================================================

Who may purge: ``gateway.serving.access``. A purge can only cause more calls to workers.
"""

from collections.abc import Awaitable, Callable, Sequence
from http import HTTPStatus
from typing import Final

import msgspec
import structlog

from gateway.policies.model import Policy
from gateway.serving import web
from gateway.serving.refusals import SERVER, Refusal, answer, line, quote

_LOG: Final = structlog.get_logger(__name__)

PATH: Final = "/purge"

_PARAMETER: Final = "policy"
_SHOWN: Final = 50
"""Policies with a cache that a 404 names: as many as fit a terminal."""


class PurgePage:
    """Answers requests to purge.

    Args:
        cached: returns the policies that have a cache now.
        purge: purges the policies with these qualified names; returns whether other replicas will within a moment;
            None: there are none.
        why: returns the present problem of Redis.
    """

    def __init__(
        self,
        cached: Callable[[], Sequence[Policy]],
        purge: Callable[[Sequence[str]], Awaitable[bool | None]],
        why: Callable[[], str | None] = lambda: None,
    ) -> None:
        self._cached = cached
        self._purge = purge
        self._why = why

    async def __call__(self, request: web.BaseRequest) -> web.Response:
        """The answer to a purge request."""
        if request.method != "POST":
            return answer(Refusal.METHOD, f"{quote(request.method)} is not for {PATH}; POST it")
        query = request.rel_url.query
        names = list(dict.fromkeys(query.getall(_PARAMETER, [])))
        if not names or set(query) != {_PARAMETER}:
            text = f"name the policies, and nothing else: {PATH}?{_PARAMETER}=CONFIGURATION/NAME"
            return _refusal(HTTPStatus.BAD_REQUEST, text)
        cached = self._cached()
        unknown = [name for name in names if name not in {policy.qualified_name for policy in cached}]
        if unknown:
            return _refusal(HTTPStatus.NOT_FOUND, _no_such(unknown[0], cached))
        notified = await self._purge(names)
        _LOG.warning("the cache was purged", policies=names, peer=request.remote, replicas_notified=notified)
        result: dict[str, object] = {"purged": names, "replicasNotified": notified}
        if notified is False:
            result["why"] = self._why() or "Redis did not answer in time"
        return web.Response(
            body=msgspec.json.encode(result),
            headers={"Content-Type": "application/json", "Cache-Control": "no-store", "Server": SERVER},
        )


def _no_such(name: str, cached: Sequence[Policy]) -> str:
    names = sorted({policy.qualified_name for policy in cached})
    if not names:
        return f"{quote(name)} has no cache, nor has any other policy; nothing is purged"
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return (
        f"{quote(name)} is no policy with a cache; nothing is purged; those with one are "
        f"{', '.join(names[:_SHOWN])}{more}"
    )


def _refusal(status: HTTPStatus, text: str) -> web.Response:
    headers = {"Content-Type": "text/plain; charset=utf-8", "Server": SERVER}
    return web.Response(status=status, body=line(text), headers=headers)
