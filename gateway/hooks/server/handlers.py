"""The hooks of a configuration as the policies of a worker made with the Python SDK.

* A policy's name is the id under which shell-operator serves the binding, which is a DNS-1123 label as the worker
  contract requires. A binding whose id is no label, or is not unique, cannot be served.
* Its version is the hook's. It claims neither inputs nor writes: a hook may read and change whatever is granted.
* When a hook's file has changed, its description is outdated: the worker stops, and calls fail in the meantime. The
  supervisor of the process (systemd, Kubernetes) starts it again.
"""

import asyncio
import hashlib
import logging
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NoReturn, Optional

import structlog

from admission_worker import Answer, Request
from gateway.cluster.client import KubernetesClient
from gateway.hooks.configuration.names import webhook_id
from gateway.hooks.execution.description import HookDescription, HookError, describe
from gateway.hooks.execution.hook_file import hook_path
from gateway.hooks.execution.output import escaped
from gateway.hooks.execution.runner import HookRunner
from gateway.hooks.execution.signals import StoppedError, run_until_stopped
from gateway.hooks.server.hook_cluster import HookCluster
from gateway.hooks.server.hook_policy import HookPolicy
from gateway.hooks.server.hook_server import HookServer
from gateway.policies.model import Configuration, Phase
from gateway.policies.names import dns_label
from gateway.telemetry.events import Events, NoEvents
from gateway.transports.limits import TransportLimits

if TYPE_CHECKING:
    from gateway.telemetry.traces.provider import SpanProvider

_DIGITS: Final = 16


class UnservedError(Exception):
    """Hooks cannot be served. ``str(error)`` says which, why, and what to do."""


def serve_hooks(  # noqa: PLR0913 - all but the first four by name
    configuration: Configuration,
    limits: TransportLimits,
    arguments: Sequence[str],
    client: KubernetesClient | None = None,
    *,
    spans: Optional["SpanProvider"] = None,
    events: Events | None = None,
    listener: Callable[[HookCluster | None], AbstractAsyncContextManager[object]] | None = None,
) -> NoReturn:
    """Serve the hooks of a configuration until a signal stops the process, and exit.

    Args:
        configuration: its policies are the bindings of the hooks.
        limits: of the hooks.
        arguments: flags of a worker's command.
        client: of the cluster that snapshots are taken from, not connected; None: they are made from documents.
        spans: exports the spans of calls; None: none are made.
        events: counts runs of hooks.
        listener: what is open while they are served, made for the cluster.

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
        spans=spans,
        listener=nullcontext() if listener is None else listener(cluster),
    )
    bindings: dict[str, str] = {}
    for policy in (*configuration.mutating, *configuration.validating):
        path = _path(configuration, policy.worker)
        name = _policy_name(policy.policy, f"{policy.phase} binding {policy.policy!r} of hook {path}", bindings)
        binding = hooks[path].policies[policy.phase, policy.policy]
        handler = _handler(HookPolicy(path, hooks[path], binding, runner, cluster, events or NoEvents()))
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


def _handler(policy: HookPolicy) -> Callable[[Request], Awaitable[Answer]]:
    async def handle(request: Request) -> Answer:
        return await policy.answer(request)

    return handle


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
