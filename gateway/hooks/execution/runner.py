"""Runs hooks: one process for each question, within the bounds that all hooks of this process share."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import ExitStack, asynccontextmanager
from enum import Enum
from pathlib import Path
from time import monotonic
from typing import Final

import structlog
from msgspec import Struct

from gateway.engine.verdicts import Answer
from gateway.hooks.execution.concurrency import NoSeatError, Seats
from gateway.hooks.execution.files import RunFiles
from gateway.hooks.execution.output import HookOutput, LogRoom
from gateway.hooks.execution.process import Ended, Fate, NotStartedError, run
from gateway.hooks.protocol import outcomes
from gateway.hooks.protocol.context import binding_context
from gateway.hooks.protocol.verdicts import HookFailedError, verdict
from gateway.policies.model import Phase
from gateway.transports.limits import TransportLimits
from gateway.transports.programs import clean_environment

_LOG: Final = structlog.get_logger(__name__)

CONFIGS: Final = 4
"""Hooks that print their configuration at the same time, beside those that judge: neither kind waits for the other. A
hundred scripts have done so within seconds, and each hook does so once at a time."""

CONFIG: Final = "--config"
"""The only argument that a hook is ever given."""

LARGE_BYTES: Final = 262_144
"""Of an answer that is read in a thread: below it reading takes less than some five milliseconds."""

CONFIG_BYTES: Final = 1_048_576
"""Of what it prints then, both outputs together: a configuration of a thousand bindings has some 300 KiB."""


class Question(Struct, frozen=True, kw_only=True):
    """What a hook is asked: which of its bindings, in which phase, about which ``document`` (see ``binding_context``),
    with which ``snapshots``. ``uid`` is that of the review, for the log; the hook never sees it.
    """

    binding: str
    phase: Phase
    document: bytes
    snapshots: bytes | None = None
    uid: str = ""


class RunEvent(Enum):
    """What becomes of one run of a hook."""

    STARTED = "started"
    """Its process runs."""

    ENDED = "ended"
    """It has ended by itself."""

    KILLED = "killed"
    """The gateway has ended it."""

    REFUSED = "refused"
    """None was started: too many of this hook wait."""


Report = Callable[[RunEvent], object]
"""Is told what becomes of a run. Must not raise."""


def _unreported(event: RunEvent) -> None:
    """Nobody wants to know."""


@asynccontextmanager
async def _files(context: bytes) -> AsyncIterator[RunFiles]:
    """RunFiles, whose end holds up nobody, however much the hook has put there."""
    with ExitStack() as stack:
        files = stack.enter_context(RunFiles(context))
        try:
            yield files
        finally:
            removal = stack.pop_all()
            if not files.remove_known():
                # Whoever is cancelled meanwhile leaves it to the thread.
                await asyncio.shield(asyncio.to_thread(removal.close))


class HookRunner:
    """Runs the hooks of one process.

    Args:
        limits: those whose names begin with ``hook_``.
    """

    def __init__(self, limits: TransportLimits) -> None:
        self.limits = limits
        self.seats = Seats(limits.hook_processes, limits.hook_waiting)
        self._configs = asyncio.Semaphore(CONFIGS)
        self._room = LogRoom()

    async def config(self, hook: Path) -> Ended:
        """What a hook prints with ``--config``; what it writes to its standard error is logged.

        Raises:
            NotStartedError: it cannot be started.
        """
        output = HookOutput(self._room, hook=str(hook), only_errors=True)
        async with self._configs:
            try:
                return await run(
                    [str(hook), CONFIG],
                    environment=clean_environment(),
                    directory=hook.parent,
                    seconds=self.limits.hook_config_seconds,
                    output_bytes=CONFIG_BYTES,
                    kept_bytes=CONFIG_BYTES,
                    heard=output.heard,
                )
            finally:
                output.ended()

    async def judge(self, hook: Path, question: Question, *, deadline: float, report: Report = _unreported) -> Answer:
        """A hook's verdict, or why there is none. Cancelled, it ends the hook and leaves nothing behind.

        Args:
            hook: its path, from the root.
            question: what it is asked.
            deadline: when it is ended, by the monotonic clock.
            report: is told what becomes of the run.
        """
        try:
            await self.seats.take(str(hook))
        except NoSeatError:
            report(RunEvent.REFUSED)
            return outcomes.too_many(str(hook), self.seats.waiting)
        try:
            seconds = deadline - monotonic()
            if seconds <= 0:
                return outcomes.waited(str(hook), self.seats.processes)
            return await self._ask(hook, question, seconds, report)
        finally:
            self.seats.give_back(str(hook))

    async def _ask(self, hook: Path, question: Question, seconds: float, report: Report) -> Answer:
        context = binding_context(question.binding, question.phase, question.document, question.snapshots)
        try:
            async with _files(context) as files:
                ended = await self._run(hook, question, files, seconds, report)
                if files.size() < LARGE_BYTES:
                    return self._verdict(hook, question, files, ended)
                return await asyncio.to_thread(self._verdict, hook, question, files, ended)
        except NotStartedError as error:
            return outcomes.not_started(str(error))
        except HookFailedError as error:
            _LOG.warning(
                "a hook has failed, so the request is denied",
                hook=str(hook),
                binding=question.binding,
                uid=question.uid,
                why=str(error),
            )
            return error.denial
        except OSError as error:
            return outcomes.unwritable(str(hook), error)

    async def _run(self, hook: Path, question: Question, files: RunFiles, seconds: float, report: Report) -> Ended:
        output = HookOutput(self._room, hook=str(hook), binding=question.binding, uid=question.uid)
        has_started, killed = False, True

        def started() -> None:
            nonlocal has_started
            has_started = True
            report(RunEvent.STARTED)

        try:
            ended = await run(
                [str(hook)],
                environment=clean_environment(files.variables),
                directory=hook.parent,
                seconds=seconds,
                output_bytes=self.limits.hook_output_bytes,
                kept_bytes=0,
                heard=output.heard,
                started=started,
            )
            killed = ended.fate is not Fate.ENDED
            return ended
        finally:
            output.ended()
            if has_started:
                report(RunEvent.KILLED if killed else RunEvent.ENDED)

    def _verdict(self, hook: Path, question: Question, files: RunFiles, ended: Ended) -> Answer:
        match ended.fate:
            case Fate.LATE:
                return outcomes.late(str(hook), question.binding)
            case Fate.FLOODED:
                return outcomes.flooded(str(hook), self.limits.hook_output_bytes)
            case _ if ended.code > 0:
                raise HookFailedError(f"it has ended with exit code {ended.code}")
            case _ if ended.code < 0:
                raise HookFailedError(f"it has been ended by signal {-ended.code}")
            case _:
                return verdict(
                    files.read(self.limits.hook_response_bytes),
                    hook=str(hook),
                    binding=question.binding,
                    phase=question.phase,
                )
