"""A directory of hooks -> one text with the documents that configure them.

Each hook is run once with ``--config``, a few at a time, in its own directory, with a clean environment and limits of
time and output. Any error of a hook (an invalid configuration, an exit status, a timeout, a missing interpreter) is a
fatal error of the text: shell-operator stops at its start as well, and a serving gateway keeps its last good
configuration. Skipped files are warnings.

Hooks are run again whenever a file of the directory has changed, including those in ``lib``: what a hook sources may
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
from gateway.hooks.execution.config_run import CONFIG_RUNS, ConfigRunError, run_config
from gateway.hooks.execution.results import NotStartedError
from gateway.hooks.execution.signals import StoppedError, run_until_stopped
from gateway.hooks.source.discovery import HookFiles, HookState, TooManyError, find_hooks
from gateway.policies.decoding.texts import SourceText
from gateway.policies.errors import ConfigurationError, Place
from gateway.sources.files import MAX_ATTEMPTS, SourceError

CONFIG_SECONDS: Final = 30.0
"""For ``--config``: a script prints a text. An interpreter that loads a large library on a busy machine takes
seconds."""


class HookDirectory:
    """A directory of hooks that can be read repeatedly: a ``HookSource`` of ``sources.watching``.

    Args:
        directory: where the hooks are.
        configuration: the name of both configurations, without ``-hooks``.
        seconds: how long each hook may take to print its configuration.
    """

    def __init__(self, directory: Path, *, configuration: str = CONFIGURATION, seconds: float = CONFIG_SECONDS) -> None:
        self.directory = directory
        self.configuration = f"{configuration}-hooks"
        self._root = os.path.abspath(directory)  # noqa: PTH100 - links are not resolved: a ConfigMap swaps them
        self._seconds = seconds

    def look(self) -> HookState | str:
        """The state of the files, without running a hook; or why they cannot be read. Never raises."""
        try:
            return self._find().state
        except SourceError as error:
            return str(error)

    async def read(self) -> tuple[SourceText, HookState]:
        """The text, and the state of the files from which it was made. Cancelled, it leaves no process behind.

        Raises:
            SourceError: the directory cannot be read, contains no hook, or changes all the time.
        """
        for _ in range(MAX_ATTEMPTS):
            found = await asyncio.to_thread(self._find)
            if not found.hooks:
                raise SourceError(
                    f"hooks: {_printable(self.directory)}: contains no executable file; chmod +x the hooks "
                    "(defaultMode: 0755 for a mounted ConfigMap), or name the directory that contains them"
                )
            text = await self._text(found)
            after = await asyncio.to_thread(self.look)
            if after == found.state:
                return text, found.state
        raise SourceError(
            f"hooks: {_printable(self.directory)}: the files changed while the hooks printed their configurations, "
            f"{MAX_ATTEMPTS} times in a row; replace files in one step, as a mounted ConfigMap does"
        )

    def read_now(self) -> tuple[SourceText, HookState]:
        """The same, outside of an event loop: it blocks.

        Raises:
            SourceError: as for ``read``; or a signal has stopped the process.
        """
        try:
            return run_until_stopped(self.read())
        except StoppedError:
            raise SourceError(
                f"hooks: {_printable(self.directory)}: stopped while the hooks printed their configurations"
            ) from None

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
        limit = asyncio.Semaphore(CONFIG_RUNS)
        async with asyncio.TaskGroup() as group:
            runs = [group.create_task(self._output(path, limit)) for path in found.hooks]
        # In a thread: compiling the match conditions of a thousand bindings takes a second.
        return await asyncio.to_thread(self._compose, found, [run.result() for run in runs])

    def _compose(self, found: HookFiles, outputs: Sequence[bytes | str]) -> SourceText:
        errors: list[ConfigurationError] = []
        warnings = [_error(path, why) for path, why in found.skipped]
        hooks: list[Hook] = []
        for path, output in zip(found.hooks, outputs, strict=True):
            if isinstance(output, str):
                errors.append(_error(path, output))
                continue
            name = f"{_printable(path)} --config"
            reading = read_hook_configuration(output, name)
            errors += reading.errors
            warnings += reading.warnings
            if reading.configuration is not None:
                relative = path.relative_to(self._root).as_posix()
                hooks.append(Hook(path=relative, name=name, configuration=reading.configuration))
        return hooks_text(
            hooks,
            name=_printable(self.directory),
            directory=self._root,
            configuration=self.configuration,
            errors=errors,
            warnings=warnings,
        )

    async def _output(self, path: Path, limit: asyncio.Semaphore) -> bytes | str:
        """What the hook prints for ``--config``; or, as a str, why it does not."""
        try:
            str(path).encode()
        except UnicodeEncodeError:
            return "its name is not UTF-8; rename it"
        async with limit:
            try:
                return await run_config(path, seconds=self._seconds)
            except (NotStartedError, ConfigRunError) as error:
                return str(error)


def _error(path: Path, message: str) -> ConfigurationError:
    return ConfigurationError(place=Place(file=_printable(path), line=1), message=message)


def _printable(path: Path | str) -> str:
    """A name for messages, whatever bytes the file system allows in names."""
    return str(path).encode(errors="replace").decode()
