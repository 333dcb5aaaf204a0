"""What a worker may do wrong, one by one: each a failure with its reason code; the rest is failurePolicy's."""

import asyncio
import json
from contextlib import asynccontextmanager

import grpc
import pytest

from gateway.reasons import Reason
from gateway.transports import TransportLimits
from gateway.transports.proto.admission.worker.v1 import worker_pb2 as pb
from tests.integration.client import message
from tests.integration.running import configuration, policy, source, until
from tests.integration.workers import (
    ALLOW,
    Hanging,
    always,
    answer,
    deny,
    description,
    garbage,
    patch,
    scripted,
    status,
)
from tests.traffic import recording

MUTATING = recording("pod-create.0m")
VALIDATING = recording("pod-create.1v")

LABEL = patch('[{"op": "add", "path": "/metadata/labels/seen", "value": "yes"}]')


@pytest.fixture
def ask(gateway):
    """``ask(review=..., mutating=...)``: what the gateway answers when its worker does that, and the decision."""

    @asynccontextmanager
    async def put(recorded=VALIDATING, *, failure_policy="Fail", settings=None, worker=None, limits=None, **fields):
        about = policy("judge", failurePolicy=failure_policy, settings=settings or {}, **fields)
        phase = {recorded.phase: [about]}
        async with scripted("judge", **(worker or {})) as target:
            known = configuration(source(workers={"scripted": target}, **phase))
            async with gateway(known, transport_limits=limits or TransportLimits()) as served:
                yield served

    return put


def failed(answered, reason):
    """Whether an answer is a failure with this reason, under failurePolicy Fail."""
    status_ = answered.response["status"]
    assert not answered.response["allowed"]
    assert "patch" not in answered.response
    assert (status_["code"], status_["reason"]) == (500, "InternalError"), status_
    assert status_["message"].startswith(f"{reason}: "), status_
    return True


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
async def test_an_answer_that_says_no_verdict_is_a_failure(ask, name):
    """Whatever a worker answers that is neither allow nor deny is a failure with its reason code, under Fail."""
    content, reason = BAD_ANSWERS[name]
    async with ask(worker={"review": always(content)}) as served:
        assert failed(await served.send(message(VALIDATING)), reason)


@pytest.mark.parametrize("name", BAD_ANSWERS)
async def test_a_failure_under_ignore_is_loud(ask, name):
    """Under Ignore the same failure lets pass, with a warning, an audit annotation and a count."""
    content, reason = BAD_ANSWERS[name]
    async with ask(worker={"review": always(content)}, failure_policy="Ignore") as served:
        response = (await served.send(message(VALIDATING))).response
        assert response["allowed"]
        (warning,) = response["warnings"]
        assert warning.startswith(f"judge.test.example.com: not judged, let pass by failurePolicy Ignore: {reason}: ")
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
async def test_a_patch_that_does_not_apply_is_a_failure(ask, name):
    """A patch that does not apply is the policy's INVALID_PATCH, and nothing of it goes out."""
    async with ask(MUTATING, worker={"review": always(patch(BAD_PATCHES[name]))}) as served:
        assert failed(await served.send(message(MUTATING)), Reason.INVALID_PATCH)


@pytest.mark.parametrize("change", [{"merge_patch": b"[]"}, {"merge_patch": b"5"}, {"object": b"[]"}, {"object": b""}])
async def test_a_change_that_leaves_no_object_is_a_failure(ask, change):
    """A merge patch or a whole object that is none is INVALID_PATCH too."""
    async with ask(MUTATING, worker={"review": always(answer(allow=pb.Allow(**change)))}) as served:
        assert failed(await served.send(message(MUTATING)), Reason.INVALID_PATCH)


async def test_a_patch_to_nothing_is_a_failure(ask):
    """On DELETE there is no object to change: a change is INVALID_PATCH."""
    recorded = recording("cm-delete.0m")
    rules = [{"operations": ["*"], "apiGroups": ["*"], "apiVersions": ["*"], "resources": ["*"]}]
    async with ask(recorded, worker={"review": always(LABEL)}, rules=rules) as served:
        assert failed(await served.send(message(recorded)), Reason.INVALID_PATCH)


