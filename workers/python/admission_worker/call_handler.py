"""Turns one policy call into one outcome, for ``Review`` and ``ReviewStream``.

Every call gets an outcome. An error is not a verdict: if a policy raises, returns an invalid answer, or cannot read its
document or settings, the outcome is a failure, and the operator's failurePolicy decides. The exception's type goes to
the gateway; its text and traceback, which may have secrets, stay in the worker's log.

``CallHandler.begin`` returns the outcome of a plain function at once, which makes it cheap, and otherwise a coroutine.
Cancelling the coroutine cancels the work, except in a thread: Python cannot stop a thread, so its result is dropped.

Each call runs in its own context (``contextvars``), in a thread too. So a policy's context variables end with the call,
and log and trace belong to it.
"""

import asyncio
import inspect
import logging
from collections.abc import Coroutine, Mapping
from concurrent.futures import Executor
from contextvars import copy_context
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from admission_worker import logs, tracing
from admission_worker.answers import Allow, Answer, Failure
from admission_worker.changes import ChangeKind
from admission_worker.errors import InvalidAnswerError, InvalidDocumentError, InvalidSettingsError
from admission_worker.limits import Limits
from admission_worker.outcomes import Outcome, accepted, failure, outcome_of
from admission_worker.policies import Phase, Policy, Style
from admission_worker.proto.admission.worker.v1 import worker_pb2
from admission_worker.request import Request
from admission_worker.settings import KeptSettings
from admission_worker.tracing import TraceContext

_LOG = logging.getLogger("admission_worker")

_UNKNOWN_POLICY = worker_pb2.FAILURE_REASON_UNKNOWN_POLICY
_INVALID_SETTINGS = worker_pb2.FAILURE_REASON_INVALID_SETTINGS

_ENDING = (KeyboardInterrupt, GeneratorExit)
"""Exceptions that end the worker or close a coroutine; they are not the policy's."""

ENVELOPE_BYTES = 64
"""Bytes of a message around one outcome: an id of up to 10, and tags and lengths of up to 6 each."""


class _PreparedCall(Struct, frozen=True, kw_only=True):
    """A call that is ready to run: policy, settings and document are valid."""

    policy: Policy
    version: str
    request: Request
    settings: Any
    trace_context: TraceContext

    def run(self) -> Any:
        """Call the policy's function."""
        return self.policy.function(*self.policy.arguments(self.request, self.settings))


