"""Only what is declared leaves the process: a secret planted all over a review reaches no worker and no log."""

import json

import pytest
from structlog.testing import capture_logs

from tests.integration.client import message
from tests.integration.running import configuration, policy, source
from tests.integration.workers import BOTH, answer, patch, pb, scripted
from tests.traffic import recording

POD = recording("pod-create.0m")

SECRET = "s3cret"

LABELS = "/object/metadata/labels"

ALWAYS = {"kind", "resource", "subResource", "operation", "dryRun"}


def planted():
    """A recorded review of a Pod, with a secret in every member that can hold one but its labels."""
    review = json.loads(POD.body)
    request = review["request"]
    request["object"]["metadata"] |= {"annotations": {SECRET: SECRET}, "labels": {"app": "a"}, "name": SECRET}
    request["object"]["spec"]["containers"][0]["env"] = [{"name": "PASSWORD", "value": SECRET}]
    request |= {"name": SECRET, "userInfo": {"username": SECRET, "groups": [SECRET]}, "options": {SECRET: SECRET}}
    return message(POD, body=json.dumps(review).encode())


class Recorder:
    """A worker that keeps every byte it is sent. Its policy "label" adds a label, its policy "judge" allows."""

    def __init__(self, claim=None):
        self.sent = []
        self.documents = {}
        policies = [pb.PolicyDescription(name=name, phases=BOTH) for name in ("label", "judge")]
        if claim is not None:
            for each in policies:
                each.inputs.pointers.pointers.extend(claim)
        self._description = pb.DescribeResponse(version="1", policies=policies).SerializeToString()

    async def describe(self, request, context):
        self.sent.append(request + repr(context.invocation_metadata()).encode())
        return self._description

    async def review(self, request, context):
        self.sent.append(request + repr(context.invocation_metadata()).encode())
        call = pb.ReviewRequest.FromString(request).call
        self.documents[call.policy] = json.loads(call.document)
        if call.policy == "label":
            return patch('[{"op":"add","path":"/metadata/labels/team","value":"x"}]')
        return answer(allow=pb.Allow())


@pytest.mark.parametrize("who", ["operator", "worker"])
async def test_a_secret_outside_of_the_inputs_stays_here(gateway, who):
    """Whether the operator grants no more or the worker claims no more: the workers are sent the labels, in the second
    policy's turn as the first has changed them, and no other byte of the object, of the user, or of anything else.
    """
    recorder = Recorder(claim=[LABELS] if who == "worker" else None)
    grant = {"inputs": [LABELS]} if who == "operator" else {}
    with capture_logs() as log:
        async with scripted(describe=recorder.describe, review=recorder.review) as target:
            policies = [policy("label", **grant), policy("judge", **grant)]
            known = configuration(source(workers={"scripted": target}, mutating=policies))
            async with gateway(known) as served:
                assert (await served.send(planted())).response["allowed"]
    assert SECRET.encode() in planted()
    assert not any(SECRET.encode() in each for each in recorder.sent)
    assert SECRET not in repr(log)
    for name, labels in (("label", {"app": "a"}), ("judge", {"app": "a", "team": "x"})):
        document = recorder.documents[name]
        assert document["object"] == {"metadata": {"labels": labels}}
        assert document.keys() - ALWAYS == {"object"}


async def test_a_claim_beyond_the_grant_is_called_nothing(gateway):
    """A worker that claims more than is granted is sent no document at all; its policy fails as CONFIGURATION."""
    recorder = Recorder(claim=[LABELS, "/object/spec"])
    async with scripted(describe=recorder.describe, review=recorder.review) as target:
        known = configuration(source(workers={"scripted": target}, mutating=[policy("label", inputs=[LABELS])]))
        async with gateway(known) as served:
            response = (await served.send(planted())).response
    assert not response["allowed"]
    assert "CONFIGURATION" in response["status"]["message"]
    assert "not granted: /object/spec; granted is /object/metadata/labels" in response["status"]["message"]
    assert recorder.documents == {}
