"""The gateway's own kinds: their definitions in the API server, and objects of them."""

import json

import yaml

from deploy.generator import CRDS, ROOT
from gateway.policies.configuration import load
from gateway.policies.decoding.texts import SourceText
from tests.e2e.client import eventually

API = "admission-gateway.dev/v1alpha1"


def definitions(tree=ROOT):
    """The CustomResourceDefinitions as they are shipped; ``tree`` is a checkout, such as another version's."""
    return [yaml.safe_load(path.read_text()) for path in sorted((tree / CRDS).glob("*.yaml"))]


async def define(client, tree=ROOT):
    """Apply the definitions, and wait until their schemas are in force."""
    for each in definitions(tree):
        reply = await client.apply(each)
        assert reply.code in {200, 201}, reply
    for probe in (worker({}), mutating({}), validating({})):

        async def refused(probe=probe):
            return (await client.create(probe, dryRun="All")).code == 422

        await eventually(refused)


def worker(spec, name="labels"):
    return {"apiVersion": API, "kind": "Worker", "metadata": {"name": name}, "spec": spec}


def mutating(*policies, name="team-a"):
    return {
        "apiVersion": API,
        "kind": "MutatingPolicyConfiguration",
        "metadata": {"name": name},
        "policies": list(policies),
    }


def validating(*policies, name="team-a"):
    return mutating(*policies, name=name) | {"kind": "ValidatingPolicyConfiguration"}


def loaded(*objects):
    """What the gateway makes of these objects of the cluster."""
    texts = enumerate(json.dumps(obj).encode() for obj in objects)
    return load([SourceText(name=f"{index}", content=content, in_cluster=True) for index, content in texts])


class Kinds:
    """Objects of the gateway's kinds, of one test: they are in all its gateways, and are deleted at its end."""

    def __init__(self, client):
        self.client = client
        self._made = []

    async def apply(self, *objects):
        """Apply objects. Returns the last one as it is stored."""
        for obj in objects:
            reply = await self.client.apply(obj)
            assert reply.code in {200, 201}, reply
            self._made.append(obj)
        return reply.body

    async def delete(self, *objects):
        for obj in objects:
            await self.client.delete(obj)

    async def close(self):
        await self.delete(*self._made)
