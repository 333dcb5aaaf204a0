"""A replayed scale-up: 500 pods of one ReplicaSet, as the controller makes them, and how often the worker is called."""

import asyncio
import json
import random
import string

import pytest

from gateway.transports.proto.admission.worker.v1 import worker_pb2 as pb
from tests.integration.client import message
from tests.integration.running import configuration, policy, source
from tests.integration.workers import ALLOW, scripted
from tests.traffic import recording

PODS = 500
CONNECTIONS = 8
DECLARED = ["/object/metadata/labels", "/object/spec/containers/*/image", "/object/spec/containers/*/securityContext"]
CACHE = {"ttl": "5m"}


def replicas():
    """Reviews of pods that one ReplicaSet has made: what the API server, the controller and the ServiceAccount plugin
    generate differs in each of them, all else is the template's.
    """
    chance = random.Random(1)
    template = recording("pod-create-generatename.1v")

    def generated(length):
        return "".join(chance.choices(string.ascii_lowercase + string.digits, k=length))

    for number in range(PODS):
        review = json.loads(template.body)
        request, pod = review["request"], review["request"]["object"]
        name, volume = f"web-7d4b9c6f5-{generated(5)}", f"kube-api-access-{generated(5)}"
        moment = f"2026-11-21T10:00:{number // 25:02}Z"
        request["uid"] = f"00000000-0000-4000-8000-{number:012}"
        request["name"] = pod["metadata"]["name"] = name
        pod["metadata"]["uid"] = f"11111111-0000-4000-8000-{number:012}"
        pod["metadata"]["creationTimestamp"] = moment
        pod["metadata"]["managedFields"][0]["time"] = moment
        pod["spec"]["volumes"] = [{"name": volume, "projected": {"sources": []}}]
        pod["spec"]["containers"][0]["volumeMounts"] = [{"name": volume, "mountPath": "/var/run/secrets"}]
        yield message(template, body=json.dumps(review).encode())


async def called_for(gateway, **fields):
    """How often the worker is called while all replicas are made, and what it was shown."""
    shown = []

    async def review(request, context):
        shown.append(pb.ReviewRequest.FromString(request).call.document)
        return ALLOW

    async def make(client, reviews):
        for each in reviews:
            assert (await client.send(each)).response["allowed"]

    async with scripted("judge", review=review) as target:
        judge = policy("judge", worker="judge", **fields)
        async with gateway(configuration(source(workers={"judge": target}, validating=[judge]))) as served:
            reviews = iter(replicas())
            clients = [await served.client() for _ in range(CONNECTIONS)]
            await asyncio.gather(*(make(client, reviews) for client in clients))
            assert len(served.decisions) == PODS
    return shown


async def test_declared_inputs_make_a_scale_up_one_question(gateway):
    """With declared inputs more than 99 % of the replicas' reviews are answered without the worker."""
    shown = await called_for(gateway, inputs=DECLARED, cache=CACHE)
    assert 1 - len(shown) / PODS > 0.99


@pytest.mark.parametrize("fields", [{"cache": CACHE}, {"inputs": DECLARED}], ids=["no inputs", "no cache"])
async def test_without_both_each_replica_is_a_question(gateway, fields):
    """Without declared inputs no two replicas have the same document, and without a cache no verdict is kept."""
    assert len(await called_for(gateway, **fields)) == PODS
