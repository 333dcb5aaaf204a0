"""Answers: their checks, and their outcomes in the contract."""

from datetime import timedelta

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from admission_worker import (
    NO_STORE,
    Allow,
    Cause,
    Deny,
    Details,
    Failure,
    InvalidAnswerError,
    allow,
    deny,
    fail,
    merge,
    mutated,
    patch,
)
from admission_worker.outcomes import outcome_of
from admission_worker.proto.admission.worker.v1 import worker_pb2

NO_CHANGE = worker_pb2.Allow()

OUTCOMES = [
    (allow(), worker_pb2.Outcome(allow=NO_CHANGE)),
    (allow(warnings=["w"]), worker_pb2.Outcome(allow=NO_CHANGE, warnings=["w"])),
    (
        allow(audit_annotations={"a.b-c_D": "v"}),
        worker_pb2.Outcome(allow=NO_CHANGE, audit_annotations={"a.b-c_D": "v"}),
    ),
    (
        allow(cache=NO_STORE),
        worker_pb2.Outcome(allow=NO_CHANGE, cache=worker_pb2.CacheHint(no_store=worker_pb2.CacheHint.NoStore())),
    ),
    (
        allow(cache=timedelta(seconds=1.5)),
        worker_pb2.Outcome(allow=NO_CHANGE, cache=worker_pb2.CacheHint(ttl=timedelta(seconds=1.5))),
    ),
    (patch([]), worker_pb2.Outcome(allow=NO_CHANGE)),
    (merge({}), worker_pb2.Outcome(allow=NO_CHANGE)),
    (mutated({}), worker_pb2.Outcome(allow=worker_pb2.Allow(object=b"{}"))),
    (
        patch([{"op": "remove", "path": "/a"}]),
        worker_pb2.Outcome(allow=worker_pb2.Allow(json_patch=b'[{"op":"remove","path":"/a"}]')),
    ),
    (merge({"a": None}), worker_pb2.Outcome(allow=worker_pb2.Allow(merge_patch=b'{"a":null}'))),
    (deny("no"), worker_pb2.Outcome(deny=worker_pb2.Deny(code=403, message="no", reason="Forbidden"))),
    (deny("", code=200), worker_pb2.Outcome(deny=worker_pb2.Deny(code=200))),
    (deny("no", code=429), worker_pb2.Outcome(deny=worker_pb2.Deny(code=429, message="no", reason="TooManyRequests"))),
    (deny("no", code=422, reason=""), worker_pb2.Outcome(deny=worker_pb2.Deny(code=422, message="no"))),
    (
        deny("no", causes=[Cause("spec.x", "bad")], details=Details(kind="Pod", retry_after_seconds=3)),
        worker_pb2.Outcome(
            deny=worker_pb2.Deny(
                code=403,
                message="no",
                reason="Forbidden",
                details=worker_pb2.StatusDetails(
                    kind="Pod",
                    retry_after_seconds=3,
                    causes=[worker_pb2.StatusCause(reason="FieldValueInvalid", message="bad", field="spec.x")],
                ),
            )
        ),
    ),
    (fail("broken"), worker_pb2.Outcome(failure=worker_pb2.Failure(message="broken"))),
]


@pytest.mark.parametrize(("answer", "outcome"), OUTCOMES)
def test_an_answer_is_its_outcome(answer, outcome):
    """Each answer becomes an outcome with the same fields, and no others."""
    assert outcome_of(answer, "") == outcome


