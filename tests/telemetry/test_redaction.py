"""What of a review may be shown: what a policy's inputs include, and nothing of a Secret, whatever policies do."""

import base64
import json

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.engine.verdicts import Allow, Change, ChangeKind, Deny, Failure
from gateway.policies.model import EVERYTHING, Phase
from gateway.reasons import Reason
from gateway.review.request import decode
from gateway.scopes.inputs import Inputs
from gateway.scopes.pointer import parse_pointer
from gateway.scopes.pointer_set import PointerSet
from gateway.telemetry.decision_document import decision_document
from gateway.telemetry.decision_memory import reduced
from gateway.telemetry.masking import HIDDEN, secret_texts
from gateway.telemetry.redaction import HIDDEN_TEXT, Redaction
from tests.traffic import recordings
from tests.world import decide, label, patch, policy, request

LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
METADATA = Inputs(places=PointerSet([("object", "metadata")]))


def of_secret(obj, old=None, *, version="v1"):
    """A request about a Secret."""
    return request(
        obj,
        kind={"group": "", "version": version, "kind": "Secret"},
        resource={"group": "", "version": version, "resource": "secrets"},
        oldObject=old,
        operation="CREATE" if old is None else "UPDATE",
    )


def encoded(text):
    return base64.b64encode(text.encode()).decode()


def secret(text):
    """A Secret with a value in each of the places that hold it."""
    applied = {"apiVersion": "v1", "kind": "Secret", "data": {"password": encoded(text)}}
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "type": "Opaque",
        "metadata": {
            "name": "s",
            "labels": {"app": "web"},
            "annotations": {LAST_APPLIED: json.dumps(applied), "copy": text[::-1]},
        },
        "data": {"password": encoded(text)},
        "stringData": {"other": text},
        "unknown": [text],
    }


def inputs(*pointers):
    return Inputs(places=PointerSet(map(parse_pointer, pointers)))


def chain(*given_inputs, **fields):
    """Policies with these inputs; None: all."""
    return [
        policy(f"p{index}", index=index, rules=(EVERYTHING,), **fields, **({} if each is None else {"inputs": each}))
        for index, each in enumerate(given_inputs)
    ]


# -------------------------------------------------------------------------------------------------------- inputs


def test_only_what_a_policy_received_is_shown():
    """The inputs of all that were called, together; with who asked and about what, and nothing else."""
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "p", "labels": {"a": "1"}, "annotations": {"b": "2"}},
        "spec": {"containers": [{"image": "i", "env": [{"name": "PASSWORD", "value": "x"}]}], "nodeName": "n"},
    }
    policies = chain(inputs("/object/metadata/labels"), inputs("/object/spec/containers/*/image", "/options"))
    on = request(pod, options={"fieldManager": "kubectl"}, userInfo={"username": "u", "extra": {"k": ["v"]}})
    decision, _ = decide(policies, {"p0": Allow(), "p1": Allow()}, on=on)
    shown = Redaction.of(decision).request()
    assert shown["object"] == {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "p", "labels": {"a": "1"}},
        "spec": {"containers": [{"image": "i"}]},
    }
    assert shown["options"] == {"fieldManager": "kubectl"}
    assert shown["userInfo"] == {"username": "u"}
    assert (shown["uid"], shown["operation"], shown["oldObject"]) == ("u1", "CREATE", None)


def test_a_policy_that_was_not_called_shows_nothing():
    """Neither one that does not match, nor one that fails before its call; else an allow-all policy would show all."""
    policies = [policy("p0")]
    on = request({"metadata": {"name": "p"}, "spec": "x"}, resource={"group": "", "version": "v1", "resource": "nodes"})
    decision, _ = decide(policies, {}, on=on)
    assert Redaction.of(decision).request()["object"] == {"metadata": {"name": "p"}}


def test_a_policy_without_inputs_shows_everything():
    """It has received everything."""
    decision, _ = decide(chain(None), {"p0": Allow()})
    assert Redaction.of(decision).request() == json.loads(json.dumps(dict(_decoded(decision.request))))
    assert Redaction.of(decision).whole


def _decoded(on):
    return ((name, json.loads(bytes(text))) for name, text in on.members.items())


def test_the_final_object_keeps_its_places():
    """Elements of arrays that are not shown are empty, so that pointers into the object stay true."""
    pod = {"metadata": {"name": "p", "labels": {}}, "spec": {"containers": [{"name": "a"}, {"name": "b"}]}}
    policies = chain(inputs("/object/metadata/labels", "/object/spec/containers/1"))
    decision, _ = decide(policies, {"p0": label("x")}, on=request(pod))
    shown = Redaction.of(decision).object(decision.object)
    assert shown == {"metadata": {"name": "p", "labels": {"x": "1"}}, "spec": {"containers": [{}, {"name": "b"}]}}


