"""What a hook's run comes to where it leaves no verdict of its own, by shell-operator's rules; here and nowhere else.

==========================================================  ===========================================
what happens                                                what it is
==========================================================  ===========================================
it exits with another code than 0, or by a signal           a denial, 403 ``Hook failed``
its answer or its metrics cannot be read                    a denial, 403 ``Hook failed``
it wants objects of the cluster changed                     a denial, 403 ``Hook failed``
it leaves its answer empty                                  a denial, 500 ``… hook task prop error``
it cannot be started                                        WORKER_UNAVAILABLE
its time is over, running or waiting                        WORKER_TIMEOUT
it writes more to its outputs than ``hook_output_bytes``    WORKER_FAILURE
it leaves more than ``hook_response_bytes``, or than 1 MiB
of metrics                                                  INVALID_RESPONSE
a validating one wants a change                             INVALID_RESPONSE
too many of it wait for a process (``hook_waiting``)        OVERLOADED
the gateway's disk is full, or something of ours breaks     INTERNAL
==========================================================  ===========================================

So hooks that fail deny, whatever the policy's failurePolicy. That is the one exception from "an error is not a
verdict", and it is shell-operator's: whoever brings a hook has relied on it. What shell-operator has no words for,
because there nothing ends a hook but the hook, is a failure as everywhere here.
"""

from typing import Final

from gateway.engine.verdicts import Deny, Failure
from gateway.reasons import Reason

HOOK_FAILED: Final = Deny(code=403, message="Hook failed", reason="")
"""In shell-operator's words; what has failed is in the log."""

NO_ANSWER: Final = Deny(code=500, message="handle AdmissionReview: hook task prop error", reason="")
"""In shell-operator's words: the hook has ended well and said nothing."""


def not_started(why: str) -> Failure:
    """It could not be started; ``why`` names it and says what to do."""
    return Failure(reason=Reason.WORKER_UNAVAILABLE, message=f"hook {why}")


def late(hook: str, binding: str) -> Failure:
    """Its time was over, and it was ended."""
    return Failure(
        reason=Reason.WORKER_TIMEOUT,
        message=f"hook {hook} was still running for binding {binding!r} when its time was over, and has been ended; "
        "see its output in the log, or raise timeoutSeconds",
    )


def waited(hook: str, processes: int) -> Failure:
    """Its time was over before it could be started."""
    return Failure(
        reason=Reason.WORKER_TIMEOUT,
        message=f"hook {hook} was not started in time: of the {processes} processes of all hooks (hook_processes), "
        "those that it may have were busy; make hooks faster, or let hook-worker run them",
    )


def too_many(hook: str, waiting: int) -> Failure:
    """One more ask of a hook than may wait."""
    return Failure(
        reason=Reason.OVERLOADED,
        message=f"hook {hook} was not started: {waiting} asks of it wait for a process already, which is the limit "
        "hook_waiting; make it faster, or let hook-worker run it",
    )


def flooded(hook: str, limit: int) -> Failure:
    """It wrote too much to its outputs, and was ended."""
    return Failure(
        reason=Reason.WORKER_FAILURE,
        message=f"hook {hook} wrote more than {limit} bytes to its outputs, which is the limit hook_output_bytes, and "
        "has been ended; let it write less",
    )


def too_large(hook: str, what: str) -> Failure:
    """It left too large a file."""
    return Failure(
        reason=Reason.INVALID_RESPONSE,
        message=f"hook {hook} left too large an answer: {what}; let it write less (of an answer, hook_response_bytes "
        "is the limit)",
    )


def unwanted_patch(binding: str) -> Failure:
    """A validating hook's answer with a patch, in kube-apiserver's words."""
    return Failure(
        reason=Reason.INVALID_RESPONSE,
        message=f'failed calling webhook "{binding}": received invalid webhook response: validating webhook may not '
        "return response.patch",
        hint="leave patch out, or make it a binding of kubernetesMutating",
    )


def unwritable(hook: str, error: OSError) -> Failure:
    """The files through which it is asked could not be made."""
    return Failure(
        reason=Reason.INTERNAL,
        message=f"hook {hook} was not started: the files through which it is asked cannot be written "
        f"({error.strerror}); see the directory that TMPDIR names",
    )


def internal(hook: str, error: Exception) -> Failure:
    """A mistake of ours."""
    return Failure(reason=Reason.INTERNAL, message=f"asking hook {hook}: {type(error).__name__}")
