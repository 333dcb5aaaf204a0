"""Runs hooks: one process per call, within the limits that all hooks of the process share."""

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
from gateway.hooks.execution.concurrency import ConcurrencyLimiter, QueueFullError
from gateway.hooks.execution.config_run import CONFIG_RUNS, run_config
from gateway.hooks.execution.output import HookOutput, LineLimiter
from gateway.hooks.execution.process import run
from gateway.hooks.execution.results import ExitCause, NotStartedError, ProcessResult
from gateway.hooks.execution.run_files import RunFiles
from gateway.hooks.protocol import outcomes
from gateway.hooks.protocol.context import binding_context
from gateway.hooks.protocol.operations import Operation
from gateway.hooks.protocol.verdicts import HookFailedError, done_on_error, verdict
from gateway.policies.model import Phase
from gateway.transports.limits import TransportLimits
from gateway.transports.programs import clean_environment

_LOG: Final = structlog.get_logger(__name__)

LARGE_BYTES: Final = 262_144
"""Of an answer that is read in a thread: reading a smaller one takes less than some five milliseconds."""


class HookRequest(Struct, frozen=True, kw_only=True):
    """One call of a hook: of which binding, in which phase, with which ``document`` and ``snapshots`` (see
    ``binding_context``). ``uid`` is that of the review, for the log; the hook does not get it. The changes to objects
    that the hook requests are appended to ``operations``; None: a hook that requests some has failed. The hook finds
    ``traceparent`` and ``tracestate`` in the variables that OpenTelemetry names for them.
    """

    binding: str
    phase: Phase
    document: bytes
    snapshots: bytes | None = None
    uid: str = ""
    operations: list[Operation] | None = None
    traceparent: str = ""
    tracestate: str = ""

    @property
    def variables(self) -> dict[str, str]:
        """The environment variables with the trace context: "TRACEPARENT", "TRACESTATE"."""
        named = {"TRACEPARENT": self.traceparent, "TRACESTATE": self.tracestate}
        return {name: text for name, text in named.items() if text and self.traceparent}


class RunEvent(Enum):
    """What happens to one call of a hook."""

    STARTED = "started"
    """Its process has started."""

    ENDED = "ended"
    """Its process has exited."""

    KILLED = "killed"
    """The gateway has stopped its process."""

    REJECTED = "rejected"
    """No process was started: too many calls of this hook wait."""


OnEvent = Callable[[RunEvent], object]
"""Called with each event of a call. Must not raise."""


@asynccontextmanager
async def _run_files(context: bytes) -> AsyncIterator[RunFiles]:
    """RunFiles that are removed without blocking the event loop, however much the hook has left there."""
    with ExitStack() as stack:
        files = stack.enter_context(RunFiles(context))
        try:
            yield files
        finally:
            removal = stack.pop_all()
            if not files.remove_known():
                # Shielded: after a cancellation the thread finishes by itself.
                await asyncio.shield(asyncio.to_thread(removal.close))


class HookRunner:
    """Runs the hooks of one process.

    Args:
        limits: those whose names begin with ``hook_``.
    """

    def __init__(self, limits: TransportLimits) -> None:
        self.limits = limits
        self.concurrency = ConcurrencyLimiter(limits.hook_processes, limits.hook_waiting)
        self._config_runs = asyncio.Semaphore(CONFIG_RUNS)
        """Beside the limit of calls, so that neither kind of run delays the other."""
        self._lines = LineLimiter()

    async def config(self, hook: Path) -> bytes:
        """What a hook prints with ``--config``; its standard error is logged.

        Raises:
            NotStartedError, ConfigRunError: see ``run_config``.
        """
        output = HookOutput(self._lines, hook=str(hook), only_errors=True)
        async with self._config_runs:
            try:
                return await run_config(hook, seconds=self.limits.hook_config_seconds, on_output=output.write)
            finally:
                output.close()

    async def call(
        self, hook: Path, request: HookRequest, *, deadline: float, on_event: OnEvent = lambda _: None
    ) -> Answer:
        """Call a hook. Cancelled, it stops the hook and leaves nothing behind.

        Args:
            hook: its absolute path.
            request: what it is called with.
            deadline: when it is stopped, by the monotonic clock.
            on_event: called with what happens to its process.

        Returns:
            Its verdict, or a Failure.
        """
        try:
            await self.concurrency.acquire(str(hook))
        except QueueFullError:
            on_event(RunEvent.REJECTED)
            return outcomes.too_many(str(hook), self.concurrency.waiting)
        try:
            seconds = deadline - monotonic()
            if seconds <= 0:
                return outcomes.not_started_in_time(str(hook), self.concurrency.processes)
            return await self._call(hook, request, seconds, on_event)
        finally:
            self.concurrency.release(str(hook))

    async def _call(self, hook: Path, request: HookRequest, seconds: float, on_event: OnEvent) -> Answer:
        context = binding_context(request.binding, request.phase, request.document, request.snapshots)
        try:
            async with _run_files(context) as files:
                result = await self._run(hook, request, files, seconds, on_event)
                if files.size() < LARGE_BYTES:
                    return self._answer(hook, request, files, result)
                return await asyncio.to_thread(self._answer, hook, request, files, result)
        except NotStartedError as error:
            return outcomes.not_started(str(error))
        except HookFailedError as error:
            _LOG.warning(
                "hook failed; the request is denied",
                hook=str(hook),
                binding=request.binding,
                uid=request.uid,
                why=str(error),
            )
            return error.denial
        except OSError as error:
            return outcomes.unwritable(str(hook), error)

    async def _run(
        self, hook: Path, request: HookRequest, files: RunFiles, seconds: float, on_event: OnEvent
    ) -> ProcessResult:
        output = HookOutput(self._lines, hook=str(hook), binding=request.binding, uid=request.uid)
        has_started, is_killed = False, True

        def on_start() -> None:
            nonlocal has_started
            has_started = True
            on_event(RunEvent.STARTED)

        try:
            result = await run(
                [str(hook)],
                environment=clean_environment(files.variables | request.variables),
                directory=hook.parent,
                seconds=seconds,
                output_bytes=self.limits.hook_output_bytes,
                kept_bytes=0,
                on_output=output.write,
                on_start=on_start,
            )
            is_killed = result.cause is not ExitCause.EXITED
            return result
        finally:
            output.close()
            if has_started:
                on_event(RunEvent.KILLED if is_killed else RunEvent.ENDED)

    def _answer(self, hook: Path, request: HookRequest, files: RunFiles, result: ProcessResult) -> Answer:
        match result.cause:
            case ExitCause.TIMED_OUT:
                return outcomes.timed_out(str(hook), request.binding)
            case ExitCause.OUTPUT_LIMIT:
                return outcomes.too_much_output(str(hook), self.limits.hook_output_bytes)
            case _ if result.code:
                if request.operations is not None:
                    request.operations.extend(done_on_error(files.read_patches(self.limits.hook_response_bytes)))
                how = f"it exited with status {result.code}"
                raise HookFailedError(how if result.code > 0 else f"it was ended by signal {-result.code}")
            case _:
                return verdict(
                    files.read(self.limits.hook_response_bytes),
                    hook=str(hook),
                    binding=request.binding,
                    phase=request.phase,
                    operations=request.operations,
                )
