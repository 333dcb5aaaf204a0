"""Runs the program jq: one process for any number of objects."""

import json
import shutil
import tempfile
from asyncio import to_thread
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from msgspec import Struct

from gateway.hooks.execution.process import run
from gateway.hooks.execution.results import ExitCause, NotStartedError
from gateway.transports.programs import clean_environment

JQ: Final = "jq"

_SHOWN: Final = 300
"""Characters of jq's error that are quoted."""


class JqError(Exception):
    """Jq cannot be run, or its filter cannot be compiled. ``str(error)`` says why, and what to do."""


class JqResult(Struct, frozen=True, kw_only=True):
    """The values of a filter for one object; ``error``: why there are none, or empty."""

    values: tuple[Any, ...] = ()
    error: str = ""

    @property
    def filter_result(self) -> Any:
        """The element of a snapshot: null without a value, an array for several."""
        return self.values[0] if len(self.values) == 1 else list(self.values) or None


async def apply_filter(
    jq_filter: str, objects: Sequence[bytes], seconds: float, output_bytes: int
) -> tuple[JqResult, ...]:
    """The results of a filter, for each of the objects (JSON without line ends).

    Args:
        jq_filter: in jq's language.
        objects: JSON texts.
        seconds: the time limit for all of them.
        output_bytes: the limit of all results.

    Raises:
        JqError: see there. The error of one object is in its result.
    """
    if not objects:
        return ()
    program = shutil.which(JQ)
    if program is None:
        raise JqError("it has a jqFilter, and there is no program jq on the PATH; install jq, or remove the filter")
    with tempfile.TemporaryDirectory(prefix="admission-gateway-jq-") as directory:
        source = Path(directory, "objects.json")
        await to_thread(source.write_bytes, b"\n".join(objects))
        # One line per object, however many values the filter has. The line end ends a comment in the filter.
        argv = [program, "-c", f"try [{jq_filter}\n] catch {{error: tostring}}", str(source)]
        try:
            result = await run(
                argv,
                environment=clean_environment(),
                directory=directory,
                seconds=seconds,
                output_bytes=output_bytes,
                kept_bytes=output_bytes,
            )
        except NotStartedError as error:
            raise JqError(str(error)) from None
    if result.cause is not ExitCause.EXITED or result.code:
        stderr = " ".join(result.stderr.decode(errors="replace").split())[:_SHOWN]
        raise JqError(f"jq cannot apply its jqFilter: {stderr or f'jq {result.cause}'}")
    lines = result.stdout.splitlines()
    if len(lines) != len(objects):
        raise JqError("jq cannot apply its jqFilter: its brackets do not match")
    return tuple(map(_result, lines))


def _result(line: bytes) -> JqResult:
    value = json.loads(line)
    if isinstance(value, list):
        return JqResult(values=tuple(value))
    return JqResult(error=" ".join(value["error"].split())[:_SHOWN])
