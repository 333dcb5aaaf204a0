"""What is stored is what the policies' patches make of an object, one after the other.

The prediction does not depend on the gateway: the jsonpatch library applies the patches, and a dry run without webhooks
shows what kube-apiserver stores of the result. HYPOTHESIS_PROFILE=long tries ten times as many cases.
"""

import json
from itertools import count

import jsonpatch
import jsonpointer
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.e2e.cluster import UNTOUCHED, define_things
from tests.e2e.objects import lasting, pod, thing
from tests.e2e.policies import THINGS, patch
from tests.patching.values import PLAIN_SCALARS, SEEDS, applied_by_the_library, objects, patch_for

ENTRIES = (("first", "second"), ("third",))
"""Policies in chain order, by entry. Between the two kube-apiserver decodes the object, and sets defaults."""

KEYS = [key for keys in ENTRIES for key in keys]

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
]
"""What policies add to Pods. The API server normalizes some of it, and refuses a second container of a name."""

_NUMBERS = count()

A_CLUSTER_FOR_ALL = settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])


@pytest.fixture
async def patching(cluster):
    """The cluster, with policies that apply an object's annotations to it; a patch that does not apply is left out."""
    await define_things(cluster.client)
    fields = {"rules": [*THINGS, *patch("")["rules"]], "failurePolicy": "Ignore"}
    policies = [patch(key, isolate=key == "third", **fields) for key in KEYS]
    await cluster.enforce("--idempotency-sample-ratio", 0, mutating=policies)
    return cluster


@st.composite
def patches_of_pods(draw):
    additions = st.lists(st.sampled_from(ADDITIONS), max_size=4)
    return [[{"op": "add", "path": path, "value": value} for path, value in draw(additions)] for _ in KEYS]


async def check(cluster, obj, patches):
    """Create the object, and compare what is stored with what is predicted."""
    texts = {key: json.dumps(operations) for key, operations in zip(KEYS, patches, strict=True)}
    original = obj | {"metadata": {"name": f"o{next(_NUMBERS)}", "annotations": texts}}
    stored = await cluster.create(original)
    expected = await predict(cluster.client, original, texts)
    assert stored.code == expected.code, (stored, expected)
    if stored.code == 201:
        # As text: 1 is true for Python.
        assert json.dumps(lasting(stored.body), indent=1) == json.dumps(lasting(expected.body), indent=1)


async def predict(client, obj, texts):
    """The reply without webhooks to the object as the patches leave it. It has its defaults before each entry."""
    for keys in ((), *ENTRIES):
        for key in keys:
            obj = patched(obj, texts[key])
        here = obj["metadata"] | {"namespace": UNTOUCHED}
        reply = await client.create(obj | {"metadata": here}, dryRun="All")
        if reply.code != 201:
            break
        obj = lasting(reply.body)
    return reply


def patched(document, text):
    try:
        return applied_by_the_library(document, text.encode())
    except (jsonpatch.JsonPatchException, jsonpointer.JsonPointerException, TypeError):
        return document


@A_CLUSTER_FOR_ALL
@given(spec=objects(PLAIN_SCALARS), random=SEEDS)
async def test_any_patches_of_a_custom_resource(patching, spec, random):
    """Of any JSON, whatever the names of its members, by any operations."""
    document, patches = {"spec": spec}, []
    for _ in KEYS:
        operations = [prefixed(operation) for operation in patch_for(random, document["spec"])]
        document = patched(document, json.dumps(operations))
        patches.append(operations)
    await check(patching, thing("", spec), patches)


def prefixed(operation):
    return operation | {name: "/spec" + operation[name] for name in ("path", "from") if name in operation}


@A_CLUSTER_FOR_ALL
@given(patches=patches_of_pods())
async def test_any_patches_of_a_pod(patching, patches):
    """Of a kind that kube-apiserver decodes, defaults, normalizes and validates."""
    await check(patching, pod(), patches)
