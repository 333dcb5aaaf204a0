"""The hooks of a configuration as the policies of a worker made with the Python SDK.

* A policy's name is the id under which shell-operator serves the binding, which is a DNS-1123 label as the worker
  contract requires. A binding whose id is no label, or is not unique, cannot be served.
* Its version is the hook's. It claims neither inputs nor writes: a hook may read and change whatever is granted.
* Snapshots of the cluster change without the version. A verdict of a binding that includes some is never reused.
* When a hook's file has changed, its description is outdated: the worker stops, and calls fail in the meantime. The
  supervisor of the process (systemd, Kubernetes) starts it again.
"""

import asyncio
import hashlib
import logging
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from pathlib import Path
from time import monotonic
from typing import Any, Final, NamedTuple, NoReturn

import structlog

from admission_worker import NO_STORE, Allow, Answer, Deny, Failure, Request
from admission_worker.answers import CacheHint
from admission_worker.changes import Change, ChangeKind  # passes the patch's bytes on; `patch` would parse them
from gateway.cluster.client import KubernetesClient
from gateway.engine import verdicts
from gateway.hooks.configuration.names import webhook_id
from gateway.hooks.execution.description import HookDescription, HookError, describe
from gateway.hooks.execution.hook_file import hook_path, stamp
from gateway.hooks.execution.output import escaped
from gateway.hooks.execution.runner import HookRequest, HookRunner
from gateway.hooks.execution.signals import StoppedError, run_until_stopped
from gateway.hooks.execution.snapshots import SnapshotError
from gateway.hooks.server.hook_cluster import HookCluster
from gateway.hooks.server.hook_server import HookServer
from gateway.policies.model import Configuration, Phase
from gateway.policies.names import dns_label
from gateway.transports.limits import TransportLimits

LONGEST_SECONDS: Final = 30.0
"""For one call: kube-apiserver's longest timeout. The call's own deadline cancels it before."""

_DIGITS: Final = 16


class UnservedError(Exception):
    """Hooks cannot be served. ``str(error)`` says which, why, and what to do."""


def serve_hooks(
    configuration: Configuration,
    limits: TransportLimits,
    arguments: Sequence[str],
    client: KubernetesClient | None = None,
) -> NoReturn:
    """Serve the hooks of a configuration until a signal stops the process, and exit.

    Args:
        configuration: its policies are the bindings of the hooks.
        limits: of the hooks.
        arguments: flags of a worker's command.
        client: of the cluster that snapshots are taken from, not connected; None: they are made from documents.

    Raises:
        UnservedError: a hook cannot be described, or a binding's name cannot be a policy's.
    """
    _configure_logging()
    runner = HookRunner(limits)
    try:
        hooks = run_until_stopped(_describe_all(configuration, runner))
    except StoppedError:
        raise SystemExit(0) from None
    cluster = None if client is None else HookCluster(client, limits, hooks)
    versions = "".join(sorted(hook.version for hook in hooks.values()))
    server = HookServer(
        version=hashlib.sha256(versions.encode()).hexdigest()[:_DIGITS],
        hooks=hooks,
        warnings=[str(warning) for warning in configuration.warnings],
        cluster=cluster,
    )
    bindings: dict[str, str] = {}
    for policy in (*configuration.mutating, *configuration.validating):
        path = _path(configuration, policy.worker)
        name = _policy_name(policy.policy, f"{policy.phase} binding {policy.policy!r} of hook {path}", bindings)
        snapshots = _snapshots(path, hooks[path], policy.phase, policy.policy, cluster)
        handler = _handler(path, hooks[path], policy.phase, policy.policy, runner, snapshots)
        register = server.mutating if policy.phase is Phase.MUTATING else server.validating
        register(name, version=hooks[path].version, description=f"{policy.policy}, by {path.name}")(handler)
    server.main(arguments)


