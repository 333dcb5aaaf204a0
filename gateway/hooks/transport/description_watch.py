"""Keeps the description of a hook current: describes it when its file appears or has changed, and again after an
error.
"""

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

import structlog

from gateway.hooks.execution.description import HookChangingError, HookDescription, HookError, describe
from gateway.hooks.execution.hook_file import Stamp, stamp
from gateway.hooks.execution.runner import HookRunner
from gateway.transports.messages import one_line

_LOG: Final = structlog.get_logger(__name__)

POLL_SECONDS: Final = 1.0
"""How often the stamp of a hook's file is compared."""

RETRY_SECONDS: Final = (1.0, 30.0)
"""First and longest pause before a hook whose file has not changed is described again; doubled each time."""


class DescriptionWatch:
    """Watches the file of one hook.

    Args:
        worker: the Worker's name, for the log.
        path: the hook's.
        objects: of its snapshots.
        runner: runs it with ``--config``.
        changed: called after each description, and after each failure to describe.
    """

    def __init__(
        self,
        worker: str,
        path: Path,
        objects: Sequence[bytes],
        runner: HookRunner,
        changed: Callable[[], object],
    ) -> None:
        self.description: HookDescription | None = None
        """The last one; None if the hook cannot be described."""
        self.is_outdated = False
        """Whether the file is not the described one."""
        self.why = ""
        """Why the hook cannot be described; empty if it can."""
        self._worker = worker
        self._path = path
        self._objects = objects
        self._runner = runner
        self._changed = changed
        self._failed: Stamp | None = None
        self._pause = RETRY_SECONDS[0]
        self._retry_at = 0.0
        self._wake = asyncio.Event()
        self._task = asyncio.create_task(self._watch())

    def is_current(self, description: HookDescription) -> bool:
        """Whether the file is the described one. If it is not, it is described again at once."""
        if stamp(self._path) == description.stamp:
            return True
        self.is_outdated = True
        self._wake.set()
        return False

    async def close(self) -> None:
        """Stop watching, and a running hook with it."""
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)

    async def _watch(self) -> None:
        while True:
            found = stamp(self._path)
            if self._is_due(found):
                await self._describe(found)
            try:
                async with asyncio.timeout(POLL_SECONDS):
                    await self._wake.wait()
            except TimeoutError:
                pass
            self._wake.clear()

    def _is_due(self, found: Stamp | None) -> bool:
        if self.description is not None and self.description.stamp == found:
            return False
        if self.why and found == self._failed:
            return asyncio.get_running_loop().time() >= self._retry_at
        self._pause = RETRY_SECONDS[0]
        return True

    async def _describe(self, found: Stamp | None) -> None:
        self.is_outdated = self.description is not None
        try:
            self.description = await describe(self._path, self._objects, self._runner)
        except HookChangingError:
            return
        except HookError as error:
            self._fail(str(error), found)
        except Exception as error:  # noqa: BLE001 - logged, and tried again
            _LOG.exception("describing a hook failed inside the gateway", worker=self._worker)
            self._fail(f"{type(error).__name__} in the gateway; see its log", found)
        else:
            self.why, self._failed, self.is_outdated = "", None, False
        self._changed()

    def _fail(self, why: str, found: Stamp | None) -> None:
        self.why, self._failed = one_line(why, 2 * self._runner.limits.message_characters), found
        self._retry_at = asyncio.get_running_loop().time() + self._pause
        self._pause = min(2 * self._pause, RETRY_SECONDS[1])
        if self.description is not None:
            _LOG.warning("hook became unavailable: it cannot be described", worker=self._worker, why=self.why)
            self.description = None
