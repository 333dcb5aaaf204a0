"""Keeps what the API server has of a collection, as client-go's Reflector does: lists it, then watches it.

==========================================  =====================================================================
what happens                                what follows
==========================================  =====================================================================
a watch ends                                the next one begins at the last resource version, bookmarks included
the resource version is too old (410)       a list
an error, no response, no permission        what is known stays; again after a pause that doubles up to 30 s, with
                                            jitter, or as long as the API server says (Retry-After)
==========================================  =====================================================================
"""

import asyncio
import random
from collections.abc import Awaitable, Callable
from time import monotonic
from typing import Any, Final, Generic, TypeVar

import structlog

from gateway.cluster.client import JSON, METADATA, KubernetesClient, Query
from gateway.cluster.errors import ApiError

_LOG: Final = structlog.get_logger(__name__)

_FIRST_PAUSE: Final = 0.8
_LONGEST_PAUSE: Final = 30.0
"""Seconds between attempts: client-go's."""

_WATCH_SECONDS: Final = 300
"""How long a watch lasts at least, and half as long as at most: client-go's."""

T = TypeVar("T")


class BackOff:
    """The pauses between attempts that fail: they double, with jitter, and begin anew after a success."""

    def __init__(self, first: float = _FIRST_PAUSE, longest: float = _LONGEST_PAUSE) -> None:
        self._first, self._longest = first, longest
        self._next = first

    def reset(self) -> None:
        """An attempt succeeded."""
        self._next = self._first

    async def pause(self, at_least: float = 0.0) -> None:
        """Wait before the next attempt, ``at_least`` so many seconds."""
        seconds = self._next * random.uniform(1.0, 2.0)  # noqa: S311 - jitter
        self._next = min(2 * self._next, self._longest)
        await asyncio.sleep(max(seconds, at_least))


class Reflector(Generic[T]):
    """The objects of one collection, by key: ``NAME``, or ``NAMESPACE/NAME``.

    Args:
        client: connected.
        path: of the collection (``collection_path``).
        keep: what is kept of an object.
        changed: called after each change: the key, and what is kept of the object, None if it is gone. After a list,
            it is called for each object that differs, then ``synced`` is set.
        metadata_only: whether ``keep`` gets metadata only (PartialObjectMetadata).
        selectors: ``labelSelector`` and ``fieldSelector``; None: all objects.
        page_kept: awaited after each page of a list has been kept, before the next one is read.
    """

    def __init__(  # noqa: PLR0913 - all but the first four by name
        self,
        client: KubernetesClient,
        path: str,
        keep: Callable[[Any], T],
        changed: Callable[[str, T | None], object] = lambda _key, _value: None,
        *,
        metadata_only: bool = False,
        selectors: Query | None = None,
        page_kept: Callable[[], Awaitable[None]] | None = None,
    ) -> None:
        self.items: dict[str, T] = {}
        self.synced = asyncio.Event()
        """Set once a complete list has been read."""
        self.problem: str | None = "not listed yet"
        """Why ``items`` may be out of date; None: a watch is open."""
        self.error: ApiError | None = None
        """The last error, if that is the problem."""
        self._client = client
        self._path = path
        self._keep = keep
        self._changed = changed
        list_accept, watch_accept = (METADATA.format("List"), METADATA.format("")) if metadata_only else (JSON, JSON)
        self._list_accept, self._watch_accept = list_accept, watch_accept
        self._selectors = selectors
        self._page_kept = page_kept
        self._version: str | None = None

    async def run(self) -> None:
        """List and watch until cancelled."""
        back_off = BackOff()
        while True:
            started = monotonic()
            try:
                if self._version is None:
                    await self._list()
                await self._watch()
            except ApiError as error:
                if error.expired:
                    self._version = None
                self.error = error
                if self.problem != str(error):
                    self.problem = str(error)
                    _LOG.warning("a watch of the Kubernetes API failed; what is known stays", error=str(error))
                if monotonic() - started > _LONGEST_PAUSE:
                    back_off.reset()
                await back_off.pause(error.retry_after)
            else:
                # A server that ends each watch at once is not called in a loop.
                if monotonic() - started > 1:
                    back_off.reset()
                else:
                    await back_off.pause()

    async def _list(self) -> None:
        found: dict[str, T] = {}
        version = ""
        async for page, version in self._client.pages(  # noqa: B007 - the last one is used
            self._path, selectors=self._selectors, accept=self._list_accept
        ):
            found |= {key_of(each): self._keep(each) for each in page}
            if self._page_kept is not None:
                await self._page_kept()
        gone = [key for key in self.items if key not in found]
        different = [key for key, value in found.items() if key not in self.items or self.items[key] != value]
        self.items.clear()
        self.items.update(found)
        self._version = version
        self.problem = None
        for key in gone:
            self._changed(key, None)
        for key in different:
            self._changed(key, found[key])
        self.synced.set()

    async def _watch(self) -> None:
        seconds = random.randint(_WATCH_SECONDS, 2 * _WATCH_SECONDS)  # noqa: S311 - so that replicas do not watch in step
        version = self._version or ""
        async for kind, obj in self._client.watch(
            self._path,
            resource_version=version,
            seconds=seconds,
            selectors=self._selectors,
            accept=self._watch_accept,
        ):
            if self.problem is not None:
                _LOG.info("a watch of the Kubernetes API is open again", path=self._path)
                self.problem = None
            self._version = obj["metadata"]["resourceVersion"]
            if kind == "BOOKMARK":
                continue
            self._event(kind, key_of(obj), obj)

    def _event(self, kind: str, key: str, obj: Any) -> None:
        if kind == "DELETED":
            if self.items.pop(key, None) is not None:
                self._changed(key, None)
            return
        value = self._keep(obj)
        if key not in self.items or self.items[key] != value:
            self.items[key] = value
            self._changed(key, value)


def key_of(obj: Any) -> str:
    """``NAME``, or ``NAMESPACE/NAME``."""
    metadata = obj["metadata"]
    namespace = metadata.get("namespace")
    return f"{namespace}/{metadata['name']}" if namespace else str(metadata["name"])
