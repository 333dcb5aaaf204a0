"""What a worker may do wrong, one by one: each a failure with its reason code; the rest is failurePolicy's."""

import asyncio

import grpc
import pytest

from gateway.reasons import Reason
from gateway.transports.limits import TransportLimits
from gateway.transports.proto.admission.worker.v1 import worker_pb2 as pb
from tests.integration.client import message
from tests.integration.process import WAIT_SECONDS
from tests.integration.running import configuration, policy, source
from tests.integration.workers import (
    ALLOW,
    Hanging,
    always,
    answer,
    deny,
    patch,
    scripted,
    status,
)
from tests.traffic import recording

MUTATING = recording("pod-create.0m")
VALIDATING = recording("pod-create.1v")

LABEL = patch('[{"op": "add", "path": "/metadata/labels/seen", "value": "yes"}]')


BAD_ANSWERS = {
    "nothing": (b"", Reason.INVALID_RESPONSE),
    "an outcome that says nothing": (answer(), Reason.INVALID_RESPONSE),
    "an outcome with warnings alone": (answer(warnings=["w"]), Reason.INVALID_RESPONSE),
    "no protobuf": (b"\xff\xff\xff", Reason.INVALID_RESPONSE),
    "protobuf that is cut": (ALLOW[:-1], Reason.INVALID_RESPONSE),
    "text that is no UTF-8": (
        answer(deny=pb.Deny(message="abc")).replace(b"abc", b"\xff\xfe\xfd"),
        Reason.INVALID_RESPONSE,
    ),
    "a change while validating": (LABEL, Reason.INVALID_RESPONSE),
    "a failure": (answer(failure=pb.Failure(message="no database")), Reason.WORKER_FAILURE),
    "a failure without a word": (answer(failure=pb.Failure()), Reason.WORKER_FAILURE),
    "settings refused late": (
        answer(failure=pb.Failure(reason=pb.FAILURE_REASON_INVALID_SETTINGS)),
        Reason.INVALID_SETTINGS,
    ),
    "a policy that it does not know": (
        answer(failure=pb.Failure(reason=pb.FAILURE_REASON_UNKNOWN_POLICY)),
        Reason.CONFIGURATION,
    ),
    "a failure of a new kind": (answer(failure=pb.Failure(reason=77, message="x")), Reason.WORKER_FAILURE),
}


@pytest.mark.parametrize("name", BAD_ANSWERS)
async def test_an_answer_that_says_no_verdict_is_a_failure(call, name):
    """Whatever a worker answers that is neither allow nor deny is a failure with its reason code, under Fail."""
    content, reason = BAD_ANSWERS[name]
    async with call(VALIDATING, worker={"review": always(content)}) as served:
        answered = await served.send(message(VALIDATING))
        assert answered.fails_with(reason), answered


@pytest.mark.parametrize("name", BAD_ANSWERS)
async def test_a_failure_under_ignore_is_loud(call, name):
    """Under Ignore the same failure lets pass, with a warning, an audit annotation and a count."""
    content, reason = BAD_ANSWERS[name]
    async with call(VALIDATING, worker={"review": always(content)}, failure_policy="Ignore") as served:
        response = (await served.send(message(VALIDATING))).response
        assert response["allowed"]
        (warning,) = response["warnings"]
        assert (
            warning
            == f"judge.test.example.com: could not judge this request: {reason} (failurePolicy Ignore: let pass)"
        )
        assert response["auditAnnotations"] == {"judge.test.example.com_failed-open": reason}
        labels = {"phase": "validating", "policy": "test/judge.test.example.com"}
        assert served.metric("failed_open_total", **labels) == 1
        assert served.metric("policy_failures_total", **labels, reason=reason) == 1


BAD_PATCHES = {
    "a test that fails": '[{"op": "test", "path": "/metadata/name", "value": "other"}]',
    "a path that is not there": '[{"op": "remove", "path": "/spec/nothing"}]',
    "a parent that is not there": '[{"op": "add", "path": "/metadata/annotations/a/b", "value": 1}]',
    "an unknown operation": '[{"op": "frob", "path": "/metadata"}]',
    "no array": '{"op": "add"}',
    "no JSON": "[{",
    "a value that is missing": '[{"op": "add", "path": "/metadata/labels/a"}]',
    "a whole that is no object": '[{"op": "replace", "path": "", "value": 5}]',
    "nothing left": '[{"op": "remove", "path": ""}]',
    "a number that is none": '[{"op": "add", "path": "/metadata/labels/a", "value": NaN}]',
    "too deep": '[{"op": "add", "path": "/spec/deep", "value": ' + 300 * "[" + 300 * "]" + "}]",
}


@pytest.mark.parametrize("name", BAD_PATCHES)
async def test_a_patch_that_does_not_apply_is_a_failure(call, name):
    """A patch that does not apply is the policy's INVALID_PATCH, and nothing of it goes out."""
    async with call(MUTATING, worker={"review": always(patch(BAD_PATCHES[name]))}) as served:
        answered = await served.send(message(MUTATING))
        assert answered.fails_with(Reason.INVALID_PATCH), answered


@pytest.mark.parametrize("change", [{"merge_patch": b"[]"}, {"merge_patch": b"5"}, {"object": b"[]"}, {"object": b""}])
async def test_a_change_that_leaves_no_object_is_a_failure(call, change):
    """A merge patch or a whole object that is none is INVALID_PATCH too."""
    async with call(MUTATING, worker={"review": always(answer(allow=pb.Allow(**change)))}) as served:
        answered = await served.send(message(MUTATING))
        assert answered.fails_with(Reason.INVALID_PATCH), answered


