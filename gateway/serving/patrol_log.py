"""What the idempotence patrol tells: who does not leave his own result alone, and both patches.

A line is bounded, whatever workers write. It holds values, because without them nobody sees what goes on; those of a
Secret, and what the policies were not shown, as digests, of which equal ones are equal values.
"""

from collections.abc import Sequence
from typing import Any, Final

import msgspec
import structlog

from gateway.deciding import Call, Decision, Deny
from gateway.deciding.blame import digest, hides
from gateway.patching import Operation

_LOG: Final = structlog.get_logger(__name__)

LOGGED_OPERATIONS: Final = 20
"""How many operations of a patch a log line tells: whoever looks for a mistake needs the first few."""

LOGGED_CHARACTERS: Final = 500
"""How much of each: a path and a value of usual length. Two patches of 20 make 20 KB."""


class PatrolLog:
    """Writes the findings of a patrol as log lines.

    Args:
        key: of the digests.
    """

    def __init__(self, key: bytes) -> None:
        self._key = key

    def policy(self, decision: Decision, call: Call, again: Decision) -> None:
        """The policy of ``call``, put its own result, came to ``again``."""
        _LOG.warning(
            "a policy does not leave its own result alone: it is not idempotent",
            policy=call.policy.qualified_name,
            worker=call.policy.worker,
            version=call.version,
            first=self._told(decision, [call], call.changes),
            again=self._told(decision, again.calls, again.patch) + _denials(again),
            **_about(decision),
        )

    def chain(self, decision: Decision, again: Decision) -> None:
        """Policies that are stable, each by itself, came to ``again`` as a set."""
        _LOG.warning(
            "policies, each of which leaves its own result alone, change theirs as a set: they are not idempotent",
            policies=list(dict.fromkeys(call.policy.qualified_name for call in again.calls if _disturbs(call))),
            first=self._told(decision, decision.calls, decision.patch),
            again=self._told(decision, again.calls, again.patch) + _denials(again),
            **_about(decision),
        )

    def _told(self, decision: Decision, calls: Sequence[Call], operations: Sequence[Operation]) -> list[str]:
        lines = [
            _cut(self._line(each, hidden=hides(decision.request, calls, each)))
            for each in operations[:LOGGED_OPERATIONS]
        ]
        if len(operations) > LOGGED_OPERATIONS:
            lines.append(f"and {len(operations) - LOGGED_OPERATIONS} more")
        return lines

    def _line(self, operation: Operation, *, hidden: bool) -> str:
        if operation.op == "remove":
            return f"remove {operation.path}"
        if hidden:
            return f"{operation.op} {operation.path} = (a value with the digest {digest(operation.value, self._key)})"
        return f"{operation.op} {operation.path} = {msgspec.json.encode(operation.value).decode()}"


def _disturbs(call: Call) -> bool:
    return bool(call.changes) or (call.enforced and isinstance(call.answer, Deny))


def _denials(again: Decision) -> list[str]:
    return [_cut(f"denies: {call.answer.message}") for call in again.calls if isinstance(call.answer, Deny)]


def _about(decision: Decision) -> dict[str, Any]:
    request = decision.request
    return {
        "uid": _cut(request.uid),
        "resource": _cut(request.resource.resource),
        "subresource": _cut(request.sub_resource),
        "namespace": _cut(request.namespace),
        "name": _cut(request.name),
    }


def _cut(text: str) -> str:
    return text if len(text) <= LOGGED_CHARACTERS else text[:LOGGED_CHARACTERS] + "…"
