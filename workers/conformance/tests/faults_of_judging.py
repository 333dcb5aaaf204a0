"""Workers that describe, validate or judge wrongly."""

import asyncio
import json

import grpc
from google.protobuf.message import DecodeError
from google.protobuf.unknown_fields import UnknownFieldSet

from worker_conformance.proto.admission.worker.v1 import worker_pb2
from workers.conformance.tests.faults import breaks
from workers.conformance.tests.reference_judging import MUTATING, POLICIES, VALIDATING
from workers.conformance.tests.reference_serving import Stream, Worker

ALLOW = worker_pb2.Outcome(allow=worker_pb2.Allow())
INVALID = worker_pb2.FAILURE_REASON_INVALID_SETTINGS


def allow(**fields):
    return worker_pb2.Outcome(allow=worker_pb2.Allow(**fields))


# ------------------------------------------------------------------------------------------ Describe


def describing(*names):
    """A worker whose description a function alters; ``policy`` is the entry of ``plain``."""

    def register(alter):
        class Describes(Worker):
            def describe(self, request):
                described = super().describe(request)
                policy = next(one for one in described.policies if one.name == "plain")
                alter(described, policy, request)
                return described

        return breaks(*names)(Describes)

    return register


@describing("describe.is-complete")
def without_a_version(described, policy, request):
    described.version = ""


@describing("describe.is-complete", "describe.names-are-labels")
def without_a_name(described, policy, request):
    policy.name = ""


@describing("describe.names-are-labels")
def twice(described, policy, request):
    described.policies.append(policy)


@describing("describe.phases-are-valid")
def without_phases(described, policy, request):
    del policy.phases[:]


@describing("describe.claims-are-pointers")
def the_empty_pointer(described, policy, request):
    policy.inputs.pointers.pointers.append("")


@describing("describe.claims-are-pointers")
def an_empty_claim(described, policy, request):
    policy.inputs.Clear()
    policy.inputs.SetInParent()


@describing("describe.writes-belong-to-mutating")
def a_validating_policy_that_writes(described, policy, request):
    policy.writes.pointers.pointers.append("/metadata")


@describing("describe.schemas-parse")
def an_invalid_schema(described, policy, request):
    policy.settings_schema = b'{"type": "objekt"}'


@describing("describe.is-stable")
def by_the_gateways_version(described, policy, request):
    policy.description = request.gateway_version


@describing("describe.is-accurate")
def a_policy_that_is_not_there(described, policy, request):
    described.policies.add(name="phantom", phases=[VALIDATING])


@describing("describe.is-accurate")
def a_phase_that_is_not_there(described, policy, request):
    policy.phases.append(MUTATING)


@breaks("describe.is-cheap")
class FailsAfterMany(Worker):
    calls = 0

    async def call_describe(self, received, context):
        self.calls += 1
        if self.calls > 50:
            await context.abort(grpc.StatusCode.RESOURCE_EXHAUSTED, "described too often")
        return await super().call_describe(received, context)


class StrictStream(Stream):
    def take(self, batch):
        strict(batch)
        super().take(batch)


def strict(message):
    if len(UnknownFieldSet(message)) or any(map(_odd, message.ListFields())):
        raise DecodeError("an unknown field")


def _odd(field):
    return any(
        len(UnknownFieldSet(one))
        for one in (field[1] if isinstance(field[1], list) else [field[1]])
        if hasattr(one, "ByteSize")
    )


@breaks("describe.ignores-unknown-fields", "review.ignores-unknown-fields", "stream.unknown-fields")
class Strict(Worker):
    stream_class = StrictStream

    async def call_describe(self, received, context):
        strict(worker_pb2.DescribeRequest.FromString(received))
        return await super().call_describe(received, context)

    async def call_review(self, received, context):
        strict(worker_pb2.ReviewRequest.FromString(received))
        return await super().call_review(received, context)


# ------------------------------------------------------------------------------------------ settings


def validating(*names):
    """A worker whose errors and warnings a function of (errors, warnings, policy, text) alters."""

    def register(alter):
        class Validates(Worker):
            def validate(self, request):
                errors, warnings = alter(
                    *self.setting_errors(request.policy, request.settings), request.policy, request.settings
                )
                found = worker_pb2.ValidateSettingsResponse(warnings=warnings)
                for pointer, message in errors:
                    found.errors.add(pointer=pointer, message=message)
                return found

        return breaks(*names)(Validates)

    return register


@validating("settings.empty", "expected.settings-errors")
def without_a_message(errors, warnings, policy, text):
    return [(pointer, "") for pointer, _ in errors], warnings


@validating("settings.empty")
def with_a_path(errors, warnings, policy, text):
    return [("settings.odd", message) for _, message in errors], warnings


@validating("settings.not-json")
def all_that_is_no_json(errors, warnings, policy, text):
    return [error for error in errors if "no JSON" not in error[1]], warnings


@validating("settings.not-an-object")
def all_that_is_no_object(errors, warnings, policy, text):
    return [error for error in errors if "must be an object" not in error[1]], warnings


@validating("settings.unknown-policy")
def any_policy(errors, warnings, policy, text):
    return [error for error in errors if "no policy" not in error[1]], warnings


