"""Every recorded request of a real kube-apiserver, answered by ``serve`` over real TLS, and by a Gateway we look into.

The policies are those of examples/policies, and some that judge everything: CONNECT, DELETE, dry runs, v1beta1.
"""

import base64
import json
import re
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jsonpatch
import pytest
import uvloop

from gateway.engine.decision import Decision
from gateway.sources.loading import load_configuration
from tests.integration.client import Answer, Client, message
from tests.integration.running import policy, running, source
from tests.traffic import Recording, recordings

EXAMPLES = Path(__file__).parents[2] / "examples" / "policies"
WITNESS = Path(__file__).parent / "witness.py"

EVERYTHING = [{"operations": ["*"], "apiGroups": ["*"], "apiVersions": ["*"], "resources": ["*/*"]}]


@dataclass(frozen=True, kw_only=True)
class Exchange:
    """A recorded request, what ``serve`` answered, and what a Gateway of the same policies answered and decided."""

    recording: Recording
    answer: Answer
    same: Answer
    decision: Decision

    @property
    def request(self) -> dict[str, Any]:
        return json.loads(self.recording.body)["request"]

    @property
    def patch(self) -> Any:
        return json.loads(base64.b64decode(self.answer.response["patch"]))


def policies(folder: Path) -> Path:
    """A directory with the example policies and those that judge everything."""
    found = folder / "policies"
    shutil.copytree(EXAMPLES, found, ignore=shutil.ignore_patterns("*.sock"))
    every = {"worker": "witness", "rules": EVERYTHING}
    text = source(
        workers={"witness": {"target": "unix:witness.sock", "command": ["python", str(WITNESS)]}},
        mutating=[
            policy("repeat", **every),
            policy("stamp", **every, reinvocationPolicy="IfNeeded"),
            policy("default-labels", worker="samples", rules=EVERYTHING, settings={"labels": {"a": "b"}}),
        ],
        validating=[
            policy("gate", **every),
            policy("required-labels", worker="samples", rules=EVERYTHING, settings={"labels": {"app": ""}}),
            policy("no-privileged", worker="samples", rules=EVERYTHING, settings={}),
        ],
    )
    (found / "everything.yaml").write_text(text)
    return found


@pytest.fixture(scope="module")
def served(serving, tmp_path_factory, trust):
    """The answers of one ``serve`` on one connection, in the order of the recordings."""
    process = serving("--policies", policies(tmp_path_factory.mktemp("serve")), "--worker-startup-timeout", 30).ready()
    with Client(process.port, trust) as client:
        yield [client.send(message(recording)) for recording in recordings()]


@pytest.fixture(scope="module")
def exchanges(served, tmp_path_factory, certificates, trust):
    """All recorded requests, with the answers of ``serve`` and of a Gateway in this process."""

    async def decided():
        known = load_configuration([policies(tmp_path_factory.mktemp("run"))])
        async with running(known, certificates, trust) as gateway:
            client = await gateway.client()
            answers = [await client.send(message(recording)) for recording in recordings()]
            return [(answer, gateway.decisions[answer.response["uid"]]) for answer in answers]

    return [
        Exchange(recording=recording, answer=answer, same=same, decision=decision)
        for recording, answer, (same, decision) in zip(recordings(), served, uvloop.run(decided()), strict=True)
    ]


def strict(value: Any) -> str:
    """A value as text in which 1, 1.0 and true differ."""
    return json.dumps(value, sort_keys=True)


def names(found) -> list[str]:
    return [exchange.recording.name for exchange in found]


def test_every_request_gets_a_review(exchanges):
    """Each recorded request is answered with HTTP 200 and JSON, on one and the same connection."""
    assert len(exchanges) == len(recordings()) > 100
    assert names(e for e in exchanges if e.answer.status != 200) == []
    assert {e.answer.headers["Content-Type"] for e in exchanges} == {"application/json"}
    assert {e.answer.headers["Connection"] for e in exchanges} == {None}


def test_the_answer_is_to_this_request(exchanges):
    """Each answer echoes the uid of its request."""
    assert names(e for e in exchanges if e.answer.response["uid"] != e.request["uid"]) == []


