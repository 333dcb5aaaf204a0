"""Formats a patch for a log line: where something changed, and to what.

Each line has a bounded length. It has the values, because operators need them; values of a Secret, and values that the
policies were not shown, are digests. Equal digests mean equal values.
"""

from collections.abc import Sequence
from typing import Any, Final

import msgspec

from gateway.engine.field_changes import digest, hides
from gateway.engine.invocation_record import InvocationRecord
from gateway.patching.difference import Operation
from gateway.review.request import Request

LOGGED_OPERATIONS: Final = 20
"""Operations of a patch in a log line: the first few are enough to find an error."""

LOGGED_CHARACTERS: Final = 500
"""Characters of each operation: a path and a value of usual length. Two patches of 20 make 20 KB."""


class PatchLines:
    """Formats patches.

    Args:
        key: the key of the digests.
    """

    def __init__(self, key: bytes) -> None:
        self._key = key

    def reported(
        self, request: Request, calls: Sequence[InvocationRecord], operations: Sequence[Operation]
    ) -> list[str]:
        """A line for each of the first operations that ``calls`` made, and one with the number of further ones."""
        lines = [cut(self._line(each, hidden=hides(request, calls, each))) for each in operations[:LOGGED_OPERATIONS]]
        if len(operations) > LOGGED_OPERATIONS:
            lines.append(f"and {len(operations) - LOGGED_OPERATIONS} more")
        return lines

    def _line(self, operation: Operation, *, hidden: bool) -> str:
        if operation.op == "remove":
            return f"remove {operation.path}"
        if hidden:
            return f"{operation.op} {operation.path} = (a value with the digest {digest(operation.value, self._key)})"
        return f"{operation.op} {operation.path} = {msgspec.json.encode(operation.value).decode()}"


def about(request: Request) -> dict[str, Any]:
    """The request that a log line is about, as log keys."""
    return {
        "uid": cut(request.uid),
        "resource": cut(request.resource.resource),
        "subresource": cut(request.sub_resource),
        "namespace": cut(request.namespace),
        "name": cut(request.name),
    }


def cut(text: str) -> str:
    """The text, cut to ``LOGGED_CHARACTERS``."""
    return text if len(text) <= LOGGED_CHARACTERS else text[:LOGGED_CHARACTERS] + "…"
