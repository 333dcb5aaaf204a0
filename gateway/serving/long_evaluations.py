"""Conditions that take long to evaluate, up to a second each, take turns in a thread.

What all conditions of a review may take at once is some milliseconds (``matching.conditions.AT_ONCE``). The rest is
evaluated here, one at a time, in a fair order between API servers and namespaces: so one namespace's large objects wait
for each other, and the event loop, which shares the interpreter with the thread, has half of its time at least. A turn
that waits for longer than its policy may take fails with ``CONDITION_ERROR``, and the failurePolicy applies.
"""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Final

from gateway.cel.program import Evaluation
from gateway.serving.fair_room import FairRoom
from gateway.serving.in_flight_shares import Flow
from gateway.serving.threads import in_thread
from gateway.telemetry.events import Events
from gateway.telemetry.table import LONG_EVALUATIONS

_COST: Final = 1.0
"""Of each in the order of those that wait: how long it takes is not known before."""


class LongEvaluations:
    """Those of one process. Create it in a running loop, or before.

    Args:
        events: counts them.
    """

    def __init__(self, events: Events) -> None:
        self._events = events
        self._turn = FairRoom(1)
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="conditions")

    def close(self) -> None:
        """Let none wait any more."""
        self._turn.close()

    async def finish(self, flow: Flow, evaluate: Callable[[], Evaluation]) -> Evaluation:
        """Evaluate in the flow's turn. If this is cancelled, an evaluation that has begun ends before the next one.

        Raises TimeoutError if it would wait, and is closed.
        """
        self._events.count(LONG_EVALUATIONS)
        async with self._turn.taken(flow, 1, cost=_COST):
            return await in_thread(evaluate, self._thread)