@pytest.mark.parametrize("recording", recordings(), ids=lambda each: each.name)
def test_every_recorded_request_can_be_shown(recording):
    """Without a policy: who asked and about what, and no value of the object but its name."""
    on = decode(recording.body)
    shown = Redaction(on, ()).request()
    assert shown["uid"] == on.uid
    assert shown["userInfo"]["username"] == on.user_info.username
    assert set(shown["object"] or {}) <= {"apiVersion", "kind", "metadata"}


# ------------------------------------------------------------------------------------------------------- Secrets


@pytest.mark.parametrize("version", ["v1", "v2beta7"])
def test_of_a_secret_names_and_labels_are_shown(version):
    """In any version: what it is called, its keys, and no value."""
    decision, _ = decide(chain(None), {"p0": Allow()}, on=of_secret(secret("hunter2"), version=version))
    shown = Redaction.of(decision).request()["object"]
    assert shown == {
        "apiVersion": "v1",
        "kind": "Secret",
        "type": "Opaque",
        "metadata": {"name": "s", "labels": {"app": "web"}, "annotations": {LAST_APPLIED: HIDDEN, "copy": HIDDEN}},
        "data": {"password": HIDDEN},
        "stringData": {"other": HIDDEN},
        "unknown": HIDDEN,
    }
    assert not Redaction.of(decision).whole


def test_the_text_of_a_policy_without_the_values_is_shown():
    """Inputs decide it: the first received no value; the second did, and what the third saw may be the second's."""
    policies = chain(inputs("/object/metadata/labels"), None, inputs("/object/metadata/labels"), phase=Phase.MUTATING)
    answers = {"p0": Allow(warnings=("w0",)), "p1": Allow(warnings=("w1",)), "p2": Deny(message="no")}
    decision, _ = decide(policies, answers, on=of_secret(secret("hunter2")))
    redaction = Redaction.of(decision)
    assert [redaction.text("text", call) for call in decision.calls] == ["text", HIDDEN_TEXT, HIDDEN_TEXT]
    assert redaction.text("all of them") == HIDDEN_TEXT


def test_other_texts_are_searched_for_the_values():
    """As they stand, and decoded; in names of members too. Short ones stand everywhere."""
    on = of_secret({"data": {"a": encoded("hunter2"), "b": encoded("x")}})
    redaction = Redaction(on, ())
    assert redaction.scrubbed({"hunter2": [f"/a/{encoded('hunter2')}", "x", 1]}) == {HIDDEN: [f"/a/{HIDDEN}", "x", 1]}


def test_a_secret_of_very_many_values_is_hidden_without_a_search(monkeypatch):
    """Not all are collected; then no text is shown, no path beyond its first names, and nothing that is searched."""
    monkeypatch.setattr("gateway.telemetry.redaction.FORMS", 300)
    seen = []
    monkeypatch.setattr(
        "gateway.telemetry.redaction.secret_texts", lambda value: map(counted(seen), secret_texts(value))
    )
    on = of_secret({"data": {f"k{number}": encoded(f"value {number}") for number in range(1_000)}})
    redaction = Redaction(on, ())
    assert redaction.text("a text with value 999") == HIDDEN_TEXT
    assert redaction.cleaned("a text with value 999", 100) == HIDDEN
    assert redaction.path("/data/value 999") == f"/data/{HIDDEN}"
    assert redaction.scrubbed({"value 999": 1}) == HIDDEN
    assert len(seen) < 600


def counted(seen):
    def count(text):
        seen.append(text)
        return text

    return count


def test_a_retained_decision_is_redacted_without_its_object():
    """By what the inputs could include; and a name below ``data`` may be a value."""
    policies = chain(inputs("/object/metadata/labels"), inputs("/object/metadata"), phase=Phase.MUTATING)
    add = patch({"op": "add", "path": "/metadata/annotations/hunter2", "value": "x"}, warnings=("w1",))
    decision, _ = decide(policies, {"p0": label("x"), "p1": add}, on=of_secret(secret("hunter2")))
    decision = reduced(decision)
    assert "hunter2" not in str(decision_document(decision))
    redaction = Redaction.of(decision)
    assert [redaction.text("text", call) for call in decision.calls] == ["text", HIDDEN_TEXT]
    assert [redaction.path(each) for each in ("", "/data", "/data/x", "/metadata/labels", "/metadata/labels/x")] == [
        "",
        "/data",
        f"/data/{HIDDEN}",
        "/metadata/labels",
        f"/metadata/labels/{HIDDEN}",
    ]


