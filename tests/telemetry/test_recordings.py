"""Recordings: a sample of the reviews, as far as policies received them, from which the same verdicts come out."""

import json

import pytest

from gateway.cel.match_conditions import compile_condition
from gateway.engine.verdicts import Allow, Change, ChangeKind, Deny
from gateway.policies.model import EVERYTHING, MatchCondition, Requirement, Selector
from gateway.reasons import Reason
from gateway.review.request import decode
from gateway.scopes.inputs import Inputs
from gateway.scopes.pointer import parse_pointer
from gateway.scopes.pointer_set import PointerSet
from gateway.serving.own_refusals import internal
from gateway.telemetry.background_writer import BackgroundWriter
from gateway.telemetry.decision_document import encoded
from gateway.telemetry.labels import Drop
from gateway.telemetry.recordings import REVIEW_BYTES, Recorder, recording
from tests.telemetry.test_background_writer import Collected, writing
from tests.telemetry.test_redaction import of_secret, secret
from tests.world import canceled, decide, patch, policy, request

POD = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "p", "labels": {"a": "1"}, "annotations": {"note": "private"}},
    "spec": {"containers": [{"name": "c", "image": "i"}], "nodeName": "private"},
}
LABELS = Inputs(places=PointerSet([parse_pointer("/object/metadata/labels")]))
USER = {"username": "u", "groups": ["g"], "extra": {"k": ["v"]}}


def when(expression):
    return (MatchCondition(name="when", condition=compile_condition(expression)),)


def recorded(policies, answers, on):
    """The recording of a decision as it is written, and the decision that its review has."""
    decision, _ = decide(policies, answers, on=on)
    made = json.loads(encoded(recording(decision)))
    again, _ = decide(policies, answers, on=decode(json.dumps(made["review"]).encode()))
    return made, decision, again


def alike(one, other):
    """Whether two decisions are the same in all that policies did."""
    return [(call.matched, call.answer, call.changes, call.document_key) for call in one.calls] == [
        (call.matched, call.answer, call.changes, call.document_key) for call in other.calls
    ] and (one.outcome, one.patch) == (other.outcome, other.patch)


def test_what_no_policy_received_is_not_recorded():
    """And the review has the same documents, verdicts and patch."""
    on = request(POD, userInfo=USER)
    made, decision, again = recorded([policy("p", inputs=LABELS)], {"p": Allow()}, on)
    assert made["review"]["request"]["object"] == {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "p", "labels": {"a": "1"}},
    }
    assert made["review"]["request"]["userInfo"] == {"username": "u", "groups": ["g"]}
    assert "private" not in json.dumps(made)
    assert made["replayable"]
    assert alike(decision, again)


def merge(value):
    return Allow(change=Change(kind=ChangeKind.MERGE_PATCH, content=json.dumps(value).encode()))


CHANGES = {
    "replaced": merge({"metadata": {"annotations": {"note": "new"}}}),
    "removed": merge({"metadata": {"annotations": {"note": None}}}),
    "removed from another": merge({"spec": {"nodeName": None}}),
    "added beside it": patch({"op": "add", "path": "/metadata/annotations/other", "value": "new"}),
    "in a new member": patch({"op": "add", "path": "/spec/tolerations", "value": []}),
}


@pytest.mark.parametrize("name", CHANGES)
def test_a_change_of_what_was_not_received_applies_again(name):
    """Its containers are recorded, and in the place of the old value that there is one."""
    made, decision, again = recorded([policy("p", inputs=LABELS)], {"p": CHANGES[name]}, request(POD))
    assert decision.patch
    assert made["replayable"]
    assert "private" not in json.dumps(made)
    assert alike(decision, again)


def test_a_change_that_cannot_be_applied_makes_it_not_replayable():
    """It would fail in another way, because what it would have changed is not recorded."""
    hidden = patch({"op": "replace", "path": "/metadata/annotations/note", "value": "new"})
    made, decision, _ = recorded([policy("p", inputs=LABELS)], {"p": hidden}, request(POD))
    assert decision.calls[0].answer.reason is Reason.INVALID_PATCH
    assert not made["replayable"]
    made, decision, again = recorded([policy("p")], {"p": patch({"op": "remove", "path": "/nope"})}, request(POD))
    assert made["replayable"]
    assert alike(decision, again)


