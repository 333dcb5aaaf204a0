"""A hook as a worker: it describes itself by ``--config``, and each call runs it once.

* Its file is polled every second, and checked before and after each call. While the file is not the described one,
  verdicts are not reused, because it is unknown which content gave them. The hook is described again at once.
* A hook that cannot be described is not called: its configuration is unknown.
* It accepts no settings and claims nothing: it is sent all that its policies may see.
"""

import asyncio
from collections.abc import Callable
from typing import Final

from msgspec.structs import replace

from gateway.engine.policy_call import PolicyCall
from gateway.engine.verdicts import Answer, Failure
from gateway.hooks.execution.description import HookDescription
from gateway.hooks.execution.hook_file import hook_path
from gateway.hooks.execution.runner import HookRequest, HookRunner, OnEvent
from gateway.hooks.transport.call import HookCall
from gateway.hooks.transport.description_watch import DescriptionWatch
from gateway.policies.workers.targets import HookTarget
from gateway.reasons import Reason
from gateway.telemetry.events import Events, NoEvents
from gateway.telemetry.labels import HOOK_EVENTS, WorkerEvent
from gateway.telemetry.table import HOOK_PROCESSES, WORKER_CONNECTIONS
from gateway.transports.descriptions import Description, Descriptions
from gateway.transports.limits import TransportLimits
from gateway.transports.messages import PHASES
from gateway.transports.proto.admission.worker.v1 import worker_pb2 as pb
from gateway.transports.version_skew import VersionSkew
from gateway.transports.worker_channel import Answered, count_worker_event

_NO_SETTINGS: Final = b"{}"