async def _describe_all(configuration: Configuration, runner: HookRunner) -> dict[Path, HookDescription]:
    targets = [(name, worker.hook) for name, worker in configuration.workers.items() if worker.hook is not None]
    found = await asyncio.gather(
        *(describe(_path(configuration, name), target.objects, runner) for name, target in targets),
        return_exceptions=True,
    )
    hooks: dict[Path, HookDescription] = {}
    errors = []
    for (name, _), description in zip(targets, found, strict=True):
        if isinstance(description, HookError):
            errors.append(str(description))
        elif isinstance(description, BaseException):
            raise description
        else:
            hooks[_path(configuration, name)] = description
    if errors:
        raise UnservedError("; ".join(errors))
    return hooks


def _path(configuration: Configuration, worker: str) -> Path:
    target = configuration.workers[worker].hook
    assert target is not None  # noqa: S101 - all workers of a directory of hooks are hooks
    return hook_path(target.path, target.directory)


def _policy_name(binding: str, described: str, bindings: dict[str, str]) -> str:
    """The name of a binding's policy, which is added to ``bindings``; ``described`` is the binding in messages.

    Raises:
        UnservedError: it cannot be a policy's name.
    """
    name = webhook_id(binding)
    if errors := dns_label(name):
        raise UnservedError(f"{described} cannot be served as policy {name!r}: {errors[0]}; rename it")
    if name in bindings:
        raise UnservedError(f"{described} and {bindings[name]} would both be policy {name!r}; rename one of them")
    bindings[name] = described
    return name


class _Snapshots(NamedTuple):
    """The snapshots of a binding. ``changing``: they are not part of the hook's version, so verdicts are not reused."""

    read: Callable[[], Awaitable[bytes | None]]
    changing: bool = False


def _snapshots(path: Path, hook: HookDescription, phase: Phase, name: str, cluster: HookCluster | None) -> _Snapshots:
    binding = hook.policies[phase, name]

    async def of_documents() -> bytes | None:
        return hook.snapshots.get((phase, name))

    if cluster is None or binding.snapshots_from is None:
        return _Snapshots(of_documents)
    return _Snapshots(partial(cluster.snapshots.text, path, binding), changing=True)


def _handler(
    path: Path, hook: HookDescription, phase: Phase, binding: str, runner: HookRunner, snapshots: _Snapshots
) -> Callable[[Request], Awaitable[Answer]]:
    async def handle(request: Request) -> Answer:
        was_current = stamp(path) == hook.stamp
        try:
            content = await snapshots.read()
        except SnapshotError as error:
            return Failure(message=str(error))
        call = HookRequest(binding=binding, phase=phase, document=request.raw, snapshots=content, uid=request.uid)
        answer = await runner.call(path, call, deadline=monotonic() + LONGEST_SECONDS)
        if not was_current or stamp(path) != hook.stamp:
            return Failure(message=f"hook {path} has changed; the worker stops, to be started again")
        return _sdk_answer(answer, NO_STORE if snapshots.changing else None)

    return handle


def _sdk_answer(answer: verdicts.Answer, cache: CacheHint | None) -> Answer:
    """The answer in the SDK's types."""
    match answer:
        case verdicts.Allow():
            change = None
            if answer.change is not None:
                change = Change(kind=ChangeKind.JSON_PATCH, content=answer.change.content)
            return Allow(change=change, warnings=answer.warnings, cache=cache)
        case verdicts.Deny():
            return Deny(
                message=answer.message, code=answer.code, reason=answer.reason, warnings=answer.warnings, cache=cache
            )
        case verdicts.Failure():
            return Failure(message=f"{answer.reason}: {answer.message}")


def _configure_logging() -> None:
    """Send the log of hooks to ``logging``, which the SDK's worker configures."""
    structlog.configure(
        processors=[structlog.stdlib.filter_by_level, structlog.processors.format_exc_info, _line],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
    )
    logging.getLogger("asyncio").setLevel(logging.WARNING)


def _line(_logger: Any, _method: str, event: structlog.typing.EventDict) -> str:
    """``EVENT (NAME=VALUE, …)``; a traceback below."""
    text, trace = event.pop("event"), event.pop("exception", None)
    fields = ", ".join(f"{name}={value}" for name, value in event.items())
    line = escaped(f"{text} ({fields})" if fields else str(text))
    return f"{line}\n{trace}" if trace else line
