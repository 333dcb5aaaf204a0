"""The hooks of a configuration as the policies of a worker made with the Python SDK.

* A policy's name is the id under which shell-operator serves the binding, which is a DNS-1123 label as the contract
  asks for; where it is not, or two bindings have the same, there is nothing to serve it as.
* Its version is the hook's. Inputs and writes are not claimed: a hook may read and change whatever is granted.
* When a hook's file has changed, what was described holds no longer: the worker stops, and asks that come in the
  meantime fail. Whoever runs it starts it again.
"""

import asyncio
import hashlib
import logging
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from time import monotonic
from typing import Any, Final, NoReturn

import structlog

from admission_worker import Allow, Answer, Deny, Failure, Request
from admission_worker.changes import Change, ChangeKind  # the patch's own bytes go on; `patch` would parse them
from gateway.engine import verdicts
from gateway.hooks.configuration.names import webhook_id
from gateway.hooks.execution.description import HookDescription, HookError, describe, stamp
from gateway.hooks.execution.hook_file import hook_path
from gateway.hooks.execution.output import escaped
from gateway.hooks.execution.runner import HookRunner, Question
from gateway.hooks.execution.signals import cancel_when_told
from gateway.hooks.server.worker import HookWorker
from gateway.policies.model import Configuration, Phase
from gateway.policies.names import dns_label
from gateway.transports.limits import TransportLimits

LONGEST_SECONDS: Final = 30.0
"""For one run: kube-apiserver's longest timeout. The ask's own deadline cancels it before."""

_DIGITS: Final = 16


class UnservedError(Exception):
    """Hooks that cannot be served. ``str(error)`` says which, why, and what to do."""


def serve_hooks(configuration: Configuration, limits: TransportLimits, arguments: Sequence[str]) -> NoReturn:
    """Serve the hooks of a configuration until told to stop, and exit.

    Args:
        configuration: its policies are the hooks' bindings.
        limits: of the hooks.
        arguments: flags of a worker's command.

    Raises:
        UnservedError: a hook does not describe itself, or a binding's name is no policy's.
    """
    _log_through_logging()
    runner = HookRunner(limits)
    try:
        hooks = asyncio.run(_described(configuration, runner))
    except (asyncio.CancelledError, KeyboardInterrupt):
        raise SystemExit(0) from None
    versions = "".join(sorted(hook.version for hook in hooks.values()))
    worker = HookWorker(
        version=hashlib.sha256(versions.encode()).hexdigest()[:_DIGITS],
        hooks=hooks,
        remarks=[str(warning) for warning in configuration.warnings],
    )
    taken: dict[str, str] = {}
    for policy in (*configuration.mutating, *configuration.validating):
        path = _path(configuration, policy.worker)
        name = _name(policy.policy, f"{policy.phase} binding {policy.policy!r} of hook {path}", taken)
        judged = _judged(path, hooks[path], policy.phase, policy.policy, runner)
        register = worker.mutating if policy.phase is Phase.MUTATING else worker.validating
        register(name, version=hooks[path].version, description=f"{policy.policy}, by {path.name}")(judged)
    worker.main(arguments)


async def _described(configuration: Configuration, runner: HookRunner) -> dict[Path, HookDescription]:
    cancel_when_told()
    targets = [(name, worker.hook) for name, worker in configuration.workers.items() if worker.hook is not None]
    found = await asyncio.gather(
        *(describe(_path(configuration, name), target.objects, runner) for name, target in targets),
        return_exceptions=True,
    )
    hooks: dict[Path, HookDescription] = {}
    mistakes = []
    for (name, _), description in zip(targets, found, strict=True):
        if isinstance(description, HookError):
            mistakes.append(str(description))
        elif isinstance(description, BaseException):
            raise description
        else:
            hooks[_path(configuration, name)] = description
    if mistakes:
        raise UnservedError("; ".join(mistakes))
    return hooks


def _path(configuration: Configuration, worker: str) -> Path:
    target = configuration.workers[worker].hook
    assert target is not None  # noqa: S101 - a directory of hooks brings hooks
    return hook_path(target.path, target.directory)


def _name(binding: str, who: str, taken: dict[str, str]) -> str:
    """A binding's name as a policy.

    Raises:
        UnservedError: it cannot be one.
    """
    name = webhook_id(binding)
    if errors := dns_label(name):
        raise UnservedError(f"{who} cannot be served as policy {name!r}: {errors[0]}; rename it")
    if name in taken:
        raise UnservedError(f"{who} and {taken[name]} would both be policy {name!r}; rename one of them")
    taken[name] = who
    return name


def _judged(
    path: Path, hook: HookDescription, phase: Phase, binding: str, runner: HookRunner
) -> Callable[[Request], Awaitable[Answer]]:
    snapshots = hook.snapshots.get((phase, binding))

    async def judged(request: Request) -> Answer:
        question = Question(binding=binding, phase=phase, document=request.raw, snapshots=snapshots, uid=request.uid)
        unchanged = stamp(path) == hook.stamp
        answer = await runner.judge(path, question, deadline=monotonic() + LONGEST_SECONDS)
        if not unchanged or stamp(path) != hook.stamp:
            return Failure(message=f"hook {path} has changed; the worker ends, to be started again")
        return _answer(answer)

    return judged


def _answer(answer: verdicts.Answer) -> Answer:
    """The same in the SDK's words."""
    match answer:
        case verdicts.Allow(change=None):
            return Allow(warnings=answer.warnings)
        case verdicts.Allow():
            assert answer.change is not None  # noqa: S101 - the case before
            return Allow(
                change=Change(kind=ChangeKind.JSON_PATCH, content=answer.change.content), warnings=answer.warnings
            )
        case verdicts.Deny():
            return Deny(message=answer.message, code=answer.code, reason=answer.reason, warnings=answer.warnings)
        case verdicts.Failure():
            return Failure(message=f"{answer.reason}: {answer.message}")


def _log_through_logging() -> None:
    """What hooks write, and what is said of them, goes where the worker's own log goes."""
    structlog.configure(
        processors=[structlog.stdlib.filter_by_level, structlog.processors.format_exc_info, _line],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
    )
    logging.getLogger("asyncio").setLevel(logging.WARNING)


def _line(_logger: Any, _method: str, event: structlog.typing.EventDict) -> str:
    """``EVENT (NAME=VALUE, …)``; a traceback below."""
    text, trace = event.pop("event"), event.pop("exception", None)
    told = ", ".join(f"{name}={value}" for name, value in event.items())
    line = escaped(f"{text} ({told})" if told else str(text))
    return f"{line}\n{trace}" if trace else line
