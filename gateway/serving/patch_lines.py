"""A patch, told in a log line: where something changed, and to what.

A line is bounded, whatever workers write. It holds values, because without them nobody sees what goes on; those of a
Secret, and what the policies were not shown, as digests, of which equal ones are equal values.
"""

from collections.abc import Sequence
from typing import Any, Final

import msgspec

from gateway.engine.field_changes import digest, hides
from gateway.engine.invocation_record import InvocationRecord
from gateway.patching.difference import Operation
from gateway.review.request import Request

LOGGED_OPERATIONS: Final = 20
"""How many operations of a patch a log line tells: whoever looks for a mistake needs the first few."""

LOGGED_CHARACTERS: Final = 500
"""How much of each: a path and a value of usual length. Two patches of 20 make 20 KB."""


class PatchLines:
    """Tells patches.

    Args:
        key: of the digests.
    """

    def __init__(self, key: bytes) -> None:
        self._key = key

    def reported(
        self, request: Request, calls: Sequence[InvocationRecord], operations: Sequence[Operation]
    ) -> list[str]:
        """One line for each of the first operations of what ``calls`` changed, and how many more there are."""
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
    """Which request a line is about."""
    return {
        "uid": cut(request.uid),
        "resource": cut(request.resource.resource),
        "subresource": cut(request.sub_resource),
        "namespace": cut(request.namespace),
        "name": cut(request.name),
    }


def cut(text: str) -> str:
    """As much of a text as a line holds."""
    return text if len(text) <= LOGGED_CHARACTERS else text[:LOGGED_CHARACTERS] + "…"