def test_the_answer_is_in_the_version_called(exchanges):
    """Each answer echoes apiVersion and kind, v1 and v1beta1 alike."""
    for exchange in exchanges:
        called, review = json.loads(exchange.recording.body), exchange.answer.review
        assert (review["apiVersion"], review["kind"]) == (called["apiVersion"], called["kind"])
    assert {e.answer.review["apiVersion"] for e in exchanges} == {"admission.k8s.io/v1", "admission.k8s.io/v1beta1"}


def test_two_gateways_give_the_same_answer(exchanges):
    """A verdict is a function of a document: two gateways answer each request with the same bytes."""
    assert names(e for e in exchanges if e.answer.body != e.same.body) == []


def test_the_patch_gives_what_the_gateway_predicted(exchanges):
    """An allowed patch, applied by the jsonpatch library to the object that came, gives the decision's object."""
    patched = [e for e in exchanges if "patch" in e.answer.response]
    wrong = names(
        e for e in patched if strict(jsonpatch.apply_patch(e.request["object"], e.patch)) != strict(e.decision.object)
    )
    assert wrong == []
    assert {e.request["operation"] for e in patched} == {"CREATE", "UPDATE", "CONNECT"}


def test_without_a_patch_nothing_was_to_change(exchanges):
    """Where an allowed answer has no patch, the decision's object is the one that came."""
    plain = [e for e in exchanges if e.answer.response["allowed"] and "patch" not in e.answer.response]
    assert names(e for e in plain if strict(e.request["object"]) != strict(e.decision.object)) == []
    assert {e.recording.phase for e in plain} == {"mutating", "validating"}


def test_a_patch_says_only_what_changes(exchanges):
    """No patch is empty, and none changes nothing: it would count as a change and cause a reinvocation."""
    patched = [e for e in exchanges if "patch" in e.answer.response]
    for exchange in patched:
        before = exchange.request["object"]
        assert exchange.patch, exchange.recording.name
        for operation in exchange.patch:
            assert operation["op"] in {"add", "replace", "remove"}
        assert strict(jsonpatch.apply_patch(before, exchange.patch)) != strict(before), exchange.recording.name


def test_patch_and_patch_type_come_together(exchanges):
    """patchType JSONPatch stands where a patch stands, and nowhere else."""
    for exchange in exchanges:
        response = exchange.answer.response
        assert response.get("patchType") == ("JSONPatch" if "patch" in response else None), exchange.recording.name


def test_validating_patches_nothing(exchanges):
    """No answer of the validating phase holds a patch: kube-apiserver would fail the call."""
    validating = [e for e in exchanges if e.recording.phase == "validating"]
    assert names(e for e in validating if {"patch", "patchType"} & e.answer.response.keys()) == []


def test_a_denial_says_why(exchanges):
    """Each denial has a message that names a policy, and an HTTP error code."""
    denied = [e for e in exchanges if not e.answer.response["allowed"]]
    for exchange in denied:
        status = exchange.answer.response["status"]
        assert re.match(r"[a-z-]+\.(test|samples)\.example\.com: .", status["message"]), exchange.recording.name
        assert 400 <= status["code"] <= 599
        assert status["status"] == "Failure"
        assert "patch" not in exchange.answer.response
    assert {"CREATE", "UPDATE", "CONNECT", "DELETE"} == {e.request["operation"] for e in denied}


def test_an_allow_has_no_status(exchanges):
    """An allowed answer carries no status: there is nothing to explain."""
    assert names(e for e in exchanges if e.answer.response["allowed"] and "status" in e.answer.response) == []


def test_warnings_reach_the_user(exchanges):
    """Each warning is one line, reported once, and there are some."""
    reported = [text for e in exchanges for text in e.answer.response.get("warnings", ())]
    assert {"stamped", "a dry run"} <= set(reported)
    assert [text for text in reported if not text or not text.isprintable()] == []
    for exchange in exchanges:
        warnings = exchange.answer.response.get("warnings", [])
        assert len(warnings) == len(set(warnings))


def test_every_policy_that_matches_is_called(exchanges):
    """Each policy that matches judges: none fails, whatever the operation, the version and the resource."""
    failed = [
        (e.recording.name, call.label, call.answer)
        for e in exchanges
        for call in e.decision.calls
        if call.matched and type(call.answer).__name__ == "Failure"
    ]
    assert failed == []
    assert {call.matched for e in exchanges for call in e.decision.all_calls} == {True, False}
