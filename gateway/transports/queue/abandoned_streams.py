"""Lanes from which nobody takes any more, and what becomes of our calls there.

The last bridge of a lane goes: it was stopped or killed, its worker is gone, or claims something else now. What waits
there would wait for its whole deadline, although nobody comes. So after ``GRACE_SECONDS`` each call that nobody has in
hand is taken out of the lane; then it goes by another one that fits it, or fails at once.

=============================================================  ========================================================
a call's entry                                                 then
=============================================================  ========================================================
has been given to nobody, or was given back                    it is taken out
was given to somebody who has not renewed it for 3 s: is dead  it is taken out, if it may be repeated
the same for 5 s, of a policy with side effects                it is taken out and fails: it may have had its effect
is renewed: whoever has it was told to stop, and answers it    stays
is there no more: it is answered, expired, or lost with Redis  stays
=============================================================  ========================================================

Redis says what an entry is in the transaction that deletes it, so that nobody is given it in between. An entry that is
in nobody's hand by that word will never be worked on, so even one with side effects may go by another lane. One that
may have had its effect goes nowhere: to fail it early costs at most an answer of somebody who was only slow, as a
bridge that lives would have cost it by claiming it.
"""

from collections.abc import Iterable, Mapping, Sequence
from enum import Enum, auto
from time import monotonic
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from redis import exceptions

from gateway.transports.queue.commands import is_no_group
from gateway.transports.queue.names import GROUP, Names
from gateway.transports.queue.open_calls import OpenCall
from gateway.transports.queue.request_stream import RequestStream
from gateway.transports.queue.session import Session
from gateway.transports.queue.wire import DEAD_SECONDS, GONE_MS

if TYPE_CHECKING:
    from gateway.redis.pipelines import Command

GRACE_SECONDS: Final = 2.0
"""How long a lane may have no bridge before its calls are removed: a bridge that is restarted in place is back after
one, for the time of a process' start and a connection to its worker, and who is there is looked at once a second."""

IN_DOUBT_SECONDS: Final = GONE_MS / 1000
"""How long a call with side effects must not have been renewed: whoever has it is gone for everybody then."""

MOST: Final = 1000
"""Calls that are looked at in one write, each second: it keeps Redis for a few milliseconds."""


class RemovedCalls(NamedTuple):
    """Calls whose entries are gone. ``free``: nobody had them in hand. ``in_doubt``: they may have had their effect."""

    free: list[OpenCall]
    in_doubt: list[OpenCall]


class _Hold(Enum):
    """In whose hand a call is, by what Redis says to a look."""

    NO_CONSUMER = auto()
    DEAD = auto()
    SOME_CONSUMER = auto()


class AbandonedStreams:
    """Watches the lanes of one gateway.

    Args:
        names: of the queue.
    """

    def __init__(self, names: Names) -> None:
        self._names = names
        self._since: dict[str, float] = {}

    def abandoned(self, lanes: Mapping[str, RequestStream]) -> set[str]:
        """Those in which there has been nobody for so long that nobody is waited for. To be called once a look."""
        now = monotonic()
        self._since = {name: self._since.get(name, now) for name, lane in lanes.items() if not lane.capacity}
        return {name for name, since in self._since.items() if now - since >= GRACE_SECONDS}

    async def taken_out(self, session: Session, calls: Iterable[OpenCall]) -> RemovedCalls:
        """Take calls out of lanes that are deserted: those that were.

        Raises:
            Exception: as ``Session.execute``.
        """
        looked_at = [call for call in calls if call.entry is not None][:MOST]
        looks = [self._look(call) for call in looked_at]
        taken = RemovedCalls([], [])
        if not looks:
            return taken
        said = await session.execute(looks)
        left = [
            call for call, answer in zip(looked_at, said, strict=True) if _hold(call, answer) is not _Hold.SOME_CONSUMER
        ]
        if not left:
            return taken
        looks = [self._look(call) for call in left]
        ends: list[Command] = [("XDEL", self._names.calls(call.lane), call.entry) for call in left]
        acknowledged: list[Command] = [("XACK", self._names.calls(call.lane), GROUP, call.entry) for call in left]
        *_, done = await session.execute([("MULTI",), *looks, *ends, *acknowledged, ("EXEC",)])
        if isinstance(done, BaseException):
            # Not allowed there, or no memory: then they wait for their deadlines.
            return taken
        for call, answer, number in zip(left, done[: len(left)], done[len(left) : 2 * len(left)], strict=True):
            hold = _hold(call, answer)
            if number == 1 and hold is not _Hold.SOME_CONSUMER:
                is_free = hold is _Hold.NO_CONSUMER or call.may_repeat
                (taken.free if is_free else taken.in_doubt).append(call)
        return taken

    def _look(self, call: OpenCall) -> "Command":
        """Who has its entry, since when, how often given."""
        return ("XPENDING", self._names.calls(call.lane), GROUP, call.entry, call.entry, 1)


def _hold(call: OpenCall, answer: Any) -> _Hold:
    """In whose hand a call is; where Redis' answer says nothing of it, somebody's."""
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
