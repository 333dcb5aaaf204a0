"""The order in which reviews that wait are judged: fair between flows, and newest first where a flow waits too long.

A flow is a path of names, such as (API server, namespace). The queue is start-time fair queueing (Goyal, Vin, Cheng
1996), at each level of the path, as API Priority and Fairness uses it between its flows:

    a name that begins to wait has the virtual time of its level as its tag
    the name with the lowest tag is next; its tag grows by the cost of what it got
    the virtual time grows by that cost, shared among all names

So a flow that asks for little is always next, whatever the others have waiting. A name without a waiting review is
forgotten when it is next: there is never much more state than reviews that wait.

Within a flow the oldest review is next, until one has waited for ``target`` seconds. From then on the flow has more
than can be judged in time, and the newest is next (adaptive LIFO): a queue in order of arrival would make all of them
late, so that each is judged when its client has given up. This way those that are judged are judged at once, and the
rest wait until they are refused; or until the flow has had no newer one for ``target`` seconds, or few wait.

It needs no bound of its own: a connection has one review at a time, and connections are bounded. Pure: no clock, no
loop.
"""

import heapq
import itertools
import math
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator, Sequence
from typing import Final, Generic, TypeVar

T = TypeVar("T")

_BACKLOG: Final = 64
"""A flow with more than so many that wait has more than can be judged, and has not only met a loop that stood still."""


def _always(_: object) -> bool:
    return True


class Waiting(Generic[T]):
    """An item in the queue, with the time at which it was pushed, and that until which it can wait: inf, for ever."""

    __slots__ = ("cost", "flow", "item", "since", "until")

    def __init__(self, item: T, flow: Sequence[Hashable], cost: float, since: float, until: float) -> None:
        self.item = item
        self.flow = flow
        self.cost = cost
        self.since = since
        self.until = until


class FairQueue(Generic[T]):
    """A queue of items.

    ``target``: seconds that the oldest of a flow waits before its newest is next. ``waiting``: all that wait.
    """

    def __init__(self, target: float) -> None:
        self._root: _Level[T] = _Level(target)
        self.waiting: set[Waiting[T]] = set()
        self._ends: list[tuple[float, int, Waiting[T]]] = []
        self._numbers = itertools.count()

    def __len__(self) -> int:
        return len(self.waiting)

    def push(self, waiting: Waiting[T]) -> None:
        """Let an item wait."""
        self._root.push(waiting, 0)
        self.waiting.add(waiting)
        if waiting.until < math.inf:
            heapq.heappush(self._ends, (waiting.until, next(self._numbers), waiting))

    def pop(self, now: float, fits: Callable[[T], bool] = _always, *, late: bool = True) -> Waiting[T] | None:
        """The next item that ``fits``; None: there is none. Of each flow only the next item is tried.

        ``late``: also one that has waited for longer than ``target`` in a flow that has had newer ones since.
        """
        popped = self._root.pop(now, fits, late) if self.waiting else None
        if popped is not None:
            self.waiting.discard(popped)
        return popped

    def remove(self, waiting: Waiting[T]) -> None:
        """Forget an item, which need not be there any more."""
        if waiting in self.waiting:
            self.waiting.discard(waiting)
            self._root.remove(waiting, 0)

    def overdue(self, now: float) -> Iterator[Waiting[T]]:
        """The items whose time to wait is over: each once, unless it is given another. They stay until removed."""
        while self._ends and (self._ends[0][0] <= now or self._ends[0][2] not in self.waiting):
            _, _, waiting = heapq.heappop(self._ends)
            if waiting in self.waiting:
                yield waiting

    def wait_longer(self, waiting: Waiting[T], until: float) -> None:
        """Let an overdue item wait until then, in its place."""
        waiting.until = until
        heapq.heappush(self._ends, (until, next(self._numbers), waiting))


class _Leaf(Generic[T]):
    """What one flow has waiting, in order of arrival."""

    def __init__(self, target: float) -> None:
        self._target = target
        self._items: OrderedDict[Waiting[T], None] = OrderedDict()
        self._newer_at = -math.inf

    def __len__(self) -> int:
        return len(self._items)

    def push(self, waiting: Waiting[T], depth: int) -> None:
        del depth
        self._items[waiting] = None

    def pop(self, now: float, fits: Callable[[T], bool], late: bool) -> Waiting[T] | None:  # noqa: FBT001 - private
        oldest = next(iter(self._items))
        waiting = oldest if now - oldest.since <= self._target else next(reversed(self._items))
        is_late = now - waiting.since > self._target
        rests = is_late and not late and len(self._items) > _BACKLOG and now - self._newer_at <= self._target
        if rests or not fits(waiting.item):
            return None
        if not is_late:
            self._newer_at = now
        del self._items[waiting]
        return waiting

    def remove(self, waiting: Waiting[T], depth: int) -> None:
        del depth
        del self._items[waiting]


class _Level(Generic[T]):
    """The names at one level. Each has one place in the heap, also when what it had waiting was removed."""

    def __init__(self, target: float) -> None:
        self._target = target
        self._names: dict[Hashable, _Level[T] | _Leaf[T]] = {}
        self._tags: list[tuple[float, int, Hashable]] = []
        self._virtual = 0.0
        self._numbers = itertools.count()
        self._size = 0

    def __len__(self) -> int:
        return self._size

    def push(self, waiting: Waiting[T], depth: int) -> None:
        name = waiting.flow[depth]
        below = self._names.get(name)
        if below is None:
            last = depth + 1 == len(waiting.flow)
            below = self._names[name] = _Leaf(self._target) if last else _Level(self._target)
            heapq.heappush(self._tags, (self._virtual, next(self._numbers), name))
        below.push(waiting, depth + 1)
        self._size += 1

    def pop(self, now: float, fits: Callable[[T], bool], late: bool) -> Waiting[T] | None:  # noqa: FBT001 - private
        popped, skipped = None, []
        while popped is None and self._tags:
            place = heapq.heappop(self._tags)
            tag, _, name = place
            below = self._names[name]
            if not below:
                del self._names[name]
                continue
            popped = below.pop(now, fits, late)
            if popped is None:
                skipped.append(place)
                continue
            self._size -= 1
            self._virtual = max(self._virtual + popped.cost / len(self._names), tag)
            heapq.heappush(self._tags, (tag + popped.cost, next(self._numbers), name))
        for place in skipped:
            heapq.heappush(self._tags, place)
        return popped

    def remove(self, waiting: Waiting[T], depth: int) -> None:
        self._names[waiting.flow[depth]].remove(waiting, depth + 1)
        self._size -= 1