@pytest.mark.parametrize("code", list(grpc.StatusCode)[1:], ids=lambda code: code.name)
async def test_a_status_is_never_a_verdict(ask, code):
    """A gRPC status other than OK is a failure, PERMISSION_DENIED included, and its text stays on one line."""
    async with ask(worker={"review": status(code, "not\n\ttoday \x1b[31m")}) as served:
        answered = await served.send(message(VALIDATING))
        reasons = {
            grpc.StatusCode.UNAVAILABLE: Reason.WORKER_UNAVAILABLE,
            grpc.StatusCode.DEADLINE_EXCEEDED: Reason.WORKER_TIMEOUT,
        }
        assert failed(answered, reasons.get(code, Reason.WORKER_FAILURE))
        assert answered.response["status"]["message"].isprintable()


async def test_a_worker_that_raises_is_a_failure(ask):
    """An exception inside the worker is its failure, with the status that gRPC gives it."""

    async def review(request, context):
        raise RuntimeError("of the worker's own")

    async with ask(worker={"review": review}) as served:
        assert failed(await served.send(message(VALIDATING)), Reason.WORKER_FAILURE)


async def test_an_answer_over_the_message_limit_is_a_failure(ask):
    """A message larger than the limit is refused before it is read, and the connection lives on."""
    contents = [deny("x" * 200_000), deny("short")]

    async def review(request, context):
        return contents.pop(0)

    async with ask(worker={"review": review}, limits=TransportLimits(message_bytes=100_000)) as served:
        assert failed(await served.send(message(VALIDATING)), Reason.WORKER_FAILURE)
        answered = await served.send(message(VALIDATING))
        assert answered.response["status"]["message"] == "short"


async def test_a_long_failure_is_cut(ask):
    """What a worker says of its failure is shown on one line, and only its beginning."""
    said = answer(failure=pb.Failure(message="why\n" * 10_000))
    async with ask(worker={"review": always(said)}) as served:
        answered = await served.send(message(VALIDATING))
        assert failed(answered, Reason.WORKER_FAILURE)
        shown = answered.response["status"]["message"]
        assert shown.isprintable()
        assert len(shown) < 1000


async def test_a_slow_worker_has_the_policys_timeout(ask):
    """A worker that does not answer is WORKER_TIMEOUT when timeoutSeconds end, and its call is cancelled."""
    review = Hanging()
    async with ask(worker={"review": review}, timeoutSeconds=0.05) as served:
        assert failed(await served.send(message(VALIDATING)), Reason.WORKER_TIMEOUT)
        async with asyncio.timeout(10):
            await review.cancelled.wait()


@pytest.mark.parametrize("recorded", [MUTATING, VALIDATING], ids=["mutating", "validating"])
async def test_the_answer_leaves_before_the_api_server_gives_up(ask, recorded):
    """With ?timeout=1s a hanging worker is BUDGET_EXHAUSTED, 429 with retryAfterSeconds, while somebody still waits."""
    sent = message(recorded).replace(b"timeout=10s", b"timeout=1s")
    async with ask(recorded, worker={"review": Hanging()}) as served:
        answered = await served.send(sent, patience=1.0)
        status_ = answered.response["status"]
        assert (status_["code"], status_["reason"]) == (429, "TooManyRequests")
        assert status_["details"]["retryAfterSeconds"] == 1
        assert status_["message"].startswith(f"{Reason.BUDGET_EXHAUSTED}: ")
        (decision,) = served.decisions.values()
        assert decision.ends - decision.started == pytest.approx(0.45)


async def test_a_budget_that_ends_lets_the_others_count(gateway):
    """When the budget ends, the verdicts that are there count, and the rest go to their own failure policies."""

    async def review(request, context):
        name = pb.ReviewRequest.FromString(request).ask.policy
        if name == "slow":
            await asyncio.get_running_loop().create_future()
        return deny("a denial in time")

    sent = message(VALIDATING).replace(b"timeout=10s", b"timeout=1s")
    async with scripted("slow", "quick", review=review) as target:
        policies = [policy("slow", failurePolicy="Ignore"), policy("quick")]
        async with gateway(configuration(source(workers={"scripted": target}, validating=policies))) as served:
            response = (await served.send(sent, patience=1.0)).response
            assert response["status"]["message"] == "quick.test.example.com: a denial in time"
            assert response["status"]["code"] == 403
            assert response["auditAnnotations"] == {"slow.test.example.com_failed-open": "BUDGET_EXHAUSTED"}


# ------------------------------------------------------------------------------------------ before it may be asked


def refused(pointer, text):
    return pb.ValidateSettingsResponse(errors=[pb.SettingsError(pointer=pointer, message=text)]).SerializeToString()