def test_what_selectors_and_conditions_read_is_recorded():
    """Labels, the user and the options; so whoever was not called is not called again."""
    selector = Selector(requirements=(Requirement(key="a", operator="In", values=("1",)),))
    nothing = Inputs(places=PointerSet())
    policies = [
        policy("p", inputs=nothing, object_selector=selector),
        policy("q", index=1, inputs=nothing, match_conditions=when("request.userInfo.extra['k'].exists(x, x == 'v')")),
        policy("r", index=2, inputs=nothing, match_conditions=when("request.options.fieldManager == 'other'")),
    ]
    on = request(POD, userInfo=USER, options={"fieldManager": "kubectl"})
    made, decision, again = recorded(policies, dict.fromkeys("pqr", Allow()), on)
    assert [call.matched for call in decision.calls] == [True, True, False]
    assert made["replayable"]
    assert alike(decision, again)


@pytest.mark.parametrize(
    ("expression", "inputs", "replayable"),
    [
        ("object.spec.nodeName == 'private'", LABELS, False),
        ("object.spec.nodeName == 'private'", Inputs.EVERYTHING, True),
        ("oldObject == null", LABELS, False),
        ("authorizer.group('').resource('pods').check('get').allowed()", Inputs.EVERYTHING, False),
    ],
)
def test_a_condition_that_reads_more_makes_it_not_replayable(expression, inputs, replayable):
    """The rest of the object, or what only the API server knows."""
    made, *_ = recorded([policy("p", inputs=inputs, match_conditions=when(expression))], {"p": Allow()}, request(POD))
    assert made["replayable"] == replayable


@pytest.mark.parametrize(("inputs", "replayable"), [(LABELS, True), (Inputs.EVERYTHING, False)])
def test_no_value_of_a_secret_is_recorded(inputs, replayable):
    """Whoever received one cannot be tried again."""
    on = of_secret(secret("hunter2hunter2"))
    made, *_ = recorded([policy("p", rules=(EVERYTHING,), inputs=inputs)], {"p": Deny(message="no")}, on)
    assert made["replayable"] == replayable
    assert "hunter2" not in json.dumps(made)
    assert "aHVudGVyMm" not in json.dumps(made)


async def test_a_sample_is_recorded():
    """As large as the ratio; without what is too large."""
    sink = Collected()
    draws = iter([0.0, 0.5, 0.49, 0.9, 0.1])
    decision, _ = decide([policy("p")], {"p": Allow()})
    large, _ = decide([policy("p")], {"p": Allow()}, on=request({"metadata": {"x": "x" * REVIEW_BYTES}}))
    async with writing(sink) as (writer, drops):
        recorder = Recorder(writer, 0.5, draw=lambda: next(draws))
        for each in (decision, decision, decision, decision, large):
            recorder.decided(each)
        recorder.flush()
    assert len(sink.records) == 3  # and "closed"
    assert drops == {Drop.TOO_LARGE: 1}


async def test_what_no_policy_decided_is_not_recorded():
    """A review that its client canceled, and one that the gateway itself refused: a replay decides otherwise."""
    sink = Collected()
    async with writing(sink) as (writer, drops):
        recorder = Recorder(writer, 1.0)
        recorder.decided(canceled([policy("p")]))
        recorder.decided(internal(decide([policy("p")], {"p": Allow()})[0]))
        recorder.flush()
    assert (sink.records, drops) == (["closed"], {})


async def test_a_full_writer_and_an_error_cost_a_recording_only(monkeypatch):
    """Counted, and nothing else happens."""
    decision, _ = decide([policy("p")], {"p": Allow()})
    drops = []
    full = BackgroundWriter(Collected(), lambda *drop: drops.append(drop), records=0)
    Recorder(full, 1.0).decided(decision)
    monkeypatch.setattr("gateway.telemetry.recordings.recording", lambda _: 1 / 0)
    recorder = Recorder(BackgroundWriter(Collected(), lambda *drop: drops.append(drop)), 1.0)
    recorder.decided(decision)
    recorder.flush()
    assert drops == [(Drop.FULL, 1), (Drop.INTERNAL, 1)]
