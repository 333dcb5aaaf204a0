"""Purge by policy: ``POST /purge?policy=CONFIGURATION/NAME`` on the admin listener, with ``policy`` once for each.

What the cache holds of these policies, in both phases where both have one of that name, is not used from then on: here
at once, and with Redis on every replica within a moment.

    ======  ============================================================================================================
    status  when
    ======  ============================================================================================================
    200     done here: ``{"purged": ["CONFIGURATION/NAME"], "replicasNotified": true}``. replicasNotified is false while
    Redis
            is away or refuses what it takes, with ``why``; the other replicas hear of it when Redis takes it, should
            this process live so long. It is null without Redis: there is nobody to be told
    400     no policy is named, or something else than policies
    403     the request does not come from this machine, or comes from a web page that is open on it
    404     there is no such policy, or it has no cache; then nothing is purged
    405     not POST
    ======  ============================================================================================================

The listener has no authentication, and may be opened to a cluster's probes: so whoever purges must be in the pod. All
that a purge can do is to make workers be asked again.
"""

from collections.abc import Awaitable, Callable, Sequence
from http import HTTPStatus
from ipaddress import IPv6Address, ip_address
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
"""Policies with a cache that a 404 names: what fits a terminal."""


class PurgePage:
    """Answers requests to purge.

    Args:
        cached: gives the policies that have a cache, at this moment.
        purge: makes the cache forget what it holds of policies with these qualified names; whether other replicas will
            within a moment; None: there are none.
        why: gives what is wrong with Redis, at this moment.
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
        """The answer."""
        if request.method != "POST":
            return answer(Refusal.METHOD, f"{quote(request.method)} is not for {PATH}; POST it")
        # A browser puts Origin on every POST of a page, and a page of anybody's can send one to this machine.
        if not _local(request.remote) or "Origin" in request.headers:
            text = f"only programs on this machine may purge, not {quote(request.remote or '')}; do it in the pod"
            return _refusal(HTTPStatus.FORBIDDEN, text)
        query = request.rel_url.query
        names = list(dict.fromkeys(query.getall(_PARAMETER, [])))
        if not names or set(query) != {_PARAMETER}:
            text = f"say which policies, and nothing else: {PATH}?{_PARAMETER}=CONFIGURATION/NAME"
            return _refusal(HTTPStatus.BAD_REQUEST, text)
        cached = self._cached()
        unknown = [name for name in names if name not in {policy.qualified_name for policy in cached}]
        if unknown:
            return _refusal(HTTPStatus.NOT_FOUND, _no_such(unknown[0], cached))
        reported = await self._purge(names)
        _LOG.warning("the cache was purged", policies=names, peer=request.remote, replicas_notified=reported)
        said: dict[str, object] = {"purged": names, "replicasNotified": reported}
        if reported is False:
            said["why"] = self._why() or "Redis could not be told in time"
        return web.Response(
            body=msgspec.json.encode(said),
            headers={"Content-Type": "application/json", "Cache-Control": "no-store", "Server": SERVER},
        )


def _local(peer: str | None) -> bool:
    try:
        address = ip_address(peer or "")
    except ValueError:
        return False
    if isinstance(address, IPv6Address) and address.ipv4_mapped is not None:
        return address.ipv4_mapped.is_loopback
    return address.is_loopback


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
