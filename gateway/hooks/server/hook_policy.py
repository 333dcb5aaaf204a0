"""A binding of a hook as a policy of the worker: one call runs the hook with its snapshots, and makes the changes to
objects that it requests, before it is answered.

* Snapshots of the cluster change without the hook's version, and so does what a change finds. Such a verdict is never
  reused.
* In a dry run nothing is changed: "the webhook ... must not have side effects" then, whatever the hook requests.
  shell-operator makes the changes all the same.
"""

from pathlib import Path
from time import monotonic
from typing import Final

import structlog

from admission_worker import NO_STORE, Allow, Answer, Deny, Failure, Request, tracing
from admission_worker.answers import CacheHint
from admission_worker.changes import Change, ChangeKind  # passes the patch's bytes on; `patch` would parse them
from gateway.engine import verdicts
from gateway.hooks.configuration.model import AdmissionBinding
from gateway.hooks.execution.description import HookDescription
from gateway.hooks.execution.hook_file import stamp
from gateway.hooks.execution.runner import HookRequest, HookRunner, RunEvent
from gateway.hooks.execution.snapshots import SnapshotError
from gateway.hooks.protocol import outcomes
from gateway.hooks.server.hook_cluster import HookCluster
from gateway.hooks.server.object_patcher import PatchError
from gateway.telemetry.events import Events
from gateway.telemetry.table import HOOK_RUNS, RUN_RESULTS

_LOG: Final = structlog.get_logger(__name__)

LONGEST_SECONDS: Final = 30.0
"""For one call: kube-apiserver's longest timeout. The call's own deadline cancels it before."""


class HookPolicy:
    """Answers the calls of one binding.

    Args:
        path: the hook's.
        hook: as it was described.
        binding: one of its admission bindings.
        runner: runs the hook.
        cluster: for snapshots and changes; None: snapshots are those of the description, and there are no changes.
        events: counts runs.
    """

    def __init__(
        self,
        path: Path,
        hook: HookDescription,
        binding: AdmissionBinding,
        runner: HookRunner,
        cluster: HookCluster | None,
        events: Events,
    ) -> None:
        self._path = path
        self._hook = hook
        self._binding = binding
        self._runner = runner
        self._cluster = cluster
        self._events = events
        for result in RUN_RESULTS:
            events.count(HOOK_RUNS, str(path), result, amount=0)

    async def answer(self, request: Request) -> Answer:
        """Run the hook for a request."""
        was_current = self._is_current()
        try:
            snapshots = await self._snapshots()
        except SnapshotError as error:
            return Failure(message=str(error))
        trace = tracing.current()
        call = HookRequest(
            binding=self._binding.name,
            phase=self._binding.phase,
            document=request.raw,
            snapshots=snapshots,
            uid=request.uid,
            operations=None if self._cluster is None else [],
            traceparent=trace.traceparent,
            tracestate=trace.tracestate,
        )
        answer = await self._runner.call(self._path, call, deadline=monotonic() + LONGEST_SECONDS, on_event=self._count)
        if not was_current or not self._is_current():
            return Failure(message=f"hook {self._path} has changed; the worker stops, to be started again")
        if self._cluster is not None and call.operations and not request.dry_run:
            try:
                await self._cluster.patcher.apply(call.operations)
            except PatchError as error:
                self._log_failed(request.uid, str(error))
                answer = outcomes.HOOK_FAILED
        is_changing = self._cluster is not None and self._binding.snapshots_from is not None
        return _sdk_answer(answer, NO_STORE if call.operations or is_changing else None)

    def _is_current(self) -> bool:
        return stamp(self._path) == self._hook.stamp

    async def _snapshots(self) -> bytes | None:
        if self._cluster is None:
            return self._hook.snapshots.get((self._binding.phase, self._binding.name))
        return await self._cluster.snapshots.text(self._path, self._binding)

    def _log_failed(self, uid: str, why: str) -> None:
        _LOG.warning(
            "hook failed; the request is denied", hook=str(self._path), binding=self._binding.name, uid=uid, why=why
        )

    def _count(self, event: RunEvent) -> None:
        if event is not RunEvent.STARTED:
            self._events.count(HOOK_RUNS, str(self._path), event.value)


def _sdk_answer(answer: verdicts.Answer, cache: CacheHint | None) -> Answer:
    """The answer in the SDK's types."""
    match answer:
        case verdicts.Allow():
            change = None
            if answer.change is not None:
                change = Change(kind=ChangeKind.JSON_PATCH, content=answer.change.content)
            return Allow(change=change, warnings=answer.warnings, cache=cache)
        case verdicts.Deny():
            return Deny(
                message=answer.message, code=answer.code, reason=answer.reason, warnings=answer.warnings, cache=cache
            )
        case verdicts.Failure():
            return Failure(message=f"{answer.reason}: {answer.message}")
