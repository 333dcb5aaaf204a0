"""The objects of one snapshot, as JSON texts: what a ``kubernetes`` binding keeps of the objects that it selects.

With a ``jqFilter``, an object that has changed is filtered before the snapshot is used, together with all others that
have changed meanwhile. With ``keepFullObjectsInMemory: false`` it is not kept after that.
"""

import asyncio
from collections.abc import Iterator

import msgspec
from msgspec import Struct

from gateway.hooks.configuration.model import ObjectBinding
from gateway.hooks.execution.jq import JqError, apply_filter
from gateway.hooks.execution.snapshots import SnapshotError
from gateway.transports.limits import TransportLimits


class SnapshotTooLargeError(SnapshotError):
    """The objects have more bytes than the limit."""


class _Item(Struct, kw_only=True):
    """One object: ``order`` is its place in the list; ``content`` None: not kept; ``result`` None: not filtered yet."""

    order: tuple[str, str]
    content: bytes | None
    result: bytes | None = None
    error: str = ""

    @property
    def size(self) -> int:
        return len(self.content or b"") + len(self.result or b"")


class SnapshotStore:
    """The objects of one binding.

    Args:
        binding: what is kept of each object.
        limits: ``hook_snapshot_bytes`` for all of them; those of a run of jq.
    """

    def __init__(self, binding: ObjectBinding, limits: TransportLimits) -> None:
        self.changed = asyncio.Event()
        """Set when an object has to be filtered."""
        self._binding = binding
        self._limits = limits
        self._items: dict[str, _Item] = {}
        self._size = 0
        self._filtering = asyncio.Lock()
        self._text: bytes | None = None

    @property
    def objects(self) -> int:
        """The number of objects."""
        return len(self._items)

    @property
    def size(self) -> int:
        """Their bytes."""
        return self._size

    def put(self, key: str, content: bytes) -> None:
        """Keep an object, JSON without line ends, instead of the earlier one with this key (``NAMESPACE/NAME``).

        Raises:
            SnapshotTooLargeError: all objects together are too large.
        """
        namespace, _, name = key.rpartition("/")
        self._replace(key, _Item(order=(namespace, name), content=content))
        if self._binding.jq_filter:
            self.changed.set()
        if self._size > self._limits.hook_snapshot_bytes:
            raise SnapshotTooLargeError(
                f"binding {self._binding.name!r} selects objects of more than {self._limits.hook_snapshot_bytes} bytes "
                "(limit hook_snapshot_bytes); select fewer, or set a jqFilter and keepFullObjectsInMemory: false"
            )

    def remove(self, key: str) -> None:
        """Forget an object."""
        self._replace(key, None)

    def _replace(self, key: str, item: _Item | None) -> None:
        old = self._items.pop(key, None)
        if old is not None:
            self._size -= old.size
        if item is not None:
            self._items[key] = item
            self._size += item.size
        self._text = None

    async def text(self) -> bytes:
        """The snapshot: a JSON array.

        Raises:
            SnapshotError: jq cannot filter an object.
        """
        await self.filter()
        if self._text is None:
            self._text = b"[" + b",".join(self._elements()) + b"]"
        return self._text

    async def filter(self) -> None:
        """Filter the objects that have changed.

        Raises:
            SnapshotError: jq cannot be run with this filter.
        """
        if not self._binding.jq_filter:
            return
        async with self._filtering:
            self.changed.clear()
            found = {key: item for key, item in self._items.items() if item.result is None and not item.error}
            try:
                results = await apply_filter(
                    self._binding.jq_filter,
                    [item.content or b"null" for item in found.values()],
                    self._limits.hook_config_seconds,
                    self._limits.hook_response_bytes,
                )
            except JqError as error:
                raise SnapshotError(f"binding {self._binding.name!r}: {error}") from None
            for (key, item), result in zip(found.items(), results, strict=True):
                if self._items.get(key) is item:  # else it has changed meanwhile
                    text = b"" if result.error else msgspec.json.encode(result.filter_result)
                    kept = item.content if self._binding.keeps_objects else None
                    self._replace(key, _Item(order=item.order, content=kept, result=text, error=result.error))

    def _elements(self) -> Iterator[bytes]:
        """In shell-operator's form and order."""
        for item in sorted(self._items.values(), key=lambda each: each.order):
            if item.error:
                raise SnapshotError(
                    f"binding {self._binding.name!r}: jq cannot apply its jqFilter to {'/'.join(item.order)}: "
                    f"{item.error}; correct the filter"
                )
            members = []
            if self._binding.keeps_objects:
                members.append(b'"object":%b' % (item.content or b"null"))
            if self._binding.jq_filter:
                members.append(b'"filterResult":%b' % (item.result or b"null"))
            yield b"{%b}" % b",".join(members)
