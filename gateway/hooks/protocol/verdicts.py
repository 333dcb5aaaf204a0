"""From the files of a hook that exited with 0 to its verdict: in the order in which shell-operator reads them."""

import re
from collections.abc import Callable
from typing import Final, TypeVar

from msgspec import Struct

from gateway.engine.verdicts import Allow, Answer, Change, ChangeKind, Deny
from gateway.hooks.protocol import outcomes
from gateway.hooks.protocol.answers import AnswerError, check_conversion, check_metrics, read_answer
from gateway.hooks.protocol.operations import Operation, read_operations
from gateway.policies.model import Phase

_NO_OPERATIONS: Final = re.compile(rb"[ \t\r\n]*(?:\[[ \t\r\n]*\]|null)[ \t\r\n]*")
"""A patch that changes nothing, whatever phase it is of."""

_T = TypeVar("_T")


class UnreadFile(Struct, frozen=True):
    """A file that could not be read, and why; ``too_large``: it has more bytes than its limit."""

    reason: str
    too_large: bool = False


class AnswerFiles(Struct, frozen=True, kw_only=True):
    """The contents of the files that a hook leaves: its answer, and what else shell-operator would read."""

    response: bytes | UnreadFile = b""
    conversion: bytes | UnreadFile = b""
    metrics: bytes | UnreadFile = b""
    patches: bytes | UnreadFile = b""


class HookFailedError(Exception):
    """A hook that has failed, which shell-operator answers with a denial: ``denial``. ``str(error)`` is for the log."""

    def __init__(self, why: str, denial: Deny = outcomes.HOOK_FAILED) -> None:
        super().__init__(why)
        self.denial = denial


class _TooLargeError(Exception):
    """A file is larger than its limit."""


def verdict(
    files: AnswerFiles, *, hook: str, binding: str, phase: Phase, operations: list[Operation] | None = None
) -> Answer:
    """The verdict that the files contain.

    Args:
        files: what the hook has left.
        hook: its path, for messages.
        binding: which binding was called.
        phase: in which phase.
        operations: the requested changes to objects are appended; None: a hook that requests some has failed.

    Raises:
        HookFailedError: shell-operator would not accept them.
    """
    try:
        # Metrics are ignored: the gateway has no use for them. But shell-operator fails where it cannot read them.
        _read("METRICS_PATH", files.metrics, check_metrics)
        answer = _read("VALIDATING_RESPONSE_PATH", files.response, read_answer)
        _read("CONVERSION_RESPONSE_PATH", files.conversion, check_conversion)
        requested = _read("KUBERNETES_PATCH_PATH", files.patches, read_operations) or ()
        if requested and operations is None:
            raise HookFailedError(
                "it requests changes to objects of the cluster by KUBERNETES_PATCH_PATH, which only hook-worker with "
                "--cluster makes; run this hook there, or change the objects in the hook itself"
            )
    except _TooLargeError as error:
        return outcomes.too_large(hook, str(error))
    if answer is None:
        raise HookFailedError(
            "it has left no answer; it must write one to $VALIDATING_RESPONSE_PATH", outcomes.NO_ANSWER
        )
    if answer.allowed and answer.patch and phase is Phase.VALIDATING:
        return outcomes.unwanted_patch(binding)
    if operations is not None:
        operations += requested
    if not answer.allowed:
        return Deny(code=answer.code, message=answer.message, reason="", warnings=answer.warnings)
    change = None
    if answer.patch and not _NO_OPERATIONS.fullmatch(answer.patch):
        change = Change(kind=ChangeKind.KUBERNETES_PATCH, content=answer.patch)
    return Allow(change=change, warnings=answer.warnings)


def done_on_error(patches: bytes | UnreadFile) -> tuple[Operation, ...]:
    """The operations of a failed hook that are done all the same (``ignoreHookError``); none if they are invalid."""
    try:
        return tuple(each for each in read_operations(_content(patches)) if each.is_done_on_error)
    except (AnswerError, HookFailedError, _TooLargeError):
        return ()


def _read(variable: str, file: bytes | UnreadFile, read: Callable[[bytes], _T]) -> _T | None:
    """What ``read`` makes of a file; None if the file is empty."""
    content = _content(file)
    try:
        return read(content) if content else None
    except AnswerError as error:
        raise HookFailedError(f"the file of {variable}: {error}") from None


def _content(file: bytes | UnreadFile) -> bytes:
    if isinstance(file, bytes):
        return file
    if file.too_large:
        raise _TooLargeError(file.reason)
    raise HookFailedError(f"a file of its answer cannot be read: {file.reason}")
