"""The gateway's kinds in the API server: it accepts what `check` accepts, and refuses in its words what it refuses."""

import copy
import json
import re
from pathlib import Path

import pytest
import yaml
from hypothesis import example, given

from tests.e2e.kinds import define, definitions, loaded, mutating, validating, worker
from tests.e2e.test_prediction import A_CLUSTER_FOR_ALL
from tests.policies.test_properties import DOCUMENTS, JSON, places, st
from tests.policies.test_validation import OF_WEBHOOKS, RECORDED, WEBHOOK, common, edited

EXAMPLES = Path(__file__).parents[2] / "examples/policies"
POLICIES = Path(__file__).parents[2] / "docs/policies.md"
SOUND = worker({"grpc": {"target": "dns:///labels.policies.svc:50051"}})
POLICY = {"name": "labels.a.example.com", "worker": "labels", "sideEffects": "None"}
TLS = {"caFile": "/ca.crt", "certFile": "/tls.crt", "keyFile": "/tls.key", "serverName": "labels"}
OBJECTS = [
    worker({"grpc": {"target": "dns:///labels.policies.svc:50051", "tls": TLS, "connections": 2}}),
    *DOCUMENTS[1:],
    worker({"queue": {"stream": "labels", "keyFile": "/key"}}, name="queue"),
    worker({"webhook": {"service": {"namespace": "a", "name": "b", "path": "/c", "port": 1}}}, name="webhook"),
]
PLACES = [place for place in places(OBJECTS) if place[1:2] in {("spec",), ("policies",)}]
SERVICE = {"namespace": "a", "name": "b"}
NO_DETAIL = "some validation rules were not checked because the object was invalid"


@pytest.fixture
async def kinds(cluster):
    """The client, once the definitions are in force."""
    await define(cluster.client)
    return cluster.client


async def create(client, obj):
    """What comes of a strict create, without a trace."""
    return await client.create(obj, dryRun="All", fieldValidation="Strict")


def reasons(reply):
    """PATH: MESSAGE of each cause."""
    if reply.code != 422:
        return [reply.message]
    causes = [(cause["field"], cause["message"]) for cause in reply.body["details"]["causes"]]
    return [f"{field}: {message}" for field, message in causes if NO_DETAIL not in message]


async def test_the_definitions_are_established(kinds):
    """The API server accepts them as structural, serves them, and has the short names."""
    for definition in definitions():
        found = (await kinds.get(definition)).body["status"]
        conditions = {each["type"]: each["status"] for each in found["conditions"]}
        assert conditions == {"NamesAccepted": "True", "Established": "True"}
        assert found["acceptedNames"] == definition["spec"]["names"]


def documents():
    """Those of the examples and of the guide; a command becomes the target of a worker elsewhere."""
    texts = [path.read_text() for path in sorted(EXAMPLES.glob("*.yaml"))]
    texts += re.findall(r"^```yaml\n(apiVersion.*?)^```", POLICIES.read_text(), re.MULTILINE | re.DOTALL)
    found = [
        each
        for text in texts
        for each in yaml.safe_load_all(text)
        if each and each["metadata"]["name"] != "faulty" and "admission-gateway" in each["apiVersion"]
    ]
    for each in found:
        if each.get("spec", {}).get("grpc", {}).pop("command", None):
            each["spec"]["grpc"]["target"] = "localhost:50051"
    return found


async def test_what_is_documented_applies(kinds):
    """The examples and the guide's policies, without a warning, and what is stored means the same."""
    assert len(documents()) >= 5
    for document in documents():
        reply = await create(kinds, document)
        assert (reply.code, reply.warnings) == (201, []), reply.body["message"]
        assert equal(reply.body, document)


def equal(stored, written):
    """Whether two objects are the same to the gateway, once their numbers are those that the API server can store."""

    def meaning(obj):
        own = {name: value for name, value in obj.items() if name != "metadata"}
        found = loaded(with_stored_numbers(own) | {"metadata": {"name": "x"}})
        return re.sub(r"line=\d+", "", repr((found.workers, found.mutating, found.validating)))

    return meaning(stored) == meaning(written)


def with_stored_numbers(value):
    """The API server has whole numbers in 64 bits, all others as floats. It writes 1.0 as 1, and a large float with
    zeros instead of its last digits.
    """
    match value:
        case dict():
            return {name: with_stored_numbers(each) for name, each in value.items()}
        case list():
            return [with_stored_numbers(each) for each in value]
        case int() if abs(value) > 2**53:
            return int(float(value))
        case float() if value.is_integer():
            return int(value)
    return value


PASSED = [
    *(f"policies.matchConditions.{name}" for name in ("expression", "name")),
    *(f"policies.namespaceSelector.matchExpressions.{name}" for name in ("key", "values")),
    *(f"policies.{name}.matchLabels" for name in ("namespaceSelector", "objectSelector")),
    *(f"policies.rules.{name}" for name in ("apiGroups", "apiVersions", "operations", "resources")),
]
"""Fields with errors that only the gateway finds: what is no CEL, no label, and a wildcard that is not alone."""