async def test_a_patch_to_nothing_is_a_failure(call):
    """On DELETE there is no object to change: a change is INVALID_PATCH."""
    recorded = recording("cm-delete.0m")
    rules = [{"operations": ["*"], "apiGroups": ["*"], "apiVersions": ["*"], "resources": ["*"]}]
    async with call(recorded, worker={"review": always(LABEL)}, rules=rules) as served:
        answered = await served.send(message(recorded))
        assert answered.fails_with(Reason.INVALID_PATCH), answered


@pytest.mark.parametrize("code", list(grpc.StatusCode)[1:], ids=lambda code: code.name)
async def test_a_status_is_never_a_verdict(call, code):
    """A gRPC status other than OK is a failure, PERMISSION_DENIED included, and its text stays on one line."""
    async with call(VALIDATING, worker={"review": status(code, "not\n\ttoday \x1b[31m")}) as served:
        answered = await served.send(message(VALIDATING))
        reasons = {
            grpc.StatusCode.UNAVAILABLE: Reason.WORKER_UNAVAILABLE,
            grpc.StatusCode.DEADLINE_EXCEEDED: Reason.WORKER_TIMEOUT,
        }
        assert answered.fails_with(reasons.get(code, Reason.WORKER_FAILURE)), answered
        assert answered.response["status"]["message"].isprintable()


async def test_a_worker_that_raises_is_a_failure(call):
    """An exception inside the worker is its failure, with the status that gRPC gives it."""

    async def review(request, context):
        raise RuntimeError("of the worker's own")

    async with call(VALIDATING, worker={"review": review}) as served:
        answered = await served.send(message(VALIDATING))
        assert answered.fails_with(Reason.WORKER_FAILURE), answered


async def test_an_answer_over_the_message_limit_is_a_failure(call):
    """A message larger than the limit is refused before it is read, and the connection lives on."""
    contents = [deny("x" * 200_000), deny("short")]

    async def review(request, context):
        return contents.pop(0)

    limits = TransportLimits(answer_message_bytes=100_000)
    async with call(VALIDATING, worker={"review": review}, limits=limits) as served:
        answered = await served.send(message(VALIDATING))
        assert answered.fails_with(Reason.WORKER_FAILURE), answered
        answered = await served.send(message(VALIDATING))
        assert answered.response["status"]["message"] == "short"


async def test_a_long_failure_is_cut(call):
    """What a worker says of its failure is shown on one line, and only its beginning."""
    said = answer(failure=pb.Failure(message="why\n" * 10_000))
    async with call(VALIDATING, worker={"review": always(said)}) as served:
        answered = await served.send(message(VALIDATING))
        assert answered.fails_with(Reason.WORKER_FAILURE), answered
        shown = answered.response["status"]["message"]
        assert shown.isprintable()
        assert len(shown) < 1000


async def test_a_slow_worker_has_the_policys_timeout(call):
    """A worker that does not answer is WORKER_TIMEOUT when timeoutSeconds end, and its call is cancelled."""
    review = Hanging()
    async with call(VALIDATING, worker={"review": review}, timeoutSeconds=0.2) as served:
        while not review.called.is_set():  # a stalled machine may use up the time before the call
            answered = await served.send(message(VALIDATING))
            assert answered.fails_with(Reason.WORKER_TIMEOUT), answered
        async with asyncio.timeout(WAIT_SECONDS):
            await review.cancelled.wait()


@pytest.mark.parametrize("recorded", [MUTATING, VALIDATING], ids=["mutating", "validating"])
async def test_the_answer_leaves_before_the_api_server_gives_up(call, recorded):
    """With ?timeout=1s a hanging worker is BUDGET_EXHAUSTED, 429 with retryAfterSeconds, while a client still waits."""
    sent = message(recorded).replace(b"timeout=10s", b"timeout=1s")
    async with call(recorded, worker={"review": Hanging()}) as served:
        answered = await served.send(sent)
        status_ = answered.response["status"]
        assert (status_["code"], status_["reason"]) == (429, "TooManyRequests")
        assert status_["details"]["retryAfterSeconds"] == 1
        assert status_["message"].startswith(f"{Reason.BUDGET_EXHAUSTED}: ")
        (decision,) = served.decisions.values()
        assert decision.ends - decision.started == pytest.approx(0.45)


async def test_a_budget_that_ends_lets_the_others_count(gateway):
    """When the budget ends, the verdicts that are there count, and the rest go to their own failure policies."""

    async def review(request, context):
        name = pb.ReviewRequest.FromString(request).call.policy
        if name == "slow":
            await asyncio.get_running_loop().create_future()
        return deny("a denial in time")

    # Long enough for the quick one on a machine that stands still for a moment.
    sent = message(VALIDATING).replace(b"timeout=10s", b"timeout=5s")
    async with scripted("slow", "quick", review=review) as target:
        policies = [policy("slow", failurePolicy="Ignore"), policy("quick")]
        async with gateway(configuration(source(workers={"scripted": target}, validating=policies))) as served:
            response = (await served.send(sent)).response
            assert response["status"]["message"] == "quick.test.example.com: a denial in time"
            assert response["status"]["code"] == 403
            assert response["auditAnnotations"] == {"slow.test.example.com_failed-open": "BUDGET_EXHAUSTED"}
