"""Several policies in one review: called at the same time while validating, one after the other while mutating."""

import asyncio
import json

from gateway.transports.proto.admission.worker.v1 import worker_pb2 as pb
from tests.integration.client import message
from tests.integration.process import WAIT_SECONDS
from tests.integration.running import configuration, policy, source
from tests.integration.workers import (
    ALLOW,
    deny,
    patch,
    scripted,
)
from tests.traffic import recording

MUTATING = recording("pod-create.0m")
VALIDATING = recording("pod-create.1v")

LABEL = patch('[{"op": "add", "path": "/metadata/labels/seen", "value": "yes"}]')


async def test_validating_policies_are_called_at_the_same_time(gateway):
    """Two workers that each wait until the other is called both answer: one after the other would never end."""
    both = asyncio.Barrier(2)

    async def review(request, context):
        async with asyncio.timeout(WAIT_SECONDS):
            await both.wait()
        return deny(pb.ReviewRequest.FromString(request).call.policy)

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
    two_is_called = asyncio.Event()

    async def review(request, context):
        call_ = pb.ReviewRequest.FromString(request).call
        labels = json.loads(call_.document)["object"]["metadata"]["labels"]
        shown.append((call_.policy, labels))
        if call_.policy == "two":
            two_is_called.set()
        await (
            two_is_called.wait()
        )  # or the first's answer could call back the second's prefetched call before it has come
        return patch(json.dumps([{"op": "add", "path": f"/metadata/labels/{call_.policy}", "value": "was here"}]))

    async with scripted("one", review=review) as first, scripted("two", review=review) as second:
        workers = {"first": first, "second": second}
        policies = [policy("one", worker="first"), policy("two", worker="second")]
        async with gateway(configuration(source(workers=workers, mutating=policies))) as served:
            answered = await served.send(message(MUTATING))
            assert answered.response["allowed"]
            # Both are prefetched, on the object as it came; whose document has changed since is called again.
            early, late = shown[:-1], shown[-1]
            assert sorted(early) == [("one", {"app": "x"}), ("two", {"app": "x"})]
            assert late == ("two", {"app": "x", "one": "was here"})


async def test_no_failure_is_followed_by_an_allow(gateway):
    """A mutating policy under Fail that could not judge ends the chain: no later policy is called in its turn, nothing
    goes out.
    """
    called = []

    async def review(request, context):
        name = pb.ReviewRequest.FromString(request).call.policy
        called.append(name)
        return LABEL if name != "fails" else b""

    async with scripted("first", "fails", "last", review=review) as target:
        policies = [policy(name) for name in ("first", "fails", "last")]
        known = configuration(source(workers={"scripted": target}, mutating=policies))
        async with gateway(known, prefetch=False) as served:
            response = (await served.send(message(MUTATING))).response
            assert not response["allowed"]
            assert "patch" not in response
            assert called == ["first", "fails"]


async def test_a_document_holds_all_but_the_uid(call):
    """A worker is sent the request as it came, byte for byte in its order, but for the uid, which travels beside."""
    sent = []

    async def review(request, context):
        sent.append(pb.ReviewRequest.FromString(request).call)
        return ALLOW

    async with call(VALIDATING, worker={"review": review}, settings={"b": 1, "a": [True]}) as served:
        await served.send(message(VALIDATING))
        (put,) = sent
        request = json.loads(VALIDATING.body)["request"]
        assert put.uid == request["uid"]
        expected = {name: value for name, value in request.items() if name != "uid"}
        assert put.document.decode() == json.dumps(expected, separators=(",", ":"), ensure_ascii=False)
        assert put.settings == b'{"a":[true],"b":1}'
        assert put.phase == pb.PHASE_VALIDATING