UNUSABLE = {
    "settings refused": ({"validate": always(refused("/a/0", "must not be 1"))}, {}, "settings/a/0: must not be 1"),
    "no such policy": ({"describe": always(description("other"))}, {}, "holds no policy 'judge'"),
    "another phase": (
        {"describe": always(description("judge", phases=[pb.PHASE_MUTATING]))},
        {},
        "cannot be used for validating",
    ),
    "no phase": ({"describe": always(description("judge", phases=[]))}, {}, "cannot be used for validating"),
    "no version": ({"describe": always(description("judge", version=""))}, {}, "describes no version"),
    "settings that nobody takes": ({"validate": False}, {"settings": {"a": [1]}}, "takes no settings"),
}


@pytest.mark.parametrize("name", UNUSABLE)
async def test_a_policy_that_its_worker_does_not_take_fails(ask, name):
    """Where a described worker cannot be used for a policy, the policy is a failure CONFIGURATION that says why."""
    worker, fields, why = UNUSABLE[name]
    review = Hanging()
    async with ask(worker=worker | {"review": review}, **fields) as served:
        answered = await served.send(message(VALIDATING))
        assert failed(answered, Reason.CONFIGURATION)
        assert why in answered.response["status"]["message"]
        assert not review.asked.is_set()


BAD_DESCRIPTIONS = {
    "Describe fails": ({"describe": status(grpc.StatusCode.INTERNAL, "not now")}, "INTERNAL: not now"),
    "Describe is no protobuf": ({"describe": always(b"\xff\xff")}, "Describe with bytes that are none"),
    "ValidateSettings fails": ({"validate": status(grpc.StatusCode.INTERNAL, "not now")}, "INTERNAL: not now"),
    "ValidateSettings is no protobuf": ({"validate": always(b"\xff\xff")}, "ValidateSettings with bytes that are none"),
}


@pytest.mark.parametrize("name", BAD_DESCRIPTIONS)
async def test_a_worker_that_cannot_be_described_is_not_asked(gateway, name):
    """A worker that answers, but cannot be described, leaves its policies as failures CONFIGURATION that say why."""
    worker, why = BAD_DESCRIPTIONS[name]
    async with scripted("judge", **worker) as target:
        known = configuration(source(workers={"scripted": target}, validating=[policy("judge")]))
        async with gateway(known, wait=0.0) as served:
            await until(lambda: why in getattr(served.standing("judge"), "message", ""))
            assert failed(await served.send(message(VALIDATING)), Reason.CONFIGURATION)


async def test_a_worker_without_settings_needs_no_validation(ask):
    """ValidateSettings may be missing: then {} is accepted, and the policy is asked."""
    async with ask(worker={"validate": False, "review": always(deny("asked"))}) as served:
        assert (await served.send(message(VALIDATING))).response["status"]["message"] == "asked"


GARBAGE = {
    "an HTTP/1.1 server": b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n",
    "noise": bytes(range(256)),
    "silence": b"",
}


@pytest.mark.parametrize("name", GARBAGE)
async def test_whoever_speaks_no_grpc_is_not_reached(gateway, name):
    """Where something else listens at a worker's address, its policies fail, and the gateway serves and is ready."""
    async with garbage(GARBAGE[name]) as (target, met):
        known = configuration(source(workers={"scripted": target}, validating=[policy("judge")]))
        async with gateway(known, wait=0.0) as served:
            async with asyncio.timeout(10):
                await met.wait()
            answered = await served.send(message(VALIDATING))
            assert failed(answered, Reason.CONFIGURATION)
            assert "is not reached yet" in answered.response["status"]["message"]
            assert await served.admin("/readyz") == (200, "ok\n")


async def test_a_worker_is_found_when_it_appears(gateway, tmp_path):
    """A worker that is away when the gateway starts is described when it comes, and its policies judge."""
    address = f"unix:{tmp_path}/late.sock"
    known = configuration(source(workers={"scripted": address}, validating=[policy("judge")]))
    async with gateway(known, wait=0.0) as served:
        assert failed(await served.send(message(VALIDATING)), Reason.CONFIGURATION)
        assert await served.admin("/readyz") == (200, "ok\n")
        async with scripted("judge", review=always(deny("here I am")), address=address):
            await until(lambda: served.standing("judge") == "1")
            assert (await served.send(message(VALIDATING))).response["status"]["message"] == "here I am"


