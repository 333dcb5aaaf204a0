"""One call of a hook: it waits for a process, is answered once, and stays open until its process is gone.

At its deadline it is answered, even if its process has not ended yet. Cancelled, it stops its process, unless the
policy has side effects: then the process continues, until the deadline at most.
"""

import asyncio
from time import monotonic
from typing import Final, Protocol

import structlog

from gateway.engine.policy_call import PolicyCall
from gateway.engine.verdicts import Answer
from gateway.hooks.execution.runner import OnEvent, RunEvent
from gateway.hooks.protocol import outcomes
from gateway.telemetry.labels import WorkerEvent
from gateway.transports.worker_channel import Answered

_LOG: Final = structlog.get_logger(__name__)

_LONGEST_SECONDS: Final = 86_400.0
"""The longest timer: no call takes a day."""


class CalledHook(Protocol):
    """The worker of a hook, as one of its calls uses it."""

    name: str
    target: str

    @property
    def processes(self) -> int:
        """How many hooks may run at the same time in this process."""

    async def run(self, call: PolicyCall, on_event: OnEvent) -> Answer:
        """Run the hook for a call; ``on_event`` is called with what happens to its process."""

    def closed(self, call: "HookCall") -> None:
        """The call is answered and has no process."""

    def count(self, event: WorkerEvent) -> None:
        """Count an event of the worker."""

    def count_processes(self, change: int) -> None:
        """Add to the number of running processes."""


class HookCall:
    """One call.

    Args:
        worker: the hook's.
        call: what the policy is called with.
        answered: called once with the answer, unless the call is cancelled.
    """

    def __init__(self, worker: CalledHook, call: PolicyCall, answered: Answered) -> None:
        self._worker = worker
        self._call = call
        self._answered: Answered | None = answered
        self._has_started = False
        seconds = min(max(call.deadline - monotonic(), 0.0), _LONGEST_SECONDS)
        self._timer = asyncio.get_running_loop().call_later(seconds, self._expire)
        self._task = asyncio.create_task(self._run())
        self._task.add_done_callback(self._close)

    def cancel(self) -> None:
        """The answer is not needed any more."""
        self._answered = None
        if self._call.cancellable or not self._has_started:
            self._task.cancel()

    async def abort(self) -> None:
        """Stop the process, side effects or not, and return when it is gone."""
        self._answered = None
        self._task.cancel()
        await asyncio.wait((self._task,))

    def _on_event(self, event: RunEvent) -> None:
        if event is RunEvent.REJECTED:
            self._worker.count(WorkerEvent.HOOK_REFUSED)
        elif event is RunEvent.STARTED:
            self._has_started = True
            self._worker.count(WorkerEvent.HOOK_RUN)
            self._worker.count_processes(1)
        else:
            self._worker.count_processes(-1)
            if event is RunEvent.KILLED:
                self._worker.count(WorkerEvent.HOOK_KILLED)

    # ------------------------------------------------------------------------------------------------- its end

    async def _run(self) -> None:
        try:
            answer = await self._worker.run(self._call, self._on_event)
        except Exception as error:  # noqa: BLE001 - whatever it is, the review waits for an answer
            _LOG.exception("calling a hook failed inside the gateway", worker=self._worker.name, uid=self._call.uid)
            answer = outcomes.internal(self._worker.target, error)
        self._answer(answer)

    def _expire(self) -> None:
        if self._has_started:
            # The runner's own time limit ends at the same moment and stops the process.
            self._answer(outcomes.timed_out(self._worker.target, self._call.policy.policy))
        else:
            self._answer(outcomes.not_started_in_time(self._worker.target, self._worker.processes))
            self._task.cancel()

    def _answer(self, answer: Answer) -> None:
        answered, self._answered = self._answered, None
        if answered is not None:
            answered(self._call, answer)

    def _close(self, _task: object) -> None:
        self._timer.cancel()
        self._worker.closed(self)
