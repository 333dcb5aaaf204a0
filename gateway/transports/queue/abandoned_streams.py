"""Request streams (lanes) that no bridge reads any more, and what happens to this gateway's calls in them.

A lane loses its last bridge when the bridge stops or dies, or when its worker is gone or changes its claims. A call
there would wait until its deadline. So after ``GRACE_SECONDS`` the gateway removes each call that no consumer is
working on. The call then goes to another lane that fits it, or fails at once.

======================================================  =============================================================
a call's entry                                          then
======================================================  =============================================================
was never delivered, or was given back                  it is removed
was delivered, and not renewed for 3 s: the consumer    it is removed if it may be repeated
is dead
the same for 5 s, of a policy with side effects         it is removed and fails: it may have had its effect
is renewed: its consumer is stopping, and answers it    it stays
does not exist: answered, expired, or lost with Redis   it stays
======================================================  =============================================================

The transaction that deletes an entry also reads its state, so Redis cannot deliver it in between. An entry without a
consumer at that moment is never handled, so even one with side effects may go to another lane. A call that may have had
its effect is not repeated. If its consumer was only slow, its answer is lost; a bridge that claims the entry would
cause the same.
"""

from collections.abc import Iterable, Mapping, Sequence
from enum import Enum, auto
from time import monotonic
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from redis import exceptions

from gateway.transports.queue.codec import DEAD_SECONDS, GONE_MS
from gateway.transports.queue.commands import is_no_group
from gateway.transports.queue.names import GROUP, Names
from gateway.transports.queue.open_calls import OpenCall
from gateway.transports.queue.request_stream import RequestStream
from gateway.transports.queue.session import Session

if TYPE_CHECKING:
    from gateway.redis.pipelines import Command

GRACE_SECONDS: Final = 2.0
"""How long a lane may have no bridge before its calls are removed. A bridge that restarts in place is back
within that: a process start, a connection to its worker, and at most a second until presences are read."""

IN_DOUBT_SECONDS: Final = GONE_MS / 1000
"""How long a call with side effects must not have been renewed: by then its consumer's presence has expired too."""

MOST: Final = 1000
"""Calls that are inspected in one write, each second: it occupies Redis for a few milliseconds."""


class RemovedCalls(NamedTuple):
    """Calls whose entries were deleted. ``free`` may be sent again; ``in_doubt`` may have had their effect."""

    free: list[OpenCall]
    in_doubt: list[OpenCall]


class _Hold(Enum):
    """Who holds a call's entry, by the pending entries of its consumer group."""

    NO_CONSUMER = auto()
    DEAD = auto()
    SOME_CONSUMER = auto()


class AbandonedStreams:
    """Finds abandoned lanes of one queue, and removes one gateway's calls from them.

    Args:
        names: of the queue.
    """

    def __init__(self, names: Names) -> None:
        self._names = names
        self._since: dict[str, float] = {}

    def abandoned(self, lanes: Mapping[str, RequestStream]) -> set[str]:
        """The lanes without a bridge for ``GRACE_SECONDS``. To be called after each reading of the presences."""
        now = monotonic()
        self._since = {name: self._since.get(name, now) for name, lane in lanes.items() if not lane.capacity}
        return {name for name, since in self._since.items() if now - since >= GRACE_SECONDS}

    async def remove(self, session: Session, calls: Iterable[OpenCall]) -> RemovedCalls:
        """Remove calls from abandoned lanes; return those that were removed.

        Raises:
            Exception: as ``Session.execute``.
        """
        inspected = [call for call in calls if call.entry is not None][:MOST]
        inspections = [self._inspection(call) for call in inspected]
        taken = RemovedCalls([], [])
        if not inspections:
            return taken
        answers = await session.execute(inspections)
        left = [
            call
            for call, answer in zip(inspected, answers, strict=True)
            if _hold(call, answer) is not _Hold.SOME_CONSUMER
        ]
        if not left:
            return taken
        inspections = [self._inspection(call) for call in left]
        ends: list[Command] = [("XDEL", self._names.calls(call.lane), call.entry) for call in left]
        acknowledged: list[Command] = [("XACK", self._names.calls(call.lane), GROUP, call.entry) for call in left]
        *_, done = await session.execute([("MULTI",), *inspections, *ends, *acknowledged, ("EXEC",)])
        if isinstance(done, BaseException):
            # An ACL forbids it, or Redis has no memory: then they wait for their deadlines.
            return taken
        for call, answer, number in zip(left, done[: len(left)], done[len(left) : 2 * len(left)], strict=True):
            hold = _hold(call, answer)
            if number == 1 and hold is not _Hold.SOME_CONSUMER:
                is_free = hold is _Hold.NO_CONSUMER or call.may_repeat
                (taken.free if is_free else taken.in_doubt).append(call)
        return taken

    def _inspection(self, call: OpenCall) -> "Command":
        """Its entry's consumer, idle time and number of deliveries."""
        return ("XPENDING", self._names.calls(call.lane), GROUP, call.entry, call.entry, 1)


def _hold(call: OpenCall, answer: Any) -> _Hold:
    """Who holds a call's entry. An unusable answer counts as a living consumer, so that nothing is removed."""
    if isinstance(answer, exceptions.ResponseError):
        return _Hold.NO_CONSUMER if is_no_group(answer) else _Hold.SOME_CONSUMER
    if not isinstance(answer, Sequence):
        return _Hold.SOME_CONSUMER
    if not answer:
        return _Hold.NO_CONSUMER
    _, _, idle, times = answer[0]
    if times == 0:
        return _Hold.NO_CONSUMER
    return _Hold.DEAD if idle > (DEAD_SECONDS if call.may_repeat else IN_DOUBT_SECONDS) * 1000 else _Hold.SOME_CONSUMER