@pytest.mark.parametrize(
    ("kind", "member", "obj"),
    [
        ("TokenReview", "spec", {"spec": {"token": "ey.secret", "audiences": ["a"]}}),
        ("TokenRequest", "status", {"status": {"token": "ey.secret", "audiences": ["a"]}}),
    ],
)
def test_tokens_are_hidden(kind, member, obj):
    """Those that the API server is asked about, and those that it issues."""
    on = request(obj, kind={"group": "authentication.k8s.io", "version": "v1", "kind": kind})
    decision, _ = decide(chain(None), {"p0": Deny(message="ey.secret")}, on=on)
    redaction = Redaction.of(decision)
    assert redaction.request()["object"] == {member: {"token": HIDDEN, "audiences": ["a"]}}
    assert redaction.text("ey.secret", decision.calls[0]) == HIDDEN_TEXT
    assert redaction.scrubbed("the ey.secret") == f"the {HIDDEN}"


def said(document, way):
    """What a policy may make of the whole document."""
    text = json.dumps(document.get("object")) + json.dumps(document.get("oldObject"))
    return {"plain": text, "reversed": text[::-1], "hex": text.encode().hex(), "cut": text[-30:]}[way]


def answer(kind, way):
    """A policy that puts what it received into each place that an answer has."""

    def judge(document):
        text = said(document, way)
        if kind == "deny":
            return Deny(message=text, details={"causes": [{"message": text}]}, warnings=(text,))
        if kind == "failure":
            return Failure(reason=Reason.WORKER_FAILURE, message=text, audit_annotations={"k": text})
        changed = {"metadata": {"annotations": {"a": text}, "labels": {"l": text}}, "stringData": {"n": text}}
        content = json.dumps(changed).encode()
        return Allow(
            change=Change(kind=ChangeKind.MERGE_PATCH, content=content),
            warnings=(text,),
            audit_annotations={"k": text},
            version=text,
        )

    return judge


def rendered(text, old, kinds, policies):
    """All that a reader of one decision can be shown."""
    on = of_secret(secret(text), None if old is None else secret(old))
    behaviours = {f"p{index}": answer(*kind) for index, kind in enumerate(kinds)}
    decision, _ = decide(policies, behaviours, on=on)
    redaction = Redaction.of(decision)
    texts = []
    for call in decision.calls:
        given_answer = call.answer
        texts += [redaction.text(getattr(given_answer, "message", ""), call)]
        texts += [redaction.text(each, call) for each in given_answer.warnings]
        texts += [redaction.text(each, call) for each in given_answer.audit_annotations.values()]
        texts += [redaction.scrubbed(each.path) for each in call.changes]
    texts += [redaction.text(each) for each in decision.response.warnings]
    if decision.response.status is not None:
        texts.append(redaction.text(decision.response.status.message))
    documents = [decision_document(each, replica="r", offset=0.0) for each in (decision, reduced(decision))]
    everything = [redaction.request(), redaction.object(decision.object), texts, without_digests(documents)]
    return msgspec.json.encode(everything).decode()


def without_digests(value):
    """A document without what no reader without the key can guess a value by, and without sizes."""
    if isinstance(value, dict):
        shown = {
            name: each for name, each in value.items() if name not in {"document", "cuts"} and "Digest" not in name
        }
        return {name: without_digests(each) for name, each in shown.items()}
    return [without_digests(each) for each in value] if isinstance(value, list) else value


VALUES = st.text(alphabet="QXZ%ßü", min_size=6, max_size=20)
ANSWERS = st.tuples(st.sampled_from(["deny", "failure", "allow"]), st.sampled_from(["plain", "reversed", "hex", "cut"]))
INPUTS = st.sampled_from([None, inputs("/object/data"), inputs("/object/metadata"), inputs("/oldObject"), METADATA])


@given(st.data(), VALUES, VALUES, st.lists(ANSWERS, min_size=1, max_size=4), st.booleans())
def test_nothing_shown_depends_on_the_values(data, one, other, kinds, is_update):
    """Two Secrets that differ in their values only are shown alike, whatever the policies make of what they receive:
    so nothing that is shown says anything about the values.
    """
    policies = chain(*[data.draw(INPUTS) for _ in kinds])
    first = rendered(one, one if is_update else None, kinds, policies)
    assert first == rendered(other, other if is_update else None, kinds, policies)
    assert one not in first
    assert encoded(one) not in first
