"""One call to one outcome: the path that ``Review`` and ``ReviewStream`` share.

Whatever happens here is an outcome. An error is not a verdict: a policy that raises, returns something absurd, cannot
read its document or its settings has failed, and the operator's failurePolicy decides. The exception's type goes to
the gateway; its text and traceback, which may hold a Secret, stay in the worker's log.

``Judge.begin`` gives the outcome at once where nothing has to be waited for, which is what makes a pure function
cheap, and otherwise a coroutine. Cancelling that coroutine cancels the work, except in a thread: Python cannot stop
one, so its result is dropped.

Each call is judged in a context of its own (``contextvars``), in a thread too: what a policy sets there is gone with
it, and the log and the trace know whose it is.
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

_LOG = logging.getLogger("admission_worker")

_UNKNOWN_POLICY = worker_pb2.FAILURE_REASON_UNKNOWN_POLICY
_INVALID_SETTINGS = worker_pb2.FAILURE_REASON_INVALID_SETTINGS

_ENDING = (KeyboardInterrupt, GeneratorExit)
"""What ends the worker, or a coroutine that is thrown away; not the policy's."""

ENVELOPE_BYTES = 64
"""What a message needs beside one outcome: an id of up to 10 bytes, and tags and lengths of up to 6 bytes each."""


class _Question(Struct, frozen=True, kw_only=True):
    """A call that can be put to its policy: everything is known, nothing has been judged."""

    policy: Policy
    version: str
    request: Request
    settings: Any
    traceparent: str

    def put(self) -> Any:
        """Call the policy's function."""
        return self.policy.function(*self.policy.arguments(self.request, self.settings))


class Judge:
    """Holds the policies and all that is kept between calls. One for each served worker, on one event loop.

    Args:
        worker: the worker's name, for messages.
        policies: by name.
        version: the worker's, for policies without one of their own.
        limits: of settings kept and of the size of an outcome.
        threads: where blocking policies run.
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

    def begin(
        self, call: worker_pb2.PolicyCall, document: bytes | None, *, traceparent: str
    ) -> Outcome | Coroutine[Any, Any, Outcome]:
        """Take a call.

        Args:
            call: the question. Its document, its trace and its timeout are the caller's affair.
            document: the document's JSON text; None: the call has none.
            traceparent: W3C Trace Context of the gateway; ``""``: it does not trace.

        Returns:
            The outcome, or a coroutine that gives it. Neither raises, cancellation excepted.
        """
        return copy_context().run(self._begin, call, document, traceparent)

    def refusal(
        self,
        call: worker_pb2.PolicyCall,
        message: str,
        reason: worker_pb2.FailureReason = worker_pb2.FAILURE_REASON_UNSPECIFIED,
    ) -> Outcome:
        """The failure of a call that is not put to its policy, or no longer waited for; it is logged."""
        copy_context().run(self._log_failure, call.policy, call.uid, message)
        return failure(message, reason, version=self.version_of(call.policy))

    def version_of(self, name: str) -> str:
        """The version that an outcome carries: the policy's own, else the worker's."""
        policy = self._policies.get(name)
        return (policy.version if policy is not None else "") or self._version

    def _begin(
        self, call: worker_pb2.PolicyCall, document: bytes | None, traceparent: str
    ) -> Outcome | Coroutine[Any, Any, Outcome]:
        question = self._question(call, document, traceparent)
        if isinstance(question, Outcome):
            return question
        match question.policy.style:
            case Style.INLINE:
                return self._called(question)
            case Style.ASYNC:
                return self._awaited(question)
            case Style.BLOCKING:
                return self._in_thread(question)

    def _question(self, call: worker_pb2.PolicyCall, document: bytes | None, traceparent: str) -> _Question | Outcome:
        """The call with its settings and document read, or the failure that says why they cannot be."""
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
        return _Question(policy=policy, version=version, request=request, settings=settings, traceparent=traceparent)

    def _called(self, question: _Question) -> Outcome:
        """Run a plain function."""
        logs.judged.set((question.policy.name, question.request.uid))
        with tracing.span(question.policy.name, question.request.uid, question.traceparent) as verdict:
            try:
                answer = question.put()
            except _ENDING:
                raise
            except BaseException as error:  # noqa: BLE001 - sys.exit() in a policy must not end the worker
                outcome = self._raised(question, error)
            else:
                outcome = self._answered(question, answer)
            verdict.is_known(outcome.WhichOneof("verdict"))
            return outcome

    async def _awaited(self, question: _Question) -> Outcome:
        """Run a coroutine function. Cancelling this cancels it."""
        logs.judged.set((question.policy.name, question.request.uid))
        with tracing.span(question.policy.name, question.request.uid, question.traceparent) as verdict:
            try:
                answer = await question.put()
            except asyncio.CancelledError as error:
                task = asyncio.current_task()
                if task is not None and task.cancelling():
                    raise
                outcome = self._raised(question, error)  # the policy cancelled something of its own
            except _ENDING:
                raise
            except BaseException as error:  # noqa: BLE001 - as in _called
                outcome = self._raised(question, error)
            else:
                outcome = self._answered(question, answer)
            verdict.is_known(outcome.WhichOneof("verdict"))
            return outcome

    async def _in_thread(self, question: _Question) -> Outcome:
        """Run a blocking function. ``_called`` raises nothing: a StopIteration, say, could not cross a future."""
        loop, context = asyncio.get_running_loop(), copy_context()
        return await loop.run_in_executor(self._threads, context.run, self._called, question)

    def _answered(self, question: _Question, answer: Any) -> Outcome:
        """The outcome of what a function returned."""
        name = question.policy.name
        try:
            taken = _as_it_travels(accepted(answer, question.policy.phase), question.request)
            outcome = outcome_of(taken, question.version)
        except Exception as error:  # noqa: BLE001 - what cannot be written is no answer either
            if inspect.iscoroutine(answer):
                answer.close()  # otherwise Python warns that it was never awaited
            return self._raised(question, error)
        if isinstance(taken, Failure):
            self._log_failure(name, question.request.uid, taken.message)
        size, limit = outcome.ByteSize(), self._limits.message_bytes - ENVELOPE_BYTES
        if size > limit:
            message = f"policy {name}: the answer has {size} bytes, at most {limit} fit a message: answer with a patch"
            self._log_failure(name, question.request.uid, message)
            return failure(message, version=question.version)
        return outcome

    def _raised(self, question: _Question, error: BaseException) -> Outcome:
        """The outcome of a function that raised. Its text is shown only if it is one of ours, which hold no values."""
        name = question.policy.name
        ours = isinstance(error, InvalidAnswerError | InvalidDocumentError)
        what = f"{type(error).__name__}: {error}" if ours else f"{type(error).__name__}; see the worker's log"
        _LOG.error("policy %s raised (uid %s)", name, question.request.uid, exc_info=error)
        return failure(f"policy {name} raised {what}", version=question.version)

    def _log_failure(self, policy: str, uid: str, message: str) -> None:
        logs.judged.set((policy, uid))
        _LOG.error("policy %s failed: %s (uid %s)", policy, message, uid)


def _as_it_travels(answer: Answer, request: Request) -> Answer:
    """The answer; where it gives the object back untouched, an allow without a change."""
    if not isinstance(answer, Allow) or answer.change is None or answer.change.kind is not ChangeKind.OBJECT:
        return answer
    return replace(answer, change=None) if answer.change.content == request.member_text("object") else answer


def _phase(number: int) -> str:
    return next((f"the {phase.name.lower()} phase" for phase in Phase if phase.value == number), f"no phase ({number})")
