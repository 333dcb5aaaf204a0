"""The offline walk over the entries: what the API server and a serving gateway would come to together."""

import asyncio
import base64
import json
from dataclasses import replace

import pytest

from gateway.cli.review_text import reported
from gateway.policies.model import Phase
from gateway.review.request import decode
from gateway.serving.dispatch_simulator import DispatchSimulator, after_mutation
from gateway.serving.loaded_configuration import LoadedConfiguration
from gateway.transports.worker_pool import WorkerPool
from tests.integration.client import post
from tests.integration.process import WAIT_SECONDS
from tests.integration.running import configuration, policy, source, until
from tests.integration.workers import ALLOW, answer, deny, pb, scripted
from tests.traffic import recording

MUTATING = recording("pod-create.0m")
VALIDATING = recording("pod-create.1v")
SERVICES = {"operations": ["*"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["services"]}


def label(name, value="yes"):
    operation = {"op": "add", "path": f"/metadata/labels/{name}", "value": value}
    return answer(allow=pb.Allow(json_patch=json.dumps([operation]).encode()))


class Script:
    """A worker that answers each policy by its name, and notes who was called and which labels it saw."""

    def __init__(self, **answers):
        self.answers = answers
        self.called = []

    async def __call__(self, request, context):
        call = pb.ReviewRequest.FromString(request).call
        labels = json.loads(call.document)["object"]["metadata"].get("labels", {})
        self.called.append((call.policy, sorted(set(labels) - {"app"})))
        said = self.answers.get(call.policy, ALLOW)
        return said(labels) if callable(said) else said


@pytest.fixture
def walked():
    """Walk a recording through these policies: the walk, and who was called."""

    async def walk(recorded=MUTATING, *, script, mutating=(), validating=(), extra=""):
        names = [each["name"].split(".")[0] for each in (*mutating, *validating)]
        async with scripted(*names, review=script) as target:
            text = source(workers={"scripted": target}, mutating=mutating, validating=validating)
            known = configuration(f"{text}---\n{extra}" if extra else text)
            assert known.errors == ()
            pool = WorkerPool()
            generation = LoadedConfiguration(known, pool)
            try:
                await generation.start(wait_seconds=WAIT_SECONDS)
                phase = Phase(recorded.phase)
                return await DispatchSimulator(generation).simulate(phase, decode(recorded.body))
            finally:
                await generation.close()
                await pool.close()

    return walk


async def test_each_entry_sees_what_those_before_it_left(walked):
    """Entries are called one after another; what they change is one difference at the end."""
    script = Script(one=label("one"), two=label("two"))
    walk = await walked(script=script, mutating=[policy("one"), policy("two", failurePolicy="Ignore")])
    assert len(walk.visits) == 2
    assert script.called == [("one", []), ("two", ["one"])]
    assert [(each.op, each.path) for each in walk.changes] == [
        ("add", "/metadata/labels/one"),
        ("add", "/metadata/labels/two"),
    ]
    assert after_mutation(walk).object["metadata"]["labels"] == {"app": "x", "one": "yes", "two": "yes"}


async def test_the_first_refusal_ends_the_walk(walked):
    """No later policy is called, nothing is changed, and the message is the API server's."""
    script = Script(one=label("one"), two=deny("not here"))
    policies = [policy("one"), policy("two", failurePolicy="Ignore"), policy("three")]
    walk = await walked(script=script, mutating=policies)
    assert [name for name, _ in script.called] == ["one", "two"]
    assert (walk.allowed, walk.changes, walk.object) == (False, (), walk.request.object)
    name = walk.refused_by.name
    assert walk.status.message == f'admission webhook "{name}" denied the request: not here'
    assert (walk.status.code, walk.status.reason) == (403, "Forbidden")


REINVOKED = {
    "a marked one is called again": (["IfNeeded", "Never"], ["one", "two", "one"]),
    "who is not marked is not": (["Never", "IfNeeded"], ["one", "two"]),
    "a change marks those before it, not itself": (["IfNeeded", "Never", "IfNeeded"], ["one", "two", "three", "one"]),
}


@pytest.mark.parametrize("name", REINVOKED)
async def test_entries_are_reinvoked_once(walked, name):
    """An entry under IfNeeded is called again where one behind it has changed the object, and never a third time."""
    policies, expected = REINVOKED[name]
    names = ["one", "two", "three"][: len(policies)]
    script = Script(two=label("two"))
    chain = [
        policy(each, reinvocationPolicy=reinvocation, failurePolicy=["Fail", "Ignore", "Fail"][index])
        for index, (each, reinvocation) in enumerate(zip(names, policies, strict=True))
    ]
    walk = await walked(script=script, mutating=chain)
    assert [each for each, _ in script.called] == expected
    assert [visit.round for visit in walk.visits] == [0] * len(names) + [1] * (len(expected) - len(names))


async def test_all_validating_entries_are_called(walked):
    """Warnings and annotations of all are kept; the answer is the first refusal's in order."""
    script = Script(
        one=answer(allow=pb.Allow(), warnings=["careful"]),
        two=deny("two says no"),
        three=deny("three says no"),
    )
    policies = [policy("one"), policy("two", failurePolicy="Ignore"), policy("three", isolate=True)]
    walk = await walked(VALIDATING, script=script, validating=policies)
    assert walk.status.message.endswith(" denied the request: two says no")
    assert walk.warnings == ["careful"]
    assert len(script.called) == 3


async def test_the_api_server_checks_an_isolated_policy(walked):
    """A policy outside an isolated entry is not called; a condition that fails is refused in the API server's own
    words, without a webhook's name.
    """
    script = Script(other=deny(), alone=deny())
    walk = await walked(VALIDATING, script=script, validating=[policy("other", isolate=True, rules=[SERVICES])])
    assert (walk.allowed, [visit.called for visit in walk.visits], script.called) == (True, [False], [])
    condition = {"name": "nope", "expression": "object.nope == 1"}
    walk = await walked(
        VALIDATING, script=script, validating=[policy("alone", isolate=True, matchConditions=[condition])]
    )
    assert (walk.status.code, walk.status.reason, script.called) == (403, "Forbidden", [])
    assert "denied the request" not in walk.status.message
    assert "is forbidden" in walk.status.message
    assert [visit.called for visit in walk.visits] == [False]


async def test_kinds_that_configure_admission_reach_no_entry(walked):
    """The API server sends them to no registered webhook, so that a bad one can be repaired."""
    group, kind = "admissionregistration.k8s.io", "ValidatingWebhookConfiguration"
    body = json.loads(VALIDATING.body)
    body["request"]["kind"] = {"group": group, "version": "v1", "kind": kind}
    body["request"]["resource"] = {"group": group, "version": "v1", "resource": f"{kind.lower()}s"}
    everything = {"operations": ["*"], "apiGroups": ["*"], "apiVersions": ["*"], "resources": ["*/*"]}
    script = Script(one=deny("not here"), alone=deny("not here"))
    policies = [policy("one", rules=[everything]), policy("alone", rules=[everything], isolate=True)]
    recorded = replace(VALIDATING, body=json.dumps(body).encode())
    walk = await walked(recorded, script=script, validating=policies)
    assert (walk.allowed, walk.visits, script.called) == (True, (), [])
    assert [line.strip() for line in reported("review.json", walk, first=False)][1:] == [
        f"not judged: kube-apiserver sends a {kind} only to webhooks from its manifest files"
    ]


async def test_a_denial_without_a_word(walked):
    """As the API server says it."""
    script = Script(one=answer(deny=pb.Deny(code=418)))
    walk = await walked(VALIDATING, script=script, validating=[policy("one")])
    denied = f'admission webhook "{walk.refused_by.name}" denied the request'
    assert walk.status.message in {f"{denied} without explanation", f"{denied}: Forbidden"}
    assert walk.status.code == 418


async def test_it_comes_to_what_serve_answers(gateway):
    """For each entry, the walk's decision is the answer that a serving gateway gives on the entry's path."""
    script = Script(one=label("one"), two=label("two"), judge=deny("no"), alone=deny("not alone"))
    mutating = [policy("one"), policy("two", failurePolicy="Ignore")]
    validating = [policy("judge"), policy("free", failurePolicy="Ignore"), policy("alone", isolate=True)]
    async with scripted("one", "two", "judge", "free", "alone", review=script) as target:
        known = configuration(source(workers={"scripted": target}, mutating=mutating, validating=validating))
        async with gateway(known) as served:
            walker = DispatchSimulator(served.gateway._loaded)
            for recorded in (MUTATING, VALIDATING):
                walk = await walker.simulate(Phase(recorded.phase), decode(recorded.body))
                assert len(walk.visits) == len(served.gateway._loaded.entries.of(walk.phase))
                for visit in walk.visits:
                    body = json.loads(recorded.body)
                    body["request"]["object"] = visit.decision.request.object
                    path = f"{visit.entry.path}?timeout={visit.entry.timeout_seconds}s"
                    response = (await served.send(post(json.dumps(body).encode(), path))).response
                    decided = visit.decision.response
                    assert response["allowed"] == decided.allowed
                    patch = base64.b64decode(response["patch"]) if "patch" in response else None
                    assert patch == decided.patch
                    assert response.get("status", {}).get("message") == (
                        None if decided.status is None else decided.status.message
                    )


async def test_nothing_is_left_running(walked):
    """After a walk there is no task but the test's own."""
    await walked(script=Script(), mutating=[policy("one")])
    await until(lambda: asyncio.all_tasks() == {asyncio.current_task()})
