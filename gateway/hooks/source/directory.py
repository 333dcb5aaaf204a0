"""A directory of shell-operator hooks -> one text that brings them behind the gateway.

Each hook is run once with ``--config``, a few at a time, each in its own directory, with a clean environment and bounds
of time and output. Whatever is wrong with one of them (a broken configuration, an exit status, no end, no such
interpreter) is a fatal mistake of the text: shell-operator stops its start-up as well, and a gateway that serves keeps
its last good configuration. What is merely left out is a remark.

Hooks are run again whenever a file of the directory has changed, those in ``lib`` included: what a hook sources may
change what it prints.
"""

import asyncio
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from gateway.hooks.configuration.names import CONFIGURATION
from gateway.hooks.configuration.policies import Hook, hooks_text
from gateway.hooks.configuration.reader import read_hook_configuration
from gateway.hooks.execution.process import Ended, Fate, NotStartedError, run
from gateway.hooks.execution.signals import cancel_when_told
from gateway.hooks.source.files import HookFiles, HookState, TooManyError, find_hooks
from gateway.policies.document import SourceText
from gateway.policies.model import ConfigurationError, Place
from gateway.policies.wording import one_line
from gateway.sources.files import MAX_ATTEMPTS, SourceError
from gateway.transports.programs import clean_environment

CONFIG_SECONDS: Final = 30.0
"""For ``--config``: a script prints a text. An interpreter that loads a large library on a busy machine takes
seconds."""

CONFIG_BYTES: Final = 1_048_576
"""Of its outputs: a configuration of a thousand bindings has some 300 KiB."""

AT_ONCE: Final = 4
"""Hooks asked at the same time: enough to have an answer from a hundred scripts within seconds, and no more load than a
small machine bears beside its work."""

_SHOWN_BYTES: Final = 500
"""Of what a hook wrote to stderr before it failed: its last words."""


class HookDirectory:
    """A directory of hooks, read more than once.

    Args:
        directory: where they are.
        configuration: what both configurations are called, without ``-hooks``.
        seconds: how long each may take to print its configuration.
    """

    def __init__(self, directory: Path, *, configuration: str = CONFIGURATION, seconds: float = CONFIG_SECONDS) -> None:
        self.directory = directory
        self.configuration = f"{configuration}-hooks"
        self._root = os.path.abspath(directory)  # noqa: PTH100 - links stay: a ConfigMap's are swapped
        self._seconds = seconds

    def look(self) -> HookState | str:
        """The state of the files without running any; or why they cannot be read. Never raises."""
        try:
            return self._find().state
        except SourceError as error:
            return str(error)

    async def read(self) -> tuple[SourceText, HookState]:
        """The text, and the state in which the files were. Cancelled, it leaves no process behind.

        Raises:
            SourceError: the directory cannot be read, holds no hook, or changes all the time.
        """
        for _ in range(MAX_ATTEMPTS):
            found = await asyncio.to_thread(self._find)
            if not found.hooks:
                raise SourceError(
                    f"hooks: {_printable(self.directory)}: holds no file that may be executed; chmod +x the hooks "
                    "(defaultMode: 0755 where a ConfigMap is mounted), or name the directory that holds them"
                )
            text = await self._text(found)
            after = await asyncio.to_thread(self.look)
            if after == found.state:
                return text, found.state
        raise SourceError(
            f"hooks: {_printable(self.directory)}: the hooks changed while they were asked for their configuration, "
            f"{MAX_ATTEMPTS} times in a row; put new files in place at once, as a mounted ConfigMap does"
        )

    def read_now(self) -> tuple[SourceText, HookState]:
        """The same, outside of a loop: it blocks.

        Raises:
            SourceError: as for ``read``; or the process was told to end meanwhile.
        """
        try:
            return asyncio.run(self._read_unless_told())
        except (asyncio.CancelledError, KeyboardInterrupt):
            raise SourceError(
                f"hooks: {_printable(self.directory)}: told to end while the hooks were asked for their configuration"
            ) from None

    async def _read_unless_told(self) -> tuple[SourceText, HookState]:
        cancel_when_told()
        return await self.read()

    def _find(self) -> HookFiles:
        try:
            return find_hooks(self.directory)
        except OSError as error:
            where = error.filename or self.directory
            raise SourceError(
                f"hooks: {_printable(where)}: cannot be read: {error.strerror}; check the path and its permissions"
            ) from error
        except (TooManyError, ValueError) as error:
            raise SourceError(f"hooks: {_printable(self.directory)}: {error}") from error

    async def _text(self, found: HookFiles) -> SourceText:
        turns = asyncio.Semaphore(AT_ONCE)
        async with asyncio.TaskGroup() as group:
            asked = [group.create_task(self._ask(path, turns)) for path in found.hooks]
        # In a thread: the conditions of a thousand bindings take a second to compile.
        return await asyncio.to_thread(self._made, found, [task.result() for task in asked])

    def _made(self, found: HookFiles, outputs: Sequence[bytes | str]) -> SourceText:
        mistakes: list[ConfigurationError] = []
        remarks = [_told(path, why) for path, why in found.idle]
        hooks: list[Hook] = []
        for path, output in zip(found.hooks, outputs, strict=True):
            if isinstance(output, str):
                mistakes.append(_told(path, output))
                continue
            name = f"{_printable(path)} --config"
            reading = read_hook_configuration(output, name)
            mistakes += reading.mistakes
            remarks += reading.warnings
            if reading.configuration is not None:
                relative = path.relative_to(self._root).as_posix()
                hooks.append(Hook(path=relative, name=name, configuration=reading.configuration))
        return hooks_text(
            hooks,
            name=_printable(self.directory),
            directory=self._root,
            configuration=self.configuration,
            mistakes=mistakes,
            remarks=remarks,
        )

    async def _ask(self, path: Path, turns: asyncio.Semaphore) -> bytes | str:
        """What the hook prints for ``--config``; or, as a str, why it did not."""
        try:
            str(path).encode()
        except UnicodeEncodeError:
            return "its name is not UTF-8; rename it"
        async with turns:
            try:
                ended = await run(
                    [str(path), "--config"],
                    environment=clean_environment(),
                    directory=path.parent,
                    seconds=self._seconds,
                    output_bytes=CONFIG_BYTES,
                    kept_bytes=CONFIG_BYTES,
                )
            except NotStartedError as error:
                return str(error)
        return ended.stdout if ended.fate is Fate.ENDED and ended.code == 0 else self._failure(ended)

    def _failure(self, ended: Ended) -> str:
        said = one_line(ended.stderr[-_SHOWN_BYTES:].decode(errors="replace").strip())
        words = f"; it wrote to stderr: {said}" if said else ""
        if ended.fate is Fate.LATE:
            return (
                f"did not print its configuration within {self._seconds:g} s and was killed; a hook that is called "
                f"with --config prints it and ends{words}"
            )
        if ended.fate is Fate.FLOODED:
            return (
                f"wrote more than {CONFIG_BYTES} bytes and was killed; a hook that is called with --config prints its "
                f"configuration and ends{words}"
            )
        how = f"was ended by signal {-ended.code}" if ended.code < 0 else f"ended with exit status {ended.code}"
        return f"{how} when called with --config; run it so by hand, and mend it{words}"


def _told(path: Path, message: str) -> ConfigurationError:
    return ConfigurationError(place=Place(file=_printable(path), line=1), message=message)


def _printable(path: Path | str) -> str:
    """A name for messages, whatever bytes the file system allows in names."""
    return str(path).encode(errors="replace").decode()