@validating("settings.errors-have-pointers")
def without_a_place(errors, warnings, policy, text):
    return [("", message) for _, message in errors], warnings


@validating("settings.errors-have-pointers")
def the_first_error(errors, warnings, policy, text):
    return errors[:1], warnings


@validating("settings.required-and-unknown-members", "settings.review-agrees")
def unknown_members(errors, warnings, policy, text):
    return [error for error in errors if "unknown" not in error[1]], warnings


@validating("settings.valid-settings")
def without_warnings(errors, warnings, policy, text):
    return errors, []


@breaks("settings.no-policy-runs")
class JudgesWhenValidating(Worker):
    async def call_validate(self, received, context):
        request = worker_pb2.ValidateSettingsRequest.FromString(received)
        if request.policy == "probe-sleep":
            await asyncio.sleep(json.loads(request.settings).get("seconds", 0))
        return await super().call_validate(received, context)


@breaks("settings.is-repeatable")
class CountsValidations(Worker):
    count = 0

    def validate(self, request):
        self.count += 1
        found = super().validate(request)
        found.warnings.append(f"validated {self.count} times")
        return found


# -------------------------------------------------------------------------------------------- judging


def judging(*names):
    """A worker whose outcomes a function of (outcome, call, document, worker) alters; None: unchanged."""

    def register(alter):
        class Judges(Worker):
            count, first, last, trace = 0, None, None, ""

            async def judge(self, call, document, trace=""):
                outcome = await super().judge(call, document, trace)
                self.now = trace
                altered = alter(outcome, call, document, self)
                return outcome if altered is None else altered

        return breaks(*names)(Judges)

    return register


@judging("describe.outcome-versions", "describe.own-versions")
def another_version(outcome, call, document, worker):
    outcome.version = "0"


@judging("expected.verdicts")
def other_than_expected(outcome, call, document, worker):
    outcome.warnings.append("x")


@judging("settings.review-agrees", "review.invalid-settings", "review.broken-settings")
def settings_do_not_matter(outcome, call, document, worker):
    return allow() if outcome.failure.reason == INVALID else None


@judging("review.broken-settings")
def without_a_reason(outcome, call, document, worker):
    outcome.failure.reason = 0 if outcome.HasField("failure") else outcome.failure.reason


@judging("settings.cached-settings-are-distinct")
def the_first_settings(outcome, call, document, worker):
    worker.first = worker.first or list(outcome.warnings)
    outcome.warnings[:] = worker.first


@judging("review.unknown-policy")
def any_policy_allows(outcome, call, document, worker):
    return None if call.policy in POLICIES else allow()


@judging("review.unset-phase")
def an_unset_phase_is_the_policys(outcome, call, document, worker):
    return None if call.phase else allow()


@judging("review.missing-document", "stream.invalid-index")
def no_document_is_needed(outcome, call, document, worker):
    return allow() if document is None else None


@judging("review.broken-document")
def any_document(outcome, call, document, worker):
    return allow() if "unreadable" in outcome.failure.message else None


@judging("review.deep-document")
def not_too_deep(outcome, call, document, worker):
    if document and b"[[[[" in document:
        raise RecursionError


@judging("review.unset-call", "stream.empty-call")
def nothing_is_allowed(outcome, call, document, worker):
    return allow() if not call.policy else None


@judging("review.ignores-uid-and-trace")
def by_uid(outcome, call, document, worker):
    outcome.warnings.append(call.uid)


@judging(
    "review.concurrent-calls",
    "stream.thousand-calls",
    "stream.grouping-is-free",
    "stream.parallel-streams",
    "stream.shared-documents",
)
def the_last_ones_answer(outcome, call, document, worker):
    last, worker.last = worker.last, worker_pb2.Outcome.FromString(outcome.SerializeToString())
    return last if last is not None and call.policy == "probe-echo" else None


@breaks("review.concurrent-waits", "stream.fast-overtakes-slow")
class OneAfterAnother(Worker):
    def __init__(self):
        super().__init__()
        self.lock = asyncio.Lock()

    async def judge(self, call, document, trace=""):
        async with self.lock:
            return await super().judge(call, document, trace)


@breaks("review.unreadable-message", "stream.unreadable-message")
class TakesAnything(Worker):
    async def call_validate(self, received, context):
        try:
            return self.validate(worker_pb2.ValidateSettingsRequest.FromString(received))
        except DecodeError:
            return worker_pb2.ValidateSettingsResponse()

    class stream_class(Stream):  # noqa: N801 - the worker's attribute
        async def reading(self):
            while (received := await self.context.read()) is not grpc.aio.EOF:
                try:
                    self.take(worker_pb2.ReviewStreamRequest.FromString(received))
                except DecodeError:
                    continue
            self.close()


@breaks("review.unknown-method")
class AnswersAnyMethod(Worker):
    def handlers(self):
        handler = grpc.unary_unary_rpc_method_handler(
            self.call_describe, None, worker_pb2.DescribeResponse.SerializeToString
        )
        return (
            *super().handlers(),
            grpc.method_handlers_generic_handler("admission.worker.v2.Worker", {"Describe": handler}),
        )