REFUSED = [
    worker({}),
    worker({"grpc": {"target": "a:1"}, "hook": {"path": "/b"}}),
    worker({"hook": {"path": "/hooks/validate.sh"}}),
    worker({"grpc": {"command": ["python"]}}),
    worker({"grpc": {"target": "unix:/run/labels.sock"}}),
    worker({"grpc": {"target": "labels"}}),
    worker({"grpc": {"target": "a:1", "connections": 65}}),
    worker({"grpc": {"target": "a:1", "tls": {"caFile": "/a", "caBundle": "YQ=="}}}),
    worker({"grpc": {"target": "a:1", "tls": {"certFile": "/a"}}}),
    worker({"grpc": {"target": "a:1", "tls": {"keyFile": "/a"}}}),
    worker({"grpc": {"target": "a:1", "tls": {"serverName": "A"}}}),
    worker({"grpc": {"target": "a:1", "port": 1}}),
    worker({"queue": {"stream": "a b", "keyFile": "/a"}}),
    worker({"queue": {"stream": "a"}}),
    worker({"webhook": {}}),
    worker({"webhook": {"url": "https://a", "service": SERVICE}}),
    worker({"webhook": {"service": SERVICE | {"port": 0}}}),
    mutating(POLICY | {"name": "labels.a"}),
    mutating(POLICY | {"name": "Labels.a.example.com"}),
    mutating(POLICY | {"worker": "Labels"}),
    mutating({name: POLICY[name] for name in ("name", "sideEffects")}),
    mutating({name: POLICY[name] for name in ("name", "worker")} | {"rules": [{}]}),
    mutating(POLICY | {"sideEffects": "Some"}),
    mutating(POLICY | {"failurePolicy": "fail"}),
    mutating(POLICY | {"rules": [WEBHOOK["rules"][0] | {"operations": ["CREATE", "READ"]}]}),
    mutating(POLICY | {"timeoutSeconds": 30.5}),
    mutating(POLICY | {"timeoutSeconds": 0}),
    mutating(POLICY | {"inputs": ["/object", "/kind", "/object"]}),
    mutating(POLICY | {"onConflict": "ignore"}),
    mutating(POLICY | {"mode": "dryrun"}),
    mutating(POLICY | {"cache": {}}),
    mutating(POLICY | {"cach": {"ttl": "5m"}}),
    mutating(POLICY | {"matchConditions": [{"name": "a", "expression": "true"}] * 65}),
    validating(POLICY | {"reinvocationPolicy": "Never"}),
    {name: value for name, value in mutating().items() if name != "policies"},
]
"""Objects with errors that the API server itself finds."""


@pytest.mark.parametrize("obj", REFUSED, ids=lambda obj: json.dumps(obj.get("spec", obj.get("policies")))[:70])
async def test_errors_have_the_words_of_check(kinds, obj):
    """Each of these is refused, and what the API server says first, `check` says too."""
    reply = await create(kinds, obj)
    own = [error.text for error in loaded(SOUND, obj | {"metadata": {"name": "other"}}).errors]
    assert reply.code in {400, 422}
    if reply.code == 400:
        # A strict decoder's words have no path.
        assert any(reply.message.endswith(f"strict decoding error: {text}") for text in own), (reply.message, own)
    else:
        path, _, message = reasons(reply)[0].partition(": ")
        assert any(error.startswith(f"{path}: ") and same(message, error) for error in own), (reasons(reply), own)


def same(message, error):
    """Whether an error of `check` is this message of the API server, which does not show an object as a value, and has
    no "Required value" without a detail.
    """
    kind, _, detail = message.partition(": ")
    if kind == "Required value" and error.endswith(kind):
        return True
    return kind in error and error.endswith(re.sub(r'^("(\\.|[^"])*"|[\d.]+): ', "", detail))


@pytest.mark.parametrize("obj", REFUSED[:5], ids=lambda obj: json.dumps(obj["spec"]))
async def test_what_would_run_a_program_is_refused_whatever_the_definition_allows(obj):
    """The gateway itself refuses it in an object of the cluster, where somebody may have changed the definition."""
    found = loaded(obj)
    assert found.errors
    assert not found.workers


async def test_the_schema_lets_only_these_errors_pass(kinds):
    """Of Kubernetes' own cases, what is valid is accepted, and most of the others are not."""
    passed = set()
    for case in filter(common, RECORDED):
        if not all(path.startswith("webhooks") for path in case["change"]):
            continue
        entry = {name: value for name, value in WEBHOOK.items() if name not in OF_WEBHOOKS}
        change = {path.replace("webhooks", "policies"): value for path, value in case["change"].items()}
        obj = edited(mutating(entry | {"worker": "labels", "policy": "p"}), change)
        reply = await create(kinds, obj)
        if not loaded(SOUND, obj).errors:
            assert reply.code == 201, reply
        elif reply.code == 201:
            passed |= {re.sub(r"\[.*?\]", "", error.place.path) for error in loaded(SOUND, obj).errors}
    assert sorted(passed) == PASSED


@A_CLUSTER_FOR_ALL
@example(place=(1, "policies", 0, "settings", "labels"), new=[2**63])
@example(place=(1, "policies", 0, "settings", "labels"), new=[3.477827618722353e16])
@given(place=st.sampled_from(PLACES), new=st.lists(JSON, max_size=1))
async def test_what_check_accepts_is_accepted_and_stored(kinds, place, new):
    """Any change that leaves no error is accepted, and what is stored means the same."""
    objects = copy.deepcopy(OBJECTS)
    owner = objects
    for step in place[:-1]:
        owner = owner[step]
    if new:
        owner[place[-1]] = new[0]
    else:
        del owner[place[-1]]
    obj = objects[place[0]]
    if not loaded(*objects).errors:
        reply = await create(kinds, obj)
        assert reply.code == 201, reply
        assert equal(reply.body, obj)
