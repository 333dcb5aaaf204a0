"""What a call of a hook results in where the hook leaves no verdict, by shell-operator's rules.

==========================================================  ===========================================
what happens                                                result
==========================================================  ===========================================
it exits with another status than 0, or by a signal         a denial, 403 ``Hook failed``
its answer or its metrics cannot be read                    a denial, 403 ``Hook failed``
it requests changes to objects that fail, or that only
hook-worker in a cluster makes                              a denial, 403 ``Hook failed``
it leaves its answer empty                                  a denial, 500 ``… hook task prop error``
it cannot be started                                        WORKER_UNAVAILABLE
its deadline passes while it runs or waits                  WORKER_TIMEOUT
it writes more to its outputs than ``hook_output_bytes``    WORKER_FAILURE
it leaves more than ``hook_response_bytes``, or than 1 MiB
of metrics                                                  INVALID_RESPONSE
a validating hook leaves a patch                            INVALID_RESPONSE
too many calls of it wait (``hook_waiting``)                OVERLOADED
the gateway's disk is full, or the gateway has a bug        INTERNAL
==========================================================  ===========================================

So a failed hook denies, whatever the policy's failurePolicy is. This is shell-operator's behaviour, on which its users
rely, and the only exception to the rule that an error is not a verdict. What shell-operator has no response for,
because it never stops a hook, is a failure, as for all other workers.
"""

from typing import Final

from gateway.engine.verdicts import Deny, Failure
from gateway.reasons import Reason

HOOK_FAILED: Final = Deny(code=403, message="Hook failed", reason="")
"""shell-operator's message; the log says what has failed."""

NO_ANSWER: Final = Deny(code=500, message="handle AdmissionReview: hook task prop error", reason="")
"""shell-operator's message for a hook that exited with 0 and left no answer."""


def not_started(why: str) -> Failure:
    """The hook could not be started; ``why`` names it and says what to do."""
    return Failure(reason=Reason.WORKER_UNAVAILABLE, message=f"hook {why}")


def timed_out(hook: str, binding: str) -> Failure:
    """The hook was stopped at the deadline."""
    return Failure(
        reason=Reason.WORKER_TIMEOUT,
        message=f"hook {hook} was stopped at its deadline while running for binding {binding!r}; see its output in the "
        "log, or raise timeoutSeconds",
    )


def not_started_in_time(hook: str, processes: int) -> Failure:
    """The deadline passed before the hook could be started."""
    return Failure(
        reason=Reason.WORKER_TIMEOUT,
        message=f"hook {hook} was not started before its deadline: all processes that it may use were busy (limit "
        f"hook_processes: {processes} for all hooks); make hooks faster, or run them with hook-worker",
    )


def too_many(hook: str, waiting: int) -> Failure:
    """The limit of waiting calls is reached."""
    return Failure(
        reason=Reason.OVERLOADED,
        message=f"hook {hook} was not started: {waiting} calls of it wait already (limit hook_waiting: {waiting}); "
        "make it faster, or run it with hook-worker",
    )


def too_much_output(hook: str, limit: int) -> Failure:
    """The hook was stopped at its output limit."""
    return Failure(
        reason=Reason.WORKER_FAILURE,
        message=f"hook {hook} wrote more than {limit} bytes to its outputs (limit hook_output_bytes) and was stopped; "
        "let it write less",
    )


def too_large(hook: str, what: str) -> Failure:
    """A file of the answer is larger than its limit."""
    return Failure(
        reason=Reason.INVALID_RESPONSE,
        message=f"hook {hook} left an answer that is too large: {what}; let it write less (limit of an answer: "
        "hook_response_bytes)",
    )


def unwanted_patch(binding: str) -> Failure:
    """A validating hook left a patch; kube-apiserver's message."""
    return Failure(
        reason=Reason.INVALID_RESPONSE,
        message=f'failed calling webhook "{binding}": received invalid webhook response: validating webhook may not '
        "return response.patch",
        hint="leave patch out, or make it a binding of kubernetesMutating",
    )


def unwritable(hook: str, error: OSError) -> Failure:
    """The files of the run could not be created."""
    return Failure(
        reason=Reason.INTERNAL,
        message=f"hook {hook} was not started: its files cannot be written ({error.strerror}); check the directory "
        "that TMPDIR names",
    )


def internal(hook: str, error: Exception) -> Failure:
    """A bug of the gateway."""
    return Failure(reason=Reason.INTERNAL, message=f"calling hook {hook}: {type(error).__name__}")
