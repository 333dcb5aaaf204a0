"""A hook as a worker: it describes itself when its file is there or has changed, and is run for each ask.

* Its file is looked at every second, and around each run. As long as what is there is not what was described, verdicts
  are given and not kept: nobody knows whose they are. It is described anew at once.
* One that cannot be described any more is not asked: what would answer is nobody's configuration.
* It takes no settings, and claims nothing: it is sent all that is granted.
"""

import asyncio
from collections.abc import Callable
from dataclasses import replace
from typing import Final

import structlog

from gateway.engine.policy_call import PolicyCall
from gateway.engine.verdicts import Answer, Failure
from gateway.hooks.execution.description import HookChangingError, HookDescription, HookError, Stamp, describe, stamp
from gateway.hooks.execution.hook_file import hook_path
from gateway.hooks.execution.runner import HookRunner, Question, Report
from gateway.hooks.transport.call import HookAsking
from gateway.policies.model import HookTarget
from gateway.reasons import Reason
from gateway.telemetry.events import Events, NoEvents
from gateway.telemetry.labels import HOOK_EVENTS, WorkerEvent
from gateway.telemetry.table import HOOK_PROCESSES, WORKER_CONNECTIONS
from gateway.transports.agreement import Agreement
from gateway.transports.asked import Answered
from gateway.transports.descriptions import Description, Descriptions
from gateway.transports.events import count_worker_event
from gateway.transports.limits import TransportLimits
from gateway.transports.messages import PHASES, one_line
from gateway.transports.proto.admission.worker.v1 import worker_pb2 as pb

_LOG: Final = structlog.get_logger(__name__)

LOOK_SECONDS: Final = 1.0
"""How often a hook's file is looked at."""

AGAIN_SECONDS: Final = (1.0, 30.0)
"""First and longest pause before a hook whose file has not changed is described again; doubled each time."""

_NO_SETTINGS: Final = b"{}"


