"""Describes a hook: runs it with ``--config``, once per content of its file, and derives its policies and snapshots.

The version of a hook is a digest of its file and of the objects of its snapshots. Other inputs (a sourced library, the
cluster) are not part of it: operators who cache a hook's verdicts have to know that.
"""

import json
from asyncio import to_thread
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from msgspec import Struct

from gateway.hooks.configuration.model import AdmissionBinding, HookConfiguration, ObjectBinding
from gateway.hooks.configuration.names import webhook_id
from gateway.hooks.configuration.reader import read_hook_configuration
from gateway.hooks.execution.config_run import ConfigRunError
from gateway.hooks.execution.hook_file import Stamp, digest, stamp
from gateway.hooks.execution.results import NotStartedError
from gateway.hooks.execution.runner import HookRunner
from gateway.hooks.execution.snapshots import SnapshotError, snapshot
from gateway.policies.errors import summary
from gateway.policies.model import Phase

_DIGITS: Final = 16
"""Of a version: 64 bits of SHA-256 distinguish the contents of a hook, and people can compare them."""


class HookError(Exception):
    """A hook cannot be described. ``str(error)`` says which, why, and what to do."""


class HookChangingError(HookError):
    """The hook's file changed during its description, so it is unknown which content printed the configuration."""


class HookDescription(Struct, frozen=True, kw_only=True):
    """What a hook's configuration says.

    ``stamp`` is the described file's. ``policies`` are its bindings, by phase and by each name under which they can be
    called. ``objects`` are its ``kubernetes`` bindings. ``snapshots`` has the JSON object of each binding that includes
    snapshots.
    """

    stamp: Stamp
    version: str
    policies: Mapping[tuple[Phase, str], AdmissionBinding]
    objects: tuple[ObjectBinding, ...]
    snapshots: Mapping[tuple[Phase, str], bytes]


async def describe(path: Path, objects: Sequence[bytes], runner: HookRunner) -> HookDescription:
    """Run a hook with ``--config`` and describe it.

    Args:
        path: the hook's absolute path.
        objects: JSON objects, from which its snapshots are made.
        runner: runs it.

    Raises:
        HookError: it cannot be run, or prints no configuration that shell-operator would accept.
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
    return HookDescription(
        stamp=before,
        version=version,
        policies=_policies(configuration),
        objects=configuration.objects,
        snapshots=snapshots,
    )


def _policies(configuration: HookConfiguration) -> dict[tuple[Phase, str], AdmissionBinding]:
    """By name, and by the id under which shell-operator serves the binding, where only one binding has it."""
    bindings = [each for phase in Phase for each in configuration.bindings(phase)]
    ids = Counter((each.phase, webhook_id(each.name)) for each in bindings)
    by_id = {key: each for each in bindings if ids[key := (each.phase, webhook_id(each.name))] == 1}
    return by_id | {(each.phase, each.name): each for each in bindings}


async def _version(path: Path, objects: Sequence[bytes]) -> str:
    try:
        version = await to_thread(digest, path)
    except OSError as error:
        raise HookError(f"hook {path} cannot be read: {error.strerror}; check its owner and mode") from None
    for each in objects:
        version.update(b"\0%d:" % len(each) + each)
    return version.hexdigest()[:_DIGITS]


async def _configuration(path: Path, runner: HookRunner) -> HookConfiguration:
    try:
        output = await runner.config(path)
    except NotStartedError as error:
        raise HookError(f"hook {error}") from None
    except ConfigRunError as error:
        raise HookError(f"hook {path} {error}") from None
    reading = await to_thread(read_hook_configuration, output, str(path))
    if reading.configuration is None:
        raise HookError(f"hook {path} printed an invalid configuration: {summary(list(reading.errors))}")
    return reading.configuration


async def _snapshots(
    path: Path, configuration: HookConfiguration, objects: Sequence[bytes], runner: HookRunner
) -> dict[tuple[Phase, str], bytes]:
    including = [each for phase in Phase for each in configuration.bindings(phase) if each.snapshots_from is not None]
    if not including:
        return {}
    included = {name for each in including for name in each.snapshots_from or ()}
    parsed = [json.loads(each) for each in objects]
    lists = {}
    try:
        for binding in configuration.objects:
            if binding.name in included:
                lists[binding.name] = await snapshot(
                    binding,
                    parsed,
                    seconds=runner.limits.hook_config_seconds,
                    output_bytes=runner.limits.hook_response_bytes,
                )
    except SnapshotError as error:
        raise HookError(f"hook {path}: {error}") from None
    return {(each.phase, each.name): _selection(each, lists) for each in including}


def _selection(binding: AdmissionBinding, lists: Mapping[str, object]) -> bytes:
    selection = {name: lists[name] for name in binding.snapshots_from or ()}
    return json.dumps(selection, ensure_ascii=False, separators=(",", ":")).encode(errors="replace")
