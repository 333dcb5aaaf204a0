"""Reads from the Kubernetes API for an audit: discovery, pages of lists, single objects. Nothing waits for an audit, so
a server that is busy or away for some seconds is tried again.

A page is the only part of a list that is in memory. The token of the next page stays valid for about five minutes,
until etcd is compacted; then the API server answers 410 with a token by which the list goes on in its newest version.
What existed all the time is in it. Without such a token the list begins again.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any, Final

from msgspec import Struct

from gateway.audit.targets import ServedResource
from gateway.cluster.client import KubernetesClient, Query
from gateway.cluster.errors import ApiError

PAGE: Final = 50
"""Objects in one response: of the largest that etcd stores (1.5 MiB) 75 MB, and 250 MB with what is parsed;
usually 200 KB."""

PAGE_SECONDS: Final = 30.0
"""How long a page may take: half of the API server's own request timeout."""

ATTEMPTS: Final = 5
"""Requests until one is given up, ``DELAY_SECONDS`` after the first, then twice as long each: 15 s in all, in which a
kube-apiserver restarts."""

DELAY_SECONDS: Final = 1.0
MAX_DELAY_SECONDS: Final = 30.0
"""The longest Retry-After that is waited for."""

EXPIRATIONS: Final = 20
"""How often in a row a list may expire before it is given up."""

_TOO_MANY_REQUESTS: Final = 429
_SERVER_ERRORS: Final = 500
_NOT_FOUND: Final = 404


class Page(Struct, frozen=True, kw_only=True):
    """A part of a list. ``token`` is that of the next one, "" after the last.

    ``restarted``: the list has begun again with this page; those before it do not count.
    """

    items: list[Any]
    token: str
    restarted: bool = False


class ApiReader:
    """Reads from one API server.

    Args:
        client: connected.
        sleep: waits between two attempts.
    """

    def __init__(self, client: KubernetesClient, sleep: Callable[[float], Awaitable[object]] = asyncio.sleep) -> None:
        self._client = client
        self._sleep = sleep

    async def get(self, path: str, query: Query | None = None) -> Any:
        """The response to a GET. Raises ApiError: it failed ``ATTEMPTS`` times, or for a reason that lasts."""
        delay = DELAY_SECONDS
        for attempt in range(ATTEMPTS):
            try:
                return await self._client.send("GET", path, query=query, seconds=PAGE_SECONDS)
            except ApiError as error:
                lasts = 0 < error.code < _SERVER_ERRORS and error.code != _TOO_MANY_REQUESTS
                if lasts or attempt == ATTEMPTS - 1:
                    raise
                await self._sleep(min(error.retry_after or delay, MAX_DELAY_SECONDS))
                delay *= 2
        raise AssertionError("the last attempt returns or raises")

    async def object(self, path: str) -> Any:
        """An object; None: there is none. Raises ApiError."""
        try:
            return await self.get(path)
        except ApiError as error:
            if error.code == _NOT_FOUND:
                return None
            raise

    async def pages(self, path: str, token: str = "") -> AsyncIterator[Page]:
        """The pages of a list.

        Args:
            path: of the collection.
            token: that of the first page to read; "": of the first of all.

        Raises:
            ApiError: a page cannot be read.
        """
        restarted, expirations = False, 0
        while True:
            query: dict[str, str | int] = {"limit": PAGE, **({"continue": token} if token else {})}
            try:
                found = await self.get(path, query)
            except ApiError as error:
                expirations += 1
                if not (error.expired and token) or expirations > EXPIRATIONS:
                    raise
                token, restarted = error.continue_token, restarted or not error.continue_token
                continue
            expirations = 0
            token = found["metadata"].get("continue") or ""
            yield Page(items=found.get("items") or [], token=token, restarted=restarted)
            if not token:
                return
            restarted = False

    async def served_resources(self) -> tuple[list[ServedResource], list[str]]:
        """The resources that can be listed, the preferred version of each group first; and what is not known, why.

        Raises:
            ApiError: the API server has no answer at all.
        """
        found: list[ServedResource] = []
        problems: list[str] = []
        versions = [("", "v1", "/api/v1")]
        for group in (await self.get("/apis"))["groups"]:
            preferred = group["preferredVersion"]["version"]
            names = [each["version"] for each in group["versions"]]
            ordered = [preferred, *(name for name in names if name != preferred)]
            versions += [(group["name"], name, f"/apis/{group['name']}/{name}") for name in ordered]
        for name, version, path in versions:
            try:
                found += _listable(name, version, await self.get(path))
            except ApiError as error:
                # Such as an aggregated API whose server is away.
                problems.append(str(error))
        return found, problems


def _listable(group: str, version: str, listed: Any) -> list[ServedResource]:
    return [
        ServedResource(
            group=group, version=version, name=each["name"], kind=each["kind"], namespaced=bool(each["namespaced"])
        )
        for each in listed["resources"]
        if "/" not in each["name"] and "list" in (each.get("verbs") or ())
    ]
