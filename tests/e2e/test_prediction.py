"""What is stored is what the policies' patches make of an object, one after the other.

The prediction does not depend on the gateway's engine: ``policy_sets`` walks the registered entries, the jsonpatch
library applies the patches, and a dry run without webhooks shows what kube-apiserver makes of the result.
HYPOTHESIS_PROFILE=long tries ten times as many objects and sets of policies.
"""

import json
import os
from collections import Counter
from itertools import count

import jsonpatch
import jsonpointer
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gateway.registration.entries import make_entries
from tests.e2e.cluster import define_things
from tests.e2e.objects import lasting, namespace, pod, thing
from tests.e2e.policy_sets import KEYS, SET, TEAM, TIER, PolicySet, Registered
from tests.integration.running import configuration
from tests.patching.values import PLAIN_SCALARS, SEEDS, applied_by_the_library, objects, patch_for

SIDE_BY_SIDE = 10
"""Sets of policies that one registration has."""

BLOCKS = 10 if os.environ.get("HYPOTHESIS_PROFILE") == "long" else 1
"""Of so many sets, for each kind of objects."""

OBJECTS = 100
"""In each block."""

_TEAM = f"/metadata/labels/{TEAM.replace('/', '~1')}"

LABELS = [
    {"op": "add", "path": _TEAM, "value": "a"},
    {"op": "add", "path": _TEAM, "value": "b"},
    {"op": "remove", "path": _TEAM},
]
"""What makes policies match, or match no more."""

ADDITIONS = [
    ("/metadata/labels", {"team": "a"}),
    ("/metadata/annotations/e2e.example.com~1note", "<&>\u2028é😀"),
    ("/spec/containers/-", {"name": "proxy", "image": "proxy:1", "ports": [{"containerPort": 1}]}),
    ("/spec/containers/0", {"name": "first", "image": "first"}),
    ("/spec/containers/0/image", "registry.example.com/nginx@sha256:" + "0" * 64),
    ("/spec/containers/0/env", [{"name": "A", "value": "1"}, {"name": "B", "value": ""}]),
    ("/spec/containers/0/resources", {"limits": {"cpu": "1000m", "memory": "0.5Gi"}}),
    ("/spec/tolerations", [{"operator": "Exists"}]),
    ("/spec/nodeSelector", {"disk": "fast"}),
    ("/spec/securityContext", {"runAsNonRoot": True, "sysctls": []}),
    ("/spec/terminationGracePeriodSeconds", 5),
    ("/spec/volumes", [{"name": "v", "emptyDir": {}}]),
    ("/spec/hostNetwork", True),
    ("/spec/unknown", {"a": [None]}),
    ("/spec/tolerations/-", {"key": "spot", "operator": "Exists"}),
    ("/spec/unknown/below", 1),
]
"""What policies add to Pods. The API server normalizes some of it, refuses a second container of a name, and leaves the
last out for want of its parent.
"""

_NUMBERS = count()

A_CLUSTER_FOR_ALL = settings(
    max_examples=OBJECTS, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)


class Prediction:
    """A cluster with policies in force, and what they make of objects."""

    def __init__(self, cluster, sets, registered):
        self._sets = sets
        self.outcomes = Counter()
        self._cluster = cluster
        self._registered = registered

    async def check(self, obj, patches, place):
        """Create an object for the set at a place, and compare what is stored; its policies have the patches."""
        at, has_tier = place
        chosen = self._sets[at]
        texts = {key: json.dumps(operations) for key, operations in zip(chosen.keys, patches, strict=False)}
        metadata = {"name": f"o{next(_NUMBERS)}", "annotations": texts, "labels": {SET: chosen.name}}
        if has_tier:
            metadata["namespace"] = self._cluster.other
        stored = await self._cluster.create(obj | {"metadata": metadata})
        tiers = {TIER: "gold"} if has_tier else {}
        codes, expected = await self._registered.predicted(obj | {"metadata": metadata}, texts, tiers)
        self.outcomes[stored.code] += 1
        assert stored.code in codes, (stored, codes, expected)
        if stored.code == 201:
            # As text: 1 is true for Python.
            assert json.dumps(lasting(stored.body), indent=1) == json.dumps(lasting(expected), indent=1)


@pytest.fixture
async def prediction(cluster, first):
    """The sets from the seed ``first`` on, registered side by side behind one gateway."""
    await define_things(cluster.client)
    sets = [PolicySet(seed) for seed in range(first, first + SIDE_BY_SIDE)]
    sources = {each["name"]: each for one in sets for each in one.policies}
    golden = namespace(cluster.other, labels={TIER: "gold"})
    assert (await cluster.client.create(golden)).code == 201
    own = namespace(cluster.namespace)
    cluster.write(mutating=list(sources.values()), documents=[golden, own])
    gateway = await cluster.start("--idempotency-sample-ratio", 0)
    await cluster.register(gateway.port)
    entries = make_entries(configuration(cluster.policies.read_text())).mutating
    stored = await cluster.client.get(
        {
            "apiVersion": "admissionregistration.k8s.io/v1",
            "kind": "MutatingWebhookConfiguration",
            "metadata": {"name": cluster.namespace},
        }
    )
    made = Prediction(cluster, sets, Registered(cluster.client, entries, stored.body["webhooks"], sources))
    yield made
    print(made.outcomes)  # noqa: T201 - `-rP` shows it


def blocks(begin):
    """The first seed of each block."""
    return pytest.mark.parametrize("first", range(begin, begin + BLOCKS * SIDE_BY_SIDE, SIDE_BY_SIDE))


PLACES = st.tuples(st.integers(0, 2**32).map(lambda drawn: drawn % SIDE_BY_SIDE), st.booleans())
"""The set that an object is for, each as often, and whether its namespace has a tier."""


@st.composite
def patches_of_pods(draw):
    additions = st.lists(st.sampled_from(ADDITIONS), max_size=3)
    labels = st.lists(st.sampled_from(LABELS), max_size=1)
    return [
        [{"op": "add", "path": path, "value": value} for path, value in draw(additions)] + draw(labels) for _ in KEYS
    ]


def patched(document, text):
    try:
        return applied_by_the_library(document, text.encode())
    except (jsonpatch.JsonPatchException, jsonpointer.JsonPointerException, TypeError):
        return document


@blocks(0)
@A_CLUSTER_FOR_ALL
@given(spec=objects(PLAIN_SCALARS), random=SEEDS, place=PLACES)
async def test_any_patches_of_a_custom_resource(prediction, spec, random, place):
    """Of any JSON, whatever the names of its members, by any operations of any set of policies."""
    document, patches = {"spec": spec}, []
    for _ in KEYS:
        operations = [prefixed(operation) for operation in patch_for(random, document["spec"])]
        document = patched(document, json.dumps(operations))
        patches.append(operations + random.sample(LABELS, random.choice([0, 1])))
    await prediction.check(thing("", spec), patches, place)


def prefixed(operation):
    return operation | {name: "/spec" + operation[name] for name in ("path", "from") if name in operation}


@blocks(BLOCKS * SIDE_BY_SIDE)
@A_CLUSTER_FOR_ALL
@given(patches=patches_of_pods(), place=PLACES)
async def test_any_patches_of_a_pod(prediction, patches, place):
    """Of a kind that kube-apiserver decodes, defaults, normalizes and validates."""
    await prediction.check(pod(), patches, place)
