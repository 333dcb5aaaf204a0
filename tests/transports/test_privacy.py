"""What leaves the process: the document, and beside it only what the contract says. Real gRPC, the bytes recorded."""

import json

import msgspec
import pytest

from gateway.documents.documents import DocumentBuilder
from gateway.policies.model import Phase
from gateway.review.request import decode
from gateway.scopes.inputs import Inputs
from gateway.scopes.pointer import parse_pointer
from gateway.scopes.pointer_set import PointerSet
from gateway.transports.proto.admission.worker.v1 import worker_pb2 as pb
from tests.integration.workers import ALLOW, description, scripted
from tests.traffic import recordings
from tests.transports.reaching import called, configured, judge, working

BESIDES = {"kind", "resource", "subResource", "operation", "dryRun"}


class Recorder:
    """A worker that keeps every byte it is sent, metadata included."""

    def __init__(self, *names, inputs=None):
        self.reviews = []
        self.everything = []
        self._description = pb.DescribeResponse.FromString(description(*names))
        if inputs is not None:
            for policy in self._description.policies:
                policy.inputs.pointers.pointers.extend(inputs)

    async def review(self, request, context):
        self.reviews.append(request)
        return self._keep(request, context) or ALLOW

    async def describe(self, request, context):
        return self._keep(request, context) or self._description.SerializeToString()

    async def validate(self, request, context):
        return self._keep(request, context) or b""

    def _keep(self, request, context):
        self.everything.append((request, dict(context.invocation_metadata())))

    def served(self):
        return scripted(review=self.review, describe=self.describe, validate=self.validate)


async def test_a_worker_is_sent_the_question_and_nothing_else():
    """Policy, phase, settings, document and uid; of metadata, only what gRPC itself says."""
    recorder = Recorder("judge")
    about = judge(settings=b'{"a":1}')
    async with recorder.served() as target, working(configured(about, labels=target)) as workers:
        await called(workers, about, content=b'{"operation":"CREATE"}')
    expected = pb.PolicyCall(
        policy="judge",
        phase=pb.PHASE_VALIDATING,
        settings=b'{"a":1}',
        document=b'{"operation":"CREATE"}',
        uid="u1",
    )
    assert recorder.reviews == [pb.ReviewRequest(call=expected).SerializeToString()]
    assert {name for _, metadata in recorder.everything for name in metadata} <= {"user-agent", "accept-encoding"}


@pytest.mark.parametrize("claimed", [None, ["/object/metadata/labels"]], ids=["granted", "claimed"])
async def test_only_what_is_declared_leaves_the_process(claimed):
    """Of a recorded request with a secret everywhere, a worker is sent no byte that its inputs don't show, whether the
    operator grants no more or the worker claims no more.
    """
    recorder = Recorder("judge", inputs=claimed)
    grant = Inputs.EVERYTHING if claimed else Inputs(places=PointerSet([parse_pointer("/object/metadata/labels")]))
    about = judge(inputs=grant)
    async with recorder.served() as target, working(configured(about, labels=target)) as workers:
        described = workers.availabilities(Phase.VALIDATING)[about.qualified_name]
        inputs = about.inputs if described.inputs is None else described.inputs
        for recording in recordings():
            body, labels = _planted(recording)
            review = decode(body)
            document = DocumentBuilder(review).of(inputs, None, changed=False)
            await called(workers, about, content=document.content)
            sent = pb.ReviewRequest.FromString(recorder.reviews[-1]).call
            assert _members(sent.document) - BESIDES <= {"object"}
            shown = msgspec.json.decode(sent.document).get("object")
            if labels is not None:
                assert shown == {"metadata": {"labels": labels}}
    assert recorder.reviews
    assert not any(b"s3cret" in request for request, _ in recorder.everything)


def _planted(recording):
    """A recorded review with a secret in it wherever an object can hold one, and the object's labels, if any."""
    review = json.loads(recording.body)
    request = review["request"]
    for name in ("object", "oldObject"):
        if isinstance(request.get(name), dict):
            request[name]["data"] = {"password": "s3cret"}
            request[name].setdefault("metadata", {})["annotations"] = {"s3cret": "s3cret"}
    request["userInfo"] = {"username": "s3cret", "extra": {"s3cret": ["s3cret"]}}
    request["options"] = {"s3cret": "s3cret"}
    request["s3cret"] = "s3cret"
    labels = request["object"]["metadata"].get("labels") if isinstance(request.get("object"), dict) else None
    return json.dumps(review).encode(), labels


def _members(document):
    return set(msgspec.json.decode(document))