class HookWorker:
    """Calls one hook.

    Args:
        name: the Worker's name, for messages.
        target: the hook's path, and the objects of its snapshots.
        limits: see TransportLimits.
        events: counts what happens.
        runner: runs the hooks of this process, within its limits; None: one of its own.
    """

    def __init__(
        self,
        name: str,
        target: HookTarget,
        limits: TransportLimits,
        *,
        events: Events | None = None,
        runner: HookRunner | None = None,
    ) -> None:
        self.name = name
        self.version_skew = VersionSkew(limits.worker_settle_seconds)
        self.never = ""
        """Always empty: a hook that cannot be called may be replaced at any time."""
        self._path = hook_path(target.path, target.directory)
        self.target = str(self._path)
        self._events = events or NoEvents()
        self._runner = runner or HookRunner(limits)
        self._descriptions = Descriptions()
        self._description: Description | None = None
        self._listeners: list[Callable[[], object]] = []
        self._open: set[HookCall] = set()
        self._idle = asyncio.Event()
        self._idle.set()
        self._is_closed = False
        self._events.worker_added(name, HOOK_EVENTS)
        self._events.set(HOOK_PROCESSES, 0, name)
        self._watch = DescriptionWatch(name, self._path, target.objects, self._runner, self._changed)

    # --------------------------------------------------------------------------------------------------- calls

    def call(
        self, policy_call: PolicyCall, answered: Answered, fits: frozenset[Description] | None = None
    ) -> Callable[[], object]:
        """See Called. A hook claims nothing, so any document fits, whatever its description is."""
        del fits
        call = HookCall(self, policy_call, answered)
        self._open.add(call)
        self._idle.clear()
        return call.cancel

    async def run(self, call: PolicyCall, on_event: OnEvent) -> Answer:
        """Run the hook for a call; ``on_event`` is called with what happens to its process."""
        described = self._watch.description
        if described is None or self._is_closed:
            why = self.why or f"hook {self.target} is not described yet"
            return Failure(reason=Reason.WORKER_UNAVAILABLE, message=why)
        policy = call.policy
        binding = described.policies.get((policy.phase, policy.policy))
        if binding is None:
            return Failure(
                reason=Reason.CONFIGURATION,
                message=f"hook {self.target} has no {policy.phase} binding {policy.policy!r} any more; see what it "
                "prints with --config",
            )
        request = HookRequest(
            binding=binding.name,
            phase=policy.phase,
            document=call.document.content,
            snapshots=described.snapshots.get((policy.phase, binding.name)),
            uid=call.uid,
            traceparent=call.traceparent,
            tracestate=call.tracestate,
        )
        was_current = self._watch.is_current(described)
        answer = await self._runner.call(self._path, request, deadline=call.deadline, on_event=on_event)
        if isinstance(answer, Failure):
            return answer
        if was_current and self._watch.is_current(described):
            return replace(answer, version=described.version)
        # It is unknown which content of the file gave this verdict.
        return replace(answer, reuse=0.0)

    @property
    def processes(self) -> int:
        """How many hooks may run at the same time in this process."""
        return self._runner.concurrency.processes

    def closed(self, call: HookCall) -> None:
        """The call is answered and has no process."""
        self._open.discard(call)
        if not self._open:
            self._idle.set()

    def count(self, event: WorkerEvent) -> None:
        """Count an event."""
        count_worker_event(self._events, self.name, event)

    def count_processes(self, change: int) -> None:
        """Add to the number of running processes."""
        self._events.count(HOOK_PROCESSES, self.name, amount=change)

    # --------------------------------------------------------------------------------------------- description

    @property
    def why(self) -> str:
        """Why it cannot be called; empty if it can."""
        return self._watch.why

    @property
    def is_doubted(self) -> bool:
        """Whether its file is not the described one."""
        return self._watch.is_outdated

    @property
    def live(self) -> tuple[Description, ...]:
        """See Introduced."""
        return () if self._description is None else (self._description,)

    def described(self) -> dict[Description, int]:
        """See Introduced."""
        return dict.fromkeys(self.live, 1)

    def all_with(self, description: Description) -> tuple["HookWorker", ...]:
        """See Introduced."""
        return (self,) if self._description is description else ()

    async def validate_settings(self, policy: str, settings: bytes) -> pb.ValidateSettingsResponse:
        """See SettingsJudge: a hook accepts none."""
        del policy
        if settings == _NO_SETTINGS:
            return pb.ValidateSettingsResponse()
        error = pb.SettingsError(message="a hook accepts no settings; remove them, or write them into the hook")
        return pb.ValidateSettingsResponse(errors=[error])

    def listen(self, listener: Callable[[], object]) -> None:
        """See Introduced."""
        self._listeners.append(listener)

    def unlisten(self, listener: Callable[[], object]) -> None:
        """See Introduced."""
        self._listeners.remove(listener)

    def _changed(self) -> None:
        """Take over what the watch has found, and report it."""
        was_described, described = self._description is not None, self._watch.description
        if described is None:
            self._description = None
        else:
            message = _message(self.name, described)
            self._description = self._descriptions.of(message.SerializeToString(deterministic=True))
        is_described = described is not None
        if is_described is not was_described:
            self._events.count(WORKER_CONNECTIONS, self.name, amount=1 if is_described else -1)
            self.count(WorkerEvent.CONNECTED if is_described else WorkerEvent.DISCONNECTED)
        for listener in tuple(self._listeners):
            listener()

    # --------------------------------------------------------------------------------------------------- end

    async def idle(self) -> None:
        """Return when no call is open. Each call has its deadline, so this ends."""
        while self._open:
            await self._idle.wait()

    async def close(self) -> None:
        """Abort the open calls; afterwards there is no process of this worker."""
        self._is_closed = True
        await asyncio.gather(self._watch.close(), *(call.abort() for call in tuple(self._open)), return_exceptions=True)
        if self._description is not None:
            self._events.count(WORKER_CONNECTIONS, self.name, amount=-1)
        self._events.worker_removed(self.name)


def _message(name: str, described: HookDescription) -> pb.DescribeResponse:
    phases: dict[str, list[pb.Phase]] = {}
    for phase, policy in described.policies:
        phases.setdefault(policy, []).append(PHASES[phase])
    return pb.DescribeResponse(
        worker=name,
        version=described.version,
        policies=[pb.PolicyDescription(name=policy, phases=sorted(phases[policy])) for policy in sorted(phases)],
    )
