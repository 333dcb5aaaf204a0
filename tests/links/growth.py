"""What processes hold after a fault and did not before: a pool grows some times, a leak each time.

So a fault after which there is more of a kind than ever before is repeated, until a repetition leaves no more of it. A
leak of one for each fault cannot pass; a pool does, and so does what ends later on a slow machine. For bytes, and for
objects of all kinds together, there is a limit instead.
"""

import asyncio
from collections import Counter
from time import monotonic

REPETITIONS = 6
"""What was no leak grew twice in succession at most."""

SETTLE_SECONDS = 2
"""What a fault leaves may take this long to end; beyond, the fault is repeated."""

SLACK = {"objects": 3_000, "memory": 16 * 2**20}
"""What a process may hold more than at the start, after all faults: imported modules, caches, free memory."""

POOLED = 8
"""The same of a kind of task or descriptor, where nothing is repeated: connections for the reviews of a link."""

_POLL_SECONDS = 0.05
"""Looking stops the process for some 10 ms."""


class Growth:
    """Of several processes. ``start`` looks at them for the first time, through observers.

    Args:
        kinds: how the names of those begin that are looked at, such as tasks; by default all.
        settle_seconds: what ends so long after a fault is not left behind.
    """

    def __init__(self, *kinds, settle_seconds=SETTLE_SECONDS):
        self._kinds = kinds or ("",)
        self._settle_seconds = settle_seconds
        self._first = {}
        self._most = {}

    async def start(self, *observers):
        """What they hold now is no growth."""
        for observer in observers:
            self._first[observer] = self._most[observer] = await asyncio.to_thread(observer.held) + Counter(SLACK)

    async def repeated(self, once):
        """Await ``once()``, and again while each time has left more of the same kind; gives its results."""
        results, growing = [], None
        for _ in range(REPETITIONS):
            results.append(await once())
            grown, held = await _grown(self._most, self._settle_seconds, self._is_growth)
            assert not SLACK.keys() & grown, f"left behind by all faults, beyond {SLACK}: {grown}"
            for observer, now in held.items():
                self._most[observer] |= now
            growing = grown if growing is None else growing & grown
            if not growing:
                return results
        raise AssertionError(f"left behind by each of {REPETITIONS}: {growing}")

    def _is_growth(self, kind, more):
        return more > 0 and kind.startswith(self._kinds)

    async def settled(self, seconds):
        """Wait, so long at most, until there are not many more tasks and descriptors than at the start."""
        grown, _ = await _grown(self._first, seconds, _is_many)
        assert not grown, f"left behind: {grown}"


async def _grown(most, seconds, is_growth):
    """Of which kinds there is more, and still after so many seconds; and what is held then, by observer."""
    ends = monotonic() + seconds
    while True:
        held = {observer: await asyncio.to_thread(observer.held) for observer in most}
        more = sum((now - most[observer] for observer, now in held.items()), Counter())
        grown = Counter({kind: number for kind, number in more.items() if is_growth(kind, number)})
        if not grown or monotonic() > ends:
            return grown, held
        await asyncio.sleep(_POLL_SECONDS)


def _is_many(kind, more):
    """Whether it is no pool; objects of one kind are in caches, too."""
    return kind in SLACK or (more > POOLED and not kind.startswith("object "))
