"""From what a hook has left, when it has ended by itself, to a verdict: in the order in which shell-operator looks."""

import re
from typing import Final

from gateway.engine.verdicts import Allow, Answer, Change, ChangeKind, Deny
from gateway.hooks import failures
from gateway.hooks.answers import AnswerError, HookAnswer, check_conversion, check_metrics, read_answer
from gateway.hooks.files import RunFiles, TooLargeError
from gateway.policies.model import Phase

METRICS_BYTES: Final = 1_048_576
"""Of a file of metrics, which is read only to see that it can be: an operation has a hundred bytes, a hook a few of
them."""

_NO_OPERATIONS: Final = re.compile(rb"[ \t\r\n]*(?:\[[ \t\r\n]*\]|null)[ \t\r\n]*")
"""A patch that changes nothing, whatever phase it is of."""


class HookFailedError(Exception):
    """A hook that has failed, which shell-operator answers with a denial: ``denial``. ``str(error)`` is for the log."""

    def __init__(self, why: str, denial: Deny = failures.HOOK_FAILED) -> None:
        super().__init__(why)
        self.denial = denial


def verdict(files: RunFiles, *, hook: str, binding: str, phase: Phase, limit: int) -> Answer:
    """What the files say.

    Args:
        files: the hook's.
        hook: its path, for messages.
        binding: which was asked.
        phase: in which it was asked.
        limit: bytes of a file that are read.

    Raises:
        HookFailedError: they say nothing that shell-operator would take.
    """
    try:
        answer = _answer(files, limit)
    except TooLargeError as error:
        return failures.too_large(hook, str(error))
    except AnswerError as error:
        raise HookFailedError(str(error)) from None
    except OSError as error:
        raise HookFailedError(f"a file of its answer cannot be read: {error.strerror or error}") from None
    if answer is None:
        raise HookFailedError(
            "it has left no answer; it must write one to $VALIDATING_RESPONSE_PATH", failures.NO_ANSWER
        )
    if not answer.allowed:
        return Deny(code=answer.code, message=answer.message, reason="", warnings=answer.warnings)
    if answer.patch and phase is Phase.VALIDATING:
        return failures.unwanted_patch(binding)
    change = None
    if answer.patch and not _NO_OPERATIONS.fullmatch(answer.patch):
        change = Change(kind=ChangeKind.KUBERNETES_PATCH, content=answer.patch)
    return Allow(change=change, warnings=answer.warnings)


def _answer(files: RunFiles, limit: int) -> HookAnswer | None:
    """The answer; None if there is none."""
    try:
        check_metrics(files.metrics(min(limit, METRICS_BYTES)))
    except AnswerError as error:
        raise AnswerError(f"the file of METRICS_PATH: {error}") from None
    content = files.response(limit)
    try:
        answer = read_answer(content) if content else None
    except AnswerError as error:
        raise AnswerError(f"the file of VALIDATING_RESPONSE_PATH: {error}") from None
    conversion = files.conversion(limit)
    try:
        if conversion:
            check_conversion(conversion)
    except AnswerError as error:
        raise AnswerError(f"the file of CONVERSION_RESPONSE_PATH: {error}") from None
    if files.patches(limit):
        raise AnswerError(
            "it wants objects of the cluster changed by KUBERNETES_PATCH_PATH, which this gateway cannot do; let the "
            "hook change them itself, or leave that to shell-operator"
        )
    return answer
