"""Runs a hook with ``--config``, as shell-operator does, to get its configuration."""

from pathlib import Path
from typing import Final

from gateway.hooks.execution.process import OnOutput, run
from gateway.hooks.execution.results import ExitCause, ProcessResult
from gateway.policies.field_errors import one_line
from gateway.transports.programs import clean_environment

CONFIG_BYTES: Final = 1_048_576
"""Of both outputs together: a configuration of a thousand bindings has some 300 KiB."""

CONFIG_RUNS: Final = 4
"""Hooks that print their configuration at the same time: a hundred scripts have done so within seconds, and the load is
no more than a small machine bears beside its work."""

_SHOWN_BYTES: Final = 500
"""Of the end of stderr, in the error of a hook that failed."""

_EXPECTED: Final = "a hook that is called with --config prints its configuration and exits"


class ConfigRunError(Exception):
    """A hook did not print a configuration. ``str(error)`` says why, and what to do, after the hook's name."""


async def run_config(hook: Path, *, seconds: float, on_output: OnOutput | None = None) -> bytes:
    """What a hook prints with ``--config``.

    Args:
        hook: its absolute path.
        seconds: the time limit.
        on_output: see ``process.run``.

    Raises:
        NotStartedError: it cannot be started.
        ConfigRunError: it fails, or exceeds a limit.
    """
    result = await run(
        [str(hook), "--config"],
        environment=clean_environment(),
        directory=hook.parent,
        seconds=seconds,
        output_bytes=CONFIG_BYTES,
        kept_bytes=CONFIG_BYTES,
        on_output=on_output,
    )
    if result.cause is ExitCause.EXITED and result.code == 0:
        return result.stdout
    stderr = one_line(result.stderr[-_SHOWN_BYTES:].decode(errors="replace").strip())
    raise ConfigRunError(_failure(result, seconds) + (f"; it wrote to stderr: {stderr}" if stderr else ""))


def _failure(result: ProcessResult, seconds: float) -> str:
    match result.cause:
        case ExitCause.TIMED_OUT:
            return f"did not print its configuration within {seconds:g} s and was killed; {_EXPECTED}"
        case ExitCause.OUTPUT_LIMIT:
            return f"wrote more than {CONFIG_BYTES} bytes and was killed; {_EXPECTED}"
    how = f"was ended by signal {-result.code}" if result.code < 0 else f"exited with status {result.code}"
    return f"{how} when called with --config; run it by hand, and correct it"