async def test_a_worker_that_goes_is_unavailable_until_it_is_back(gateway, tmp_path):
    """While a described worker is away its policies are WORKER_UNAVAILABLE; a new one is described anew, and judges."""
    address = f"unix:{tmp_path}/comes-and-goes.sock"
    known = configuration(source(workers={"scripted": address}, validating=[policy("judge")]))
    async with scripted("judge", address=address):
        served_ = gateway(known)
        served = await served_.__aenter__()
    try:
        assert failed(await served.send(message(VALIDATING)), Reason.WORKER_UNAVAILABLE)
        assert served.standing("judge") == "1"
        newer = {"describe": always(description("judge", version="2")), "review": always(deny("newer"))}
        async with scripted("judge", address=address, **newer):
            await until(lambda: served.standing("judge") == "2")
            assert (await served.send(message(VALIDATING))).response["status"]["message"] == "newer"
    finally:
        await served_.__aexit__(None, None, None)


# ----------------------------------------------------------------------------------------------- several at once


async def test_validating_policies_are_asked_at_the_same_time(gateway):
    """Two workers that each wait until the other is asked both answer: one after the other would never end."""
    both = asyncio.Barrier(2)

    async def review(request, context):
        async with asyncio.timeout(10):
            await both.wait()
        return deny(pb.ReviewRequest.FromString(request).ask.policy)

    async with scripted("one", review=review) as first, scripted("two", review=review) as second:
        workers = {"first": first, "second": second}
        policies = [policy("one", worker="first"), policy("two", worker="second")]
        async with gateway(configuration(source(workers=workers, validating=policies))) as served:
            response = (await served.send(message(VALIDATING))).response
            assert response["status"]["message"] == "one.test.example.com: one\ntwo.test.example.com: two"
            assert [cause["reason"] for cause in response["status"]["details"]["causes"]] == ["DENIED", "DENIED"]


async def test_mutating_policies_see_what_the_others_made(gateway):
    """Each mutating policy is shown the object as the ones before it left it, though each has a worker of its own."""
    shown = []

    async def review(request, context):
        ask_ = pb.ReviewRequest.FromString(request).ask
        labels = json.loads(ask_.document)["object"]["metadata"]["labels"]
        shown.append((ask_.policy, labels))
        return patch(json.dumps([{"op": "add", "path": f"/metadata/labels/{ask_.policy}", "value": "was here"}]))

    async with scripted("one", review=review) as first, scripted("two", review=review) as second:
        workers = {"first": first, "second": second}
        policies = [policy("one", worker="first"), policy("two", worker="second")]
        async with gateway(configuration(source(workers=workers, mutating=policies))) as served:
            answered = await served.send(message(MUTATING))
            assert answered.response["allowed"]
            assert shown == [("one", {"app": "x"}), ("two", {"app": "x", "one": "was here"})]


async def test_no_failure_is_followed_by_an_allow(gateway):
    """A mutating policy under Fail that could not judge ends the chain: no later policy is asked, nothing goes out."""
    asked = []

    async def review(request, context):
        name = pb.ReviewRequest.FromString(request).ask.policy
        asked.append(name)
        return LABEL if name != "fails" else b""

    async with scripted("first", "fails", "last", review=review) as target:
        policies = [policy(name) for name in ("first", "fails", "last")]
        async with gateway(configuration(source(workers={"scripted": target}, mutating=policies))) as served:
            response = (await served.send(message(MUTATING))).response
            assert not response["allowed"]
            assert "patch" not in response
            assert asked == ["first", "fails"]


async def test_a_document_holds_all_but_the_uid(ask):
    """A worker is sent the request as it came, byte for byte in its order, but for the uid, which travels beside."""
    sent = []

    async def review(request, context):
        sent.append(pb.ReviewRequest.FromString(request).ask)
        return ALLOW

    async with ask(worker={"review": review}, settings={"b": 1, "a": [True]}) as served:
        await served.send(message(VALIDATING))
        (put,) = sent
        request = json.loads(VALIDATING.body)["request"]
        assert put.uid == request["uid"]
        expected = {name: value for name, value in request.items() if name != "uid"}
        assert put.document.decode() == json.dumps(expected, separators=(",", ":"), ensure_ascii=False)
        assert put.settings == b'{"a":[true],"b":1}'
        assert put.phase == pb.PHASE_VALIDATING