class CallHandler:
    """Runs policy calls. Each served worker has one, on one event loop.

    Args:
        worker: the worker's name, for messages.
        policies: by name.
        version: the worker's version, for policies without their own.
        limits: of cached settings and of the size of an outcome.
        threads: for blocking policies.
    """

    __slots__ = ("_limits", "_policies", "_settings", "_threads", "_version", "_worker")

    def __init__(
        self, *, worker: str, policies: Mapping[str, Policy], version: str, limits: Limits, threads: Executor
    ) -> None:
        self._worker = worker
        self._policies = policies
        self._version = version
        self._limits = limits
        self._threads = threads
        self._settings = KeptSettings(limits)

    def begin(self, call: worker_pb2.PolicyCall, document: bytes | None) -> Outcome | Coroutine[Any, Any, Outcome]:
        """Begin a call.

        Args:
            call: the call; its document and timeout fields are not read.
            document: the document's JSON text; None: the call has none.

        Returns:
            The outcome, or a coroutine that returns it. Neither raises, except on cancellation.
        """
        return copy_context().run(self._begin, call, document)

    def refusal(
        self,
        call: worker_pb2.PolicyCall,
        message: str,
        reason: worker_pb2.FailureReason = worker_pb2.FAILURE_REASON_UNSPECIFIED,
    ) -> Outcome:
        """The failure of a call that does not run, or has timed out; it is logged."""
        copy_context().run(self._log_failure, call.policy, call.uid, message)
        return failure(message, reason, version=self.version_of(call.policy))

    def version_of(self, name: str) -> str:
        """The version in an outcome: the policy's own, else the worker's."""
        policy = self._policies.get(name)
        return (policy.version if policy is not None else "") or self._version

    def _begin(self, call: worker_pb2.PolicyCall, document: bytes | None) -> Outcome | Coroutine[Any, Any, Outcome]:
        prepared = self._prepare(call, document)
        if isinstance(prepared, Outcome):
            return prepared
        match prepared.policy.style:
            case Style.INLINE:
                return self._run_inline(prepared)
            case Style.ASYNC:
                return self._run_async(prepared)
            case Style.BLOCKING:
                return self._in_thread(prepared)

    def _prepare(self, call: worker_pb2.PolicyCall, document: bytes | None) -> _PreparedCall | Outcome:
        """Read the call's settings and document; return a failure if they are invalid."""
        policy = self._policies.get(call.policy)
        if policy is None:
            held = ", ".join(sorted(self._policies)) or "none"
            message = f"worker {self._worker} holds no policy {call.policy!r}; it holds: {held}"
            return self.refusal(call, message, _UNKNOWN_POLICY)
        if call.phase != policy.phase.value:
            message = f"policy {policy.name} is for {_phase(policy.phase.value)} and was called in {_phase(call.phase)}"
            return self.refusal(call, message, _UNKNOWN_POLICY)
        if document is None:
            return self.refusal(call, f"policy {policy.name} was called without a document")
        try:
            settings = self._settings.read(policy.name, policy.settings, call.settings)
            request = Request(document, uid=call.uid)
        except InvalidSettingsError as error:
            return self.refusal(call, f"settings of policy {policy.name}: {error}", _INVALID_SETTINGS)
        except InvalidDocumentError as error:
            return self.refusal(call, f"policy {policy.name}: {error}")
        version = self.version_of(policy.name)
        return _PreparedCall(
            policy=policy, version=version, request=request, settings=settings, trace_context=tracing.sent_with(call)
        )

    def _run_inline(self, prepared: _PreparedCall) -> Outcome:
        """Run a plain function."""
        logs.judged.set((prepared.policy.name, prepared.request.uid))
        with tracing.span(prepared.policy.name, prepared.request.uid, prepared.trace_context) as verdict:
            try:
                answer = prepared.run()
            except _ENDING:
                raise
            except BaseException as error:  # noqa: BLE001 - sys.exit() in a policy must not end the worker
                outcome = self._raised(prepared, error)
            else:
                outcome = self._answered(prepared, answer)
            verdict.record(outcome.WhichOneof("verdict"))
            return outcome

    async def _run_async(self, prepared: _PreparedCall) -> Outcome:
        """Run a coroutine function. Cancelling this cancels it."""
        logs.judged.set((prepared.policy.name, prepared.request.uid))
        with tracing.span(prepared.policy.name, prepared.request.uid, prepared.trace_context) as verdict:
            try:
                answer = await prepared.run()
            except asyncio.CancelledError as error:
                task = asyncio.current_task()
                if task is not None and task.cancelling():
                    raise
                outcome = self._raised(prepared, error)  # the policy itself cancelled a task
            except _ENDING:
                raise
            except BaseException as error:  # noqa: BLE001 - as in _run_inline
                outcome = self._raised(prepared, error)
            else:
                outcome = self._answered(prepared, answer)
            verdict.record(outcome.WhichOneof("verdict"))
            return outcome

    async def _in_thread(self, prepared: _PreparedCall) -> Outcome:
        """Run a blocking function. ``_run_inline`` does not raise; a future could not pass on a StopIteration."""
        loop, context = asyncio.get_running_loop(), copy_context()
        return await loop.run_in_executor(self._threads, context.run, self._run_inline, prepared)

    def _answered(self, prepared: _PreparedCall, answer: Any) -> Outcome:
        """The outcome of a function's return value."""
        name = prepared.policy.name
        try:
            taken = _without_equal_object(accepted(answer, prepared.policy.phase), prepared.request)
            outcome = outcome_of(taken, prepared.version)
        except Exception as error:  # noqa: BLE001 - an answer that cannot be encoded is invalid too
            if inspect.iscoroutine(answer):
                answer.close()  # otherwise Python warns that it was never awaited
            return self._raised(prepared, error)
        if isinstance(taken, Failure):
            self._log_failure(name, prepared.request.uid, taken.message)
        size, limit = outcome.ByteSize(), self._limits.message_bytes - ENVELOPE_BYTES
        if size > limit:
            message = f"policy {name}: the answer has {size} bytes, at most {limit} fit a message: answer with a patch"
            self._log_failure(name, prepared.request.uid, message)
            return failure(message, version=prepared.version)
        return outcome

    def _raised(self, prepared: _PreparedCall, error: BaseException) -> Outcome:
        """The outcome of a function that raised. Only the SDK's own errors show their text, which has no values."""
        name = prepared.policy.name
        ours = isinstance(error, InvalidAnswerError | InvalidDocumentError)
        what = f"{type(error).__name__}: {error}" if ours else f"{type(error).__name__}; see the worker's log"
        _LOG.error("policy %s raised (uid %s)", name, prepared.request.uid, exc_info=error)
        return failure(f"policy {name} raised {what}", version=prepared.version)

    def _log_failure(self, policy: str, uid: str, message: str) -> None:
        logs.judged.set((policy, uid))
        _LOG.error("policy %s failed: %s (uid %s)", policy, message, uid)


def _without_equal_object(answer: Answer, request: Request) -> Answer:
    """The answer; an allow without a change if its object equals the request's."""
    if not isinstance(answer, Allow) or answer.change is None or answer.change.kind is not ChangeKind.OBJECT:
        return answer
    return replace(answer, change=None) if answer.change.content == request.member_text("object") else answer


def _phase(number: int) -> str:
    return next((f"the {phase.name.lower()} phase" for phase in Phase if phase.value == number), f"no phase ({number})")
