"""Checks the files that Workers name, as they are on this machine now: commands, key files of queues, hooks.

A missing file is no error of the configuration: it may be created later, or exist only where the gateway runs. So
``check`` alone reports it, as a warning; a gateway that serves logs it, and continues to look for the file.
"""

import os
import shutil
import stat
from collections.abc import Iterator
from pathlib import Path

from msgspec.structs import replace

from gateway.policies.errors import ConfigurationError
from gateway.policies.field_errors import quote
from gateway.policies.model import Configuration
from gateway.policies.workers.targets import Worker
from gateway.transports.programs import search_path


def file_warnings(configuration: Configuration) -> tuple[ConfigurationError, ...]:
    """The warnings about these files, in the order of the workers."""
    return tuple(warning for worker in configuration.workers.values() for warning in _about(worker))


def command_errors(configuration: Configuration) -> dict[str, ConfigurationError]:
    """The workers that cannot be started because their program does not exist, by name, each with its error."""
    found = {
        name: _command_error(worker.grpc.command[0], worker.grpc.directory)
        for name, worker in configuration.workers.items()
        if worker.grpc is not None and worker.grpc.command
    }
    return {
        name: _warning(configuration.workers[name], "spec.grpc.command[0]", why) for name, why in found.items() if why
    }


def _about(worker: Worker) -> Iterator[ConfigurationError]:
    if worker.queue is not None:
        why = _key_file_error(Path(worker.queue.directory) / worker.queue.key_file)
        if why:
            yield _warning(worker, "spec.queue.keyFile", f"{why}; until then, calls through this queue fail")
    if worker.hook is not None:
        why = _program_error("hook", Path(worker.hook.directory) / worker.hook.path, "install the hook there")
        if why:
            yield _warning(worker, "spec.hook.path", why)


def _command_error(word: str, directory: str) -> str:
    """Looks up a program as the supervisor does: a path from the file's directory, a name on its PATH."""
    if "/" in word:
        return _program_error("program", Path(directory) / word, "build it")
    if shutil.which(word, path=search_path()) is None:
        return f"program {quote(word)} is not on the PATH, so the worker cannot be started; install it, or use its path"
    return ""


def _key_file_error(path: Path) -> str:
    why = _no_file(path)
    if why:
        return f"queue key file {path}: {why}; create it with `openssl rand -base64 32`, or correct the path"
    try:
        from gateway.redis.key_files import secrets_of  # noqa: PLC0415 - for queues only

        secrets_of(path, "queue key file")
    except ValueError as error:
        return str(error)
    return ""


def _program_error(kind: str, path: Path, help_: str) -> str:
    why = _no_file(path)
    if why:
        return f"{kind} {path}: {why}, so the worker cannot be started; {help_}, or correct the path"
    if not os.access(path, os.X_OK):
        return f"{kind} {path}: not executable, so the worker cannot be started; run chmod +x {path}"
    return ""


def _no_file(path: Path) -> str:
    """Why the path is no regular file; "" if it is one. (Reading a pipe would block.)"""
    try:
        mode = path.stat().st_mode
    except OSError as error:
        return error.strerror or type(error).__name__
    return "" if stat.S_ISREG(mode) else "not a regular file"


def _warning(worker: Worker, field: str, message: str) -> ConfigurationError:
    return ConfigurationError(place=replace(worker.place, path=field), message=message)
