"""Has a source changed since it was read? By looking again and again, at nothing but names, links and times.

A timer, and not the kernel's notifications: a mounted ConfigMap is swapped by the rename of a link two links away from
the files, network file systems send no notifications, and a second is soon enough.

A change is loaded when two looks in a row find the same: a writer that does not replace the file at once is still
writing at the first, and half a file may be a valid configuration. (For the same reason equal
states are equal texts: what was read has rested since the look before, so a later write has a later time.)
"""

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from gateway.policies.decoding.texts import SourceText
from gateway.sources.files import State, look, read_at_once

_States = tuple[State, object]


class HookSource(Protocol):
    """A directory of hooks, which yields one more text (``gateway.hooks.source``)."""

    def look(self) -> object:
        """The state of the files: equal, as long as none of them has changed. Never raises."""

    async def read(self) -> tuple[SourceText, object]:
        """The text, and the state of the files it was made from. Cancelled, it leaves no process behind.

        Raises:
            SourceError: it cannot be read.
        """

    def read_now(self) -> tuple[SourceText, object]:
        """The same, outside of a loop: it blocks.

        Raises:
            SourceError: it cannot be read.
        """


class Source:
    """Files and directories that are read more than once, and perhaps a directory of hooks.

    Args:
        paths: as for ``read``; may be empty where there are hooks, or policies in the cluster.
        hooks: where there are any.
    """

    def __init__(self, paths: Sequence[Path], hooks: HookSource | None = None) -> None:
        self.paths = tuple(paths)
        self.hooks = hooks
        self._read: _States | None = None
        self._seen: _States | None = None

    def read(self) -> tuple[SourceText, ...]:
        """The texts of all files, as they are now. It blocks, as files do: not for a loop (see ``fetch``).

        Raises:
            SourceError: as for ``read``. It is not tried again before something has changed.
        """
        self._read = self._look()
        try:
            texts, state = self._files()
            hooks = self.hooks
            if hooks is None:
                self._read = state, ()
                return texts
            text, hook_state = hooks.read_now()
            self._read = state, hook_state
        finally:
            self._seen = self._read
        return (*texts, text)

    async def fetch(self) -> tuple[SourceText, ...]:
        """The same in a loop, which goes on meanwhile. Cancelled, it leaves no hook running.

        Raises:
            SourceError: as for ``read``.
        """
        self._read = await asyncio.to_thread(self._look)
        try:
            # In a thread: files may be slow.
            texts, state = await asyncio.to_thread(self._files)
            if self.hooks is None:
                self._read = state, ()
                return texts
            text, hook_state = await self.hooks.read()
            self._read = state, hook_state
        finally:
            self._seen = self._read
        return (*texts, text)

    def changed(self) -> bool:
        """Whether the files are others than those that were read, and rest: one look. It blocks."""
        seen, self._seen = self._seen, self._look()
        return self._seen == seen and self._seen != self._read

    def _files(self) -> tuple[tuple[SourceText, ...], State]:
        return read_at_once(self.paths) if self.paths else ((), ())

    def _look(self) -> _States:
        files: State = look(self.paths) if self.paths else ()
        return files, () if self.hooks is None else self.hooks.look()


class PollTimer:
    """The pauses between the looks of one watcher."""

    def __init__(self) -> None:
        self._called = asyncio.Event()

    def now(self) -> None:
        """Look at once."""
        self._called.set()

    async def pause(self, interval: float) -> bool:
        """Wait until the next look; whether it was requested.

        Args:
            interval: seconds; 0: only when called to.
        """
        try:
            await asyncio.wait_for(self._called.wait(), interval or None)
        except TimeoutError:
            return False
        self._called.clear()
        return True
