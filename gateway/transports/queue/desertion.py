"""Lanes from which nobody takes any more, and what becomes of our asks there.

The last bridge of a lane goes: it was stopped or killed, its worker is gone, or claims something else now. What waits
there would wait for its whole deadline, although nobody comes. So after ``GRACE_SECONDS`` each ask that nobody has in
hand is taken out of the lane; then it goes by another one that fits it, or fails at once.

=============================================================  ========================================================
an ask's entry                                                 then
=============================================================  ========================================================
has been given to nobody, or was given back                    it is taken out
was given to somebody who has not renewed it for 3 s: is dead  it is taken out, if it may be repeated
the same, of a policy with side effects                        stays: it may have had its effect, and he may wake
is renewed: whoever has it was told to stop, and answers it    stays
is there no more: it is answered, expired, or lost with Redis  stays
=============================================================  ========================================================

Redis says what an entry is in the transaction that deletes it, so that nobody is given it in between. An entry that is
in nobody's hand by that word will never be worked on, so even one with side effects may go by another lane.
"""

from collections.abc import Iterable, Mapping, Sequence
from time import monotonic
from typing import TYPE_CHECKING, Any, Final

from redis import exceptions

from gateway.transports.queue.asks import OpenAsk
from gateway.transports.queue.commands import is_no_group
from gateway.transports.queue.lane import Lane
from gateway.transports.queue.link import Session
from gateway.transports.queue.names import GROUP, Names
from gateway.transports.queue.wire import DEAD_SECONDS

if TYPE_CHECKING:
    from gateway.redis import Command

GRACE_SECONDS: Final = 2.0
"""How long nobody may be in a lane before its asks are taken out: a bridge that is restarted where it was is back after
one, for the time of a process' start and a connection to its worker, and who is there is looked at once a second."""

MOST: Final = 1000
"""Asks that are looked at in one write, each second: it keeps Redis for a few milliseconds."""


class Desertion:
    """Watches the lanes of one gateway.

    Args:
        names: of the queue.
    """

    def __init__(self, names: Names) -> None:
        self._names = names
        self._since: dict[str, float] = {}

    def deserted(self, lanes: Mapping[str, Lane]) -> set[str]:
        """Those in which there has been nobody for so long that nobody is waited for. To be asked once a look."""
        now = monotonic()
        self._since = {name: self._since.get(name, now) for name, lane in lanes.items() if not lane.capacity}
        return {name for name, since in self._since.items() if now - since >= GRACE_SECONDS}

    async def taken_out(self, session: Session, asks: Iterable[OpenAsk]) -> list[OpenAsk]:
        """Take asks out of lanes that are deserted: those that were. Their entries are gone.

        Raises:
            Exception: as ``Session.execute``.
        """
        looked_at = [ask for ask in asks if ask.entry is not None][:MOST]
        looks = [self._look(ask) for ask in looked_at]
        if not looks:
            return []
        said = await session.execute(looks)
        free = [ask for ask, answer in zip(looked_at, said, strict=True) if _is_free(ask, answer)]
        if not free:
            return []
        looks = [self._look(ask) for ask in free]
        ends: list[Command] = [("XDEL", self._names.asks(ask.lane), ask.entry) for ask in free]
        acknowledged: list[Command] = [("XACK", self._names.asks(ask.lane), GROUP, ask.entry) for ask in free]
        *_, done = await session.execute([("MULTI",), *looks, *ends, *acknowledged, ("EXEC",)])
        if isinstance(done, BaseException):
            # Not allowed there, or no memory: then they wait for their deadlines.
            return []
        return [
            ask
            for ask, answer, number in zip(free, done[: len(free)], done[len(free) : 2 * len(free)], strict=True)
            if _is_free(ask, answer) and number == 1
        ]

    def _look(self, ask: OpenAsk) -> "Command":
        """Who has its entry, since when, how often given."""
        return ("XPENDING", self._names.asks(ask.lane), GROUP, ask.entry, ask.entry, 1)


def _is_free(ask: OpenAsk, answer: Any) -> bool:
    """Whether nobody has an ask in hand, by what Redis says to a look."""
    if isinstance(answer, exceptions.ResponseError):
        return is_no_group(answer)
    if not isinstance(answer, Sequence):
        return False
    if not answer:
        return True
    _, _, idle, times = answer[0]
    return times == 0 or (ask.may_repeat and idle > DEAD_SECONDS * 1000)