WRONG = {
    "message": lambda: deny(None),
    "code as text": lambda: deny("no", code="403"),
    "code as boolean": lambda: deny("no", code=True),
    "code beyond 32 bits": lambda: deny("no", code=2**31),
    "reason": lambda: deny("no", reason=403),
    "causes": lambda: deny("no", causes=["spec"]),
    "details": lambda: deny("no", details={"kind": "Pod"}),
    "retry": lambda: Details(retry_after_seconds=1.5),
    "cause": lambda: Cause("f", None),
    "warnings as text": lambda: allow(warnings="w"),
    "warnings as number": lambda: allow(warnings=1),
    "annotations": lambda: allow(audit_annotations=["a"]),
    "annotation key": lambda: allow(audit_annotations={"a/b": "v"}),
    "annotation key too long": lambda: allow(audit_annotations={"a" * 64: "v"}),
    "annotation value": lambda: allow(audit_annotations={"a": 1}),
    "cache as seconds": lambda: allow(cache=5),
    "cache for ever": lambda: allow(cache=timedelta.max),
    "negative cache": lambda: allow(cache=timedelta(seconds=-1)),
    "patch as text": lambda: patch("[]"),
    "patch as nothing": lambda: patch(None),
    "operation": lambda: patch(["add"]),
    "op": lambda: patch([{"op": "insert", "path": "/a", "value": 1}]),
    "op of another type": lambda: patch([{"op": ["add"], "path": "/a", "value": 1}]),
    "no value": lambda: patch([{"op": "add", "path": "/a"}]),
    "no from": lambda: patch([{"op": "move", "path": "/a"}]),
    "path": lambda: patch([{"op": "remove", "path": "a"}]),
    "path of another type": lambda: patch([{"op": "remove", "path": 1}]),
    "merge": lambda: merge([]),
    "object": lambda: mutated("{}"),
    "no JSON": lambda: merge({"a": object()}),
    "no number": lambda: merge({"a": [1.0, {"b": float("inf")}]}),
    "no key": lambda: merge({"a": {(1, 2): 3}}),
    "no Unicode": lambda: merge({"a": "\udc00"}),
    "failure": lambda: fail(ValueError("x")),
}


@pytest.mark.parametrize("build", WRONG.values(), ids=WRONG.keys())
def test_an_answer_that_means_nothing_cannot_be_built(build):
    """An invalid answer raises where it is made, with the author's line in the traceback."""
    with pytest.raises(InvalidAnswerError):
        build()


def test_a_text_of_an_answer_shows_no_value():
    """An error about an answer names types, never values, which may be secret."""
    with pytest.raises(InvalidAnswerError) as error:
        merge({"data": {"password": {("hunter2",): 1}}})
    assert "hunter2" not in str(error.value)


@pytest.mark.parametrize("answer", [allow(), deny("no"), fail("no")])
def test_answers_are_frozen(answer):
    """An answer cannot change after it is made."""
    name = answer.__struct_fields__[0]
    with pytest.raises(AttributeError, match="immutable"):
        setattr(answer, name, "other")


def test_what_happens_to_the_values_later_does_not_change_the_answer():
    """A change is encoded when it is made."""
    labels, notes = {"a": "b"}, {"k": "v"}
    answer = merge({"labels": labels}, audit_annotations=notes)
    labels.clear()
    notes.clear()
    assert answer.change.value == {"labels": {"a": "b"}}
    assert answer.audit_annotations == {"k": "v"}


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=10,
)


@pytest.mark.property
@given(JSON)
def test_any_json_value_travels_in_a_change(value):
    """A patch, a merge patch and an object arrive unchanged."""
    operation = {"op": "add", "path": "/a", "value": value}
    assert msgspec.json.decode(outcome_of(patch([operation]), "").allow.json_patch) == [operation]
    assert msgspec.json.decode(outcome_of(merge({"a": value}), "").allow.merge_patch) == {"a": value}
    assert msgspec.json.decode(outcome_of(mutated({"a": value}), "").allow.object) == {"a": value}


def test_the_constructors_are_what_they_are_called():
    """Allow, Deny and Failure have their own types and can be compared."""
    assert isinstance(patch([]), Allow)
    assert isinstance(deny("no"), Deny)
    assert isinstance(fail("no"), Failure)
    assert deny("no") == deny("no") != deny("yes")
