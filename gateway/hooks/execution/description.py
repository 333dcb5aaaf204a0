"""What a hook says of itself: run with ``--config``, once for each content of its file.

Its version is a digest of the file and of the objects that its snapshots are made of. What else it reads (a library
that it sources, the cluster) is not in there: whoever lets its verdicts be cached should know that.
"""

import errno
import hashlib
import json
import os
import stat
from asyncio import to_thread
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from msgspec import Struct

from gateway.hooks.configuration.model import AdmissionBinding, HookConfiguration
from gateway.hooks.configuration.names import webhook_id
from gateway.hooks.configuration.reader import read_hook_configuration
from gateway.hooks.execution.process import Fate, NotStartedError
from gateway.hooks.execution.runner import CONFIG_BYTES, HookRunner
from gateway.hooks.execution.snapshots import SnapshotError, snapshot
from gateway.policies.fields import summary
from gateway.policies.model import Phase

_DIGITS: Final = 16
"""Of a version: 64 bits of SHA-256 tell a hook's contents apart, and people can read them to each other."""


class HookError(Exception):
    """A hook that cannot be described. ``str(error)`` says which, why, and what to do."""


class HookChangingError(HookError):
    """Its file has changed meanwhile: nobody knows which content has said what."""


class Stamp(NamedTuple):
    """By what a file's change is seen without reading it."""

    modified: int
    changed: int
    size: int
    inode: int
    mode: int


class HookDescription(Struct, frozen=True, kw_only=True):
    """A hook's own words, worked out.

    ``stamp`` is that of the file that was described. ``policies`` are its bindings, by phase and by each name under
    which they can be asked for. ``snapshots`` has, for each binding that asks for some, the JSON object that it is
    given.
    """

    stamp: Stamp
    version: str
    policies: Mapping[tuple[Phase, str], AdmissionBinding]
    snapshots: Mapping[tuple[Phase, str], bytes]


def stamp(path: Path) -> Stamp | None:
    """A file's stamp; None if there is no such file."""
    try:
        found = path.stat()
    except OSError:
        return None
    return Stamp(found.st_mtime_ns, found.st_ctime_ns, found.st_size, found.st_ino, stat.S_IMODE(found.st_mode))


async def describe(path: Path, objects: Sequence[bytes], runner: HookRunner) -> HookDescription:
    """Run a hook with ``--config`` and work out what it says.

    Args:
        path: the hook's, from the root.
        objects: JSON objects, of which its snapshots are made.
        runner: runs it.

    Raises:
        HookError: it cannot be run, or prints no configuration that shell-operator would take.
        HookChangingError: its file is being changed.
    """
    before = stamp(path)
    if before is None:
        raise HookError(f"hook {path}: there is no such file")
    version = await _version(path, objects)
    configuration = await _configuration(path, runner)
    snapshots = await _snapshots(path, configuration, objects, runner)
    if stamp(path) != before:
        raise HookChangingError(f"hook {path} is being changed")
    return HookDescription(stamp=before, version=version, policies=_policies(configuration), snapshots=snapshots)


def _policies(configuration: HookConfiguration) -> dict[tuple[Phase, str], AdmissionBinding]:
    """By whole name; and, where that leaves no doubt, by the id under which shell-operator serves the binding."""
    bindings = [each for phase in Phase for each in configuration.bindings(phase)]
    ids = Counter((each.phase, webhook_id(each.name)) for each in bindings)
    by_id = {key: each for each in bindings if ids[key := (each.phase, webhook_id(each.name))] == 1}
    return by_id | {(each.phase, each.name): each for each in bindings}


async def _version(path: Path, objects: Sequence[bytes]) -> str:
    try:
        digest = await to_thread(_digest, path)
    except OSError as error:
        raise HookError(f"hook {path} cannot be read: {error.strerror}; see its owner and mode") from None
    for each in objects:
        digest.update(b"\0%d:" % len(each) + each)
    return digest.hexdigest()[:_DIGITS]


def _digest(path: Path) -> "hashlib._Hash":
    # Not blocking: a pipe without a writer would hold up a thread for ever.
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(descriptor, "rb") as file:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError(errno.EINVAL, "it is no regular file", str(path))
        return hashlib.file_digest(file, "sha256")


async def _configuration(path: Path, runner: HookRunner) -> HookConfiguration:
    try:
        ended = await runner.config(path)
    except NotStartedError as error:
        raise HookError(f"hook {error}") from None
    limits = runner.limits
    if ended.fate is Fate.LATE:
        raise HookError(f"hook {path} did not end within {limits.hook_config_seconds:g} s when run with --config")
    if ended.fate is Fate.FLOODED:
        raise HookError(f"hook {path} wrote more than {CONFIG_BYTES} bytes when run with --config")
    if ended.code:
        said = " ".join(ended.stderr.decode(errors="replace").split())[-limits.message_characters :]
        raise HookError(f"hook {path} ended with {ended.code} when run with --config: {said or 'it does not say why'}")
    reading = await to_thread(read_hook_configuration, ended.stdout, str(path))
    if reading.configuration is None:
        raise HookError(f"hook {path} printed a configuration that is none: {summary(list(reading.mistakes))}")
    return reading.configuration


async def _snapshots(
    path: Path, configuration: HookConfiguration, objects: Sequence[bytes], runner: HookRunner
) -> dict[tuple[Phase, str], bytes]:
    asking = [each for phase in Phase for each in configuration.bindings(phase) if each.snapshots_from is not None]
    if not asking:
        return {}
    wanted = {name for each in asking for name in each.snapshots_from or ()}
    parsed = [json.loads(each) for each in objects]
    lists = {}
    try:
        for binding in configuration.objects:
            if binding.name in wanted:
                lists[binding.name] = await snapshot(
                    binding,
                    parsed,
                    seconds=runner.limits.hook_config_seconds,
                    output_bytes=runner.limits.hook_response_bytes,
                )
    except SnapshotError as error:
        raise HookError(f"hook {path}: {error}") from None
    return {(each.phase, each.name): _chosen(each, lists) for each in asking}


def _chosen(binding: AdmissionBinding, lists: Mapping[str, object]) -> bytes:
    chosen = {name: lists[name] for name in binding.snapshots_from or ()}
    return json.dumps(chosen, ensure_ascii=False, separators=(",", ":")).encode(errors="replace")