class HookWorker:
    """Asks one hook.

    Args:
        name: the Worker's name, for messages.
        target: where it is, and the objects of its snapshots.
        limits: see TransportLimits.
        events: hears of what happens.
        runner: runs the hooks of this process, within its bounds; None: one of its own.
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
        self.agreement = Agreement(limits.worker_settle_seconds)
        self.is_doubted = False
        """Whether its file is not the one that was described."""
        self.why = ""
        self.never = ""
        """Why it cannot be asked as long as this process lives: its file may be another one at any time."""
        self._path = hook_path(target.path, target.directory)
        self.target = str(self._path)
        self._objects = target.objects
        self._limits = limits
        self._events = events or NoEvents()
        self._runner = runner or HookRunner(limits)
        self._descriptions = Descriptions()
        self._known: HookDescription | None = None
        self._said: Description | None = None
        self._failed: Stamp | None = None
        self._pause = AGAIN_SECONDS[0]
        self._again = 0.0
        self._listeners: list[Callable[[], object]] = []
        self._open: set[HookAsking] = set()
        self._idle = asyncio.Event()
        self._idle.set()
        self._woken = asyncio.Event()
        self._is_closed = False
        self._events.worker_added(name, HOOK_EVENTS)
        self._events.set(HOOK_PROCESSES, 0, name)
        self._watching = asyncio.create_task(self._watch())

    # ---------------------------------------------------------------------------------------------- for asks

    def ask(
        self, ask: PolicyCall, answered: Answered, fits: frozenset[Description] | None = None
    ) -> Callable[[], object]:
        """See Asked. It claims nothing, so that any document fits, whatever it was described as."""
        del fits
        asking = HookAsking(self, ask, answered)
        self._open.add(asking)
        self._idle.clear()
        return asking.cancel

    async def judge(self, ask: PolicyCall, report: Report) -> Answer:
        """What the hook says to an ask; ``report`` is called with what becomes of its process."""
        known = self._known
        if known is None or self._is_closed:
            return Failure(reason=Reason.WORKER_UNAVAILABLE, message=self._why_not())
        policy = ask.policy
        binding = known.policies.get((policy.phase, policy.policy))
        if binding is None:
            return Failure(
                reason=Reason.CONFIGURATION,
                message=f"hook {self.target} has no {policy.phase} binding {policy.policy!r} any more; see what it "
                "prints with --config",
            )
        question = Question(
            binding=binding.name,
            phase=policy.phase,
            document=ask.document.content,
            snapshots=known.snapshots.get((policy.phase, binding.name)),
            uid=ask.uid,
        )
        was_described = self._is_described(known)
        answer = await self._runner.judge(self._path, question, deadline=ask.deadline, report=report)
        if isinstance(answer, Failure):
            return answer
        if was_described and self._is_described(known):
            return replace(answer, version=known.version)
        # Of which content this verdict is, nobody can tell.
        return replace(answer, reuse=0.0)

    @property
    def seats(self) -> int:
        """How many hooks run at the same time in this process."""
        return self._runner.seats.processes

    def left(self, asking: HookAsking) -> None:
        """Nothing of an ask is left."""
        self._open.discard(asking)
        if not self._open:
            self._idle.set()

    def count(self, event: WorkerEvent) -> None:
        """Something happened."""
        count_worker_event(self._events, self.name, event)

    def processes(self, change: int) -> None:
        """So many more processes run."""
        self._events.count(HOOK_PROCESSES, self.name, amount=change)

    # --------------------------------------------------------------------------------------------- its standing

    @property
    def live(self) -> tuple[Description, ...]:
        """See Introduced."""
        return () if self._said is None else (self._said,)

    def described(self) -> dict[Description, int]:
        """See Introduced."""
        return dict.fromkeys(self.live, 1)

    def all_with(self, description: Description) -> tuple["HookWorker", ...]:
        """See Introduced."""
        return (self,) if self._said is description else ()

    async def validate_settings(self, policy: str, settings: bytes) -> pb.ValidateSettingsResponse:
        """See SettingsJudge: a hook takes none."""
        del policy
        if settings == _NO_SETTINGS:
            return pb.ValidateSettingsResponse()
        refusal = pb.SettingsError(message="a hook takes no settings; remove them, or write them into the hook")
        return pb.ValidateSettingsResponse(errors=[refusal])

    def listen(self, listener: Callable[[], object]) -> None:
        """See Introduced."""
        self._listeners.append(listener)

    def unlisten(self, listener: Callable[[], object]) -> None:
        """See Introduced."""
        self._listeners.remove(listener)

    def _why_not(self) -> str:
        return self.why or f"hook {self.target} is not described yet"

    def _is_described(self, known: HookDescription) -> bool:
        """Whether the file is still the one that was described; if not, that is looked into."""
        if stamp(self._path) == known.stamp:
            return True
        self.is_doubted = True
        self._woken.set()
        return False

    # ------------------------------------------------------------------------------------------- its description

    async def _watch(self) -> None:
        """Describe it, and again whenever its file has changed, until cancelled."""
        while True:
            found = stamp(self._path)
            if self._is_due(found):
                await self._describe(found)
            try:
                async with asyncio.timeout(LOOK_SECONDS):
                    await self._woken.wait()
            except TimeoutError:
                pass
            self._woken.clear()

    def _is_due(self, found: Stamp | None) -> bool:
        if self._known is not None and self._known.stamp == found:
            return False
        if self.why and found == self._failed:
            return asyncio.get_running_loop().time() >= self._again
        self._pause = AGAIN_SECONDS[0]
        return True

    async def _describe(self, found: Stamp | None) -> None:
        self.is_doubted = self._known is not None
        try:
            known = await describe(self._path, self._objects, self._runner)
        except HookChangingError:
            return
        except HookError as error:
            self._lost(str(error), found)
        except Exception as error:  # noqa: BLE001 - logged, and tried again: nobody else would
            _LOG.exception("describing a hook failed inside the gateway", worker=self.name)
            self._lost(f"{type(error).__name__} in the gateway; see its log", found)
        else:
            self._found(known)

    def _found(self, known: HookDescription) -> None:
        was_lost = self._known is None
        self._known = known
        self._said = self._descriptions.of(_message(self.name, known).SerializeToString(deterministic=True))
        self.why, self._failed, self.is_doubted = "", None, False
        if was_lost:
            self._events.count(WORKER_CONNECTIONS, self.name)
            self.count(WorkerEvent.CONNECTED)
        self._tell()

    def _lost(self, why: str, found: Stamp | None) -> None:
        self.why, self._failed = one_line(why, 2 * self._limits.message_characters), found
        self._again = asyncio.get_running_loop().time() + self._pause
        self._pause = min(2 * self._pause, AGAIN_SECONDS[1])
        if self._known is not None:
            _LOG.warning("a hook is lost: it cannot be described any more", worker=self.name, why=self.why)
            self._known = self._said = None
            self._events.count(WORKER_CONNECTIONS, self.name, amount=-1)
            self.count(WorkerEvent.DISCONNECTED)
        self._tell()

    def _tell(self) -> None:
        for listener in tuple(self._listeners):
            listener()

    # --------------------------------------------------------------------------------------------------- end

    async def idle(self) -> None:
        """Return when nothing is open. Each ask has its deadline, so this ends."""
        while self._open:
            await self._idle.wait()

    async def close(self) -> None:
        """Break off what is open; afterwards no process of it is left."""
        self._is_closed = True
        self._watching.cancel()
        await asyncio.gather(
            self._watching, *(asking.break_off() for asking in tuple(self._open)), return_exceptions=True
        )
        if self._known is not None:
            self._events.count(WORKER_CONNECTIONS, self.name, amount=-1)
        self._events.worker_removed(self.name)


def _message(name: str, known: HookDescription) -> pb.DescribeResponse:
    phases: dict[str, list[pb.Phase]] = {}
    for phase, policy in known.policies:
        phases.setdefault(policy, []).append(PHASES[phase])
    return pb.DescribeResponse(
        worker=name,
        version=known.version,
        policies=[pb.PolicyDescription(name=policy, phases=sorted(phases[policy])) for policy in sorted(phases)],
    )
