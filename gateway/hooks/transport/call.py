"""One ask to a hook: it waits for a process, is answered once, and is open until nothing of its process is left.

At its deadline it is answered, whatever its process does; ending that takes a moment longer. Cancelled, it ends its
process, unless the policy has side effects: then the process goes on, until the deadline at most.
"""

import asyncio
from time import monotonic
from typing import Final, Protocol

import structlog

from gateway.engine.policy_call import PolicyCall
from gateway.engine.verdicts import Answer
from gateway.hooks.execution.runner import Report, RunEvent
from gateway.hooks.protocol import outcomes
from gateway.telemetry.labels import WorkerEvent
from gateway.transports.asked import Answered

_LOG: Final = structlog.get_logger(__name__)

_LONGEST_SECONDS: Final = 86_400.0
"""As far as a timer reaches: a day is longer than any ask."""


class Hook(Protocol):
    """The worker that is asked, as one ask to it sees it."""

    name: str
    target: str

    @property
    def seats(self) -> int:
        """How many hooks run at the same time in this process."""

    async def judge(self, ask: PolicyCall, report: Report) -> Answer:
        """What the hook says to an ask; ``report`` is called with what becomes of its process."""

    def left(self, asking: "HookAsking") -> None:
        """Nothing of an ask is left."""

    def count(self, event: WorkerEvent) -> None:
        """Something happened."""

    def processes(self, change: int) -> None:
        """So many more processes run."""


class HookAsking:
    """One ask.

    Args:
        worker: whose.
        ask: the question.
        answered: called once with the answer, unless it is cancelled.
    """

    def __init__(self, worker: Hook, ask: PolicyCall, answered: Answered) -> None:
        self._worker = worker
        self._ask = ask
        self._answered: Answered | None = answered
        self._has_started = False
        left = min(max(ask.deadline - monotonic(), 0.0), _LONGEST_SECONDS)
        self._alarm = asyncio.get_running_loop().call_later(left, self._late)
        self._task = asyncio.create_task(self._judge())
        self._task.add_done_callback(self._ended)

    def cancel(self) -> None:
        """Nobody waits any more."""
        self._answered = None
        if self._ask.cancellable or not self._has_started:
            self._task.cancel()

    async def break_off(self) -> None:
        """End it, side effects or not, and return when nothing of it is left."""
        self._answered = None
        self._task.cancel()
        await asyncio.wait((self._task,))

    def _report(self, event: RunEvent) -> None:
        if event is RunEvent.REFUSED:
            self._worker.count(WorkerEvent.HOOK_REFUSED)
        elif event is RunEvent.STARTED:
            self._has_started = True
            self._worker.count(WorkerEvent.HOOK_RUN)
            self._worker.processes(1)
        else:
            self._worker.processes(-1)
            if event is RunEvent.KILLED:
                self._worker.count(WorkerEvent.HOOK_KILLED)

    # ------------------------------------------------------------------------------------------------- its end

    async def _judge(self) -> None:
        try:
            answer = await self._worker.judge(self._ask, self._report)
        except Exception as error:  # noqa: BLE001 - whatever it is, somebody waits for an answer
            _LOG.exception("asking a hook failed inside the gateway", worker=self._worker.name, uid=self._ask.uid)
            answer = outcomes.internal(self._worker.target, error)
        self._tell(answer)

    def _late(self) -> None:
        if self._has_started:
            # The process' own limit is this very moment: it is being ended.
            self._tell(outcomes.late(self._worker.target, self._ask.policy.policy))
        else:
            self._tell(outcomes.waited(self._worker.target, self._worker.seats))
            self._task.cancel()

    def _tell(self, answer: Answer) -> None:
        answered, self._answered = self._answered, None
        if answered is not None:
            answered(self._ask, answer)

    def _ended(self, _task: object) -> None:
        self._alarm.cancel()
        self._worker.left(self)
