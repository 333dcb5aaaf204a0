"""The samples required-labels and default-labels."""

import copy

import jsonpatch
import pytest
from hypothesis import given
from hypothesis import strategies as st

from admission_worker import Allow, Cause, Deny, InvalidSettingsError
from admission_worker.samples.label_syntax import is_key, is_value
from workers.python.tests.reviews import all_recorded, judge, mutate, recorded, request

REQUIRED = {"labels": {"team": "", "tier": "front|back", "app.kubernetes.io/name": ".*"}}


def _labelled(labels, **fields):
    return {
        "operation": "CREATE",
        "object": {"metadata": {"name": "n"} | ({} if labels is None else {"labels": labels})},
        **fields,
    }


@pytest.mark.parametrize(
    ("labels", "causes"),
    [
        ({"team": "a", "tier": "front", "app.kubernetes.io/name": "x"}, []),
        ({"team": "", "tier": "back", "app.kubernetes.io/name": ""}, []),
        (
            {"tier": "frontend"},
            [
                Cause("metadata.labels[team]", 'label "team" is required', "FieldValueRequired"),
                Cause(
                    "metadata.labels[tier]",
                    'label "tier" is "frontend" and must match "front|back"',
                    "FieldValueInvalid",
                ),
                Cause(
                    "metadata.labels[app.kubernetes.io/name]",
                    'label "app.kubernetes.io/name" is required with a value that matches ".*"',
                    "FieldValueRequired",
                ),
            ],
        ),
    ],
)
def test_all_missing_and_mismatching_labels_are_named_at_once(labels, causes):
    """One denial with one cause for each label; a pattern must match the whole value."""
    answer = judge("required-labels", _labelled(labels), REQUIRED)
    if not causes:
        assert isinstance(answer, Allow)
        return
    assert answer.causes == tuple(causes)
    assert answer.message == "; ".join(cause.message for cause in causes)
    assert (answer.code, answer.reason) == (403, "Forbidden")


@pytest.mark.parametrize("labels", [None, {}])
def test_an_object_without_labels_lacks_all_of_them(labels):
    """No labels at all is not a way around."""
    answer = judge("required-labels", _labelled(labels), REQUIRED)
    assert len(answer.causes) == 3


@pytest.mark.parametrize("metadata", [{}, {"metadata": {"labels": None}}, {"metadata": {"labels": {"team": 5}}}])
def test_an_odd_object_is_denied_and_breaks_nothing(metadata):
    """Whatever the object looks like, there is a verdict."""
    assert isinstance(
        judge("required-labels", {"operation": "CREATE", "object": metadata}, {"labels": {"team": ""}}), Deny
    )


@pytest.mark.parametrize(
    "name",
    ["cm-delete.0m", "pod-exec-connect-post.1v", "deploy-scale-put.1v", "node-status-patch.1v", "pod-eviction.1v"],
)
def test_what_brings_no_labels_is_allowed(name):
    """DELETE, CONNECT and subresources pass."""
    assert isinstance(judge("required-labels", recorded(name), REQUIRED), Allow)


def test_recorded_objects_are_judged_by_their_labels():
    """The recorded Deployment has app=d1 or nothing; the policy agrees with a look at the object."""
    for name, admission in all_recorded("validating").items():
        if admission["operation"] not in {"CREATE", "UPDATE"} or "subResource" in admission:
            continue
        labels = admission["object"]["metadata"].get("labels", {})
        answer = judge("required-labels", admission, {"labels": {"app": ""}})
        assert isinstance(answer, Allow) == ("app" in labels), name


@pytest.mark.parametrize(
    ("policy", "settings", "pointers"),
    [
        (
            "required-labels",
            {"labels": {"team": "(", "a b": "", "-": "["}},
            ["/labels/team", "/labels/a b", "/labels/-", "/labels/-"],
        ),
        ("required-labels", {}, ["/labels"]),
        ("required-labels", {"labels": {"team": 1}, "extra": 1}, ["/labels/team", "/extra"]),
        ("default-labels", {"labels": {"a/b/c": "x", "ok": "no good"}}, ["/labels/a~1b~1c", "/labels/ok"]),
    ],
)
def test_settings_that_cannot_work_are_refused(policy, settings, pointers):
    """An invalid label or regular expression is an error when settings are validated."""
    with pytest.raises(InvalidSettingsError) as error:
        judge(policy, _labelled({}), settings)
    assert [one.pointer for one in error.value.errors] == pointers


@pytest.mark.parametrize(
    ("metadata", "expected"),
    [
        ({"labels": {"b": "2"}}, {"labels": {"b": "2", "a": "1", "example.com/c": "3"}}),
        ({"labels": {"a": "mine"}}, {"labels": {"a": "mine", "example.com/c": "3"}}),
        ({"labels": {}}, {"labels": {"a": "1", "example.com/c": "3"}}),
        ({"labels": None}, {"labels": {"a": "1", "example.com/c": "3"}}),
        ({"name": "n"}, {"name": "n", "labels": {"a": "1", "example.com/c": "3"}}),
        (None, {"labels": {"a": "1", "example.com/c": "3"}}),
    ],
)
def test_missing_labels_are_added_and_none_is_overwritten(metadata, expected):
    """Whether there are labels, none, or no metadata at all."""
    whole = {"kind": "ConfigMap"} | ({} if metadata is None else {"metadata": metadata})
    admission = {"operation": "UPDATE", "object": whole}
    result, _ = mutate("default-labels", admission, {"labels": {"a": "1", "example.com/c": "3"}})
    assert result["metadata"] == expected


@pytest.mark.parametrize(
    "name", ["cm-delete.0m", "pod-exec-connect-post.0m", "deploy-scale-put.0m", "pod-status-patch.0m"]
)
def test_default_labels_leave_alone_what_they_cannot_label(name):
    """DELETE has no object to change; a subresource's object has no labels of its own."""
    answer = judge("default-labels", recorded(name), {"labels": {"a": "1"}})
    assert isinstance(answer, Allow)
    assert answer.change is None


def test_nothing_to_add_changes_nothing():
    """An empty setting is no patch."""
    for metadata in ({}, {"metadata": {}}, {"metadata": {"labels": {}}}):
        result, _ = mutate("default-labels", {"operation": "CREATE", "object": metadata}, {"labels": {}})
        assert result == metadata


KEYS = st.from_regex(
    r"([a-z0-9]([a-z0-9.]{0,6}[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,6}[A-Za-z0-9])?", fullmatch=True
).filter(is_key)
VALUES = st.from_regex(r"([A-Za-z0-9]([-A-Za-z0-9_.]{0,6}[A-Za-z0-9])?)?", fullmatch=True)
LABELS = st.dictionaries(KEYS, VALUES, max_size=4)


@pytest.mark.property
@given(st.none() | LABELS, LABELS)
def test_default_labels_are_there_afterwards_and_stay(labels, defaults):
    """Afterwards every default's key is there, what was there is untouched, and required-labels is content."""
    admission = _labelled(labels)
    before = copy.deepcopy(admission)
    result, _ = mutate("default-labels", admission, {"labels": defaults})
    assert admission == before
    assert result["metadata"].get("labels", {}) == defaults | (labels or {})
    required = {"labels": dict.fromkeys(defaults, "")}
    assert isinstance(judge("required-labels", admission | {"object": result}, required), Allow)


def test_keys_are_escaped_in_paths():
    """A slash in a label's key is ~1 in a JSON Pointer (RFC 6901)."""
    answer = judge("default-labels", _labelled({"x": "y"}), {"labels": {"example.com/a": "1"}})
    assert answer.change.value == [{"op": "add", "path": "/metadata/labels/example.com~1a", "value": "1"}]
    assert jsonpatch.apply_patch(_labelled({})["object"], answer.change.value)["metadata"]["labels"] == {
        "example.com/a": "1"
    }


@pytest.mark.parametrize(
    ("key", "valid"),
    [
        ("team", True),
        ("a.b_c-D", True),
        ("example.com/team", True),
        ("x" * 63, True),
        ("a" * 253 + "/x", True),
        ("", False),
        ("-a", False),
        ("a-", False),
        ("x" * 64, False),
        ("/x", False),
        ("a/", False),
        ("a/b/c", False),
        ("Example.com/x", False),
        ("a" * 254 + "/x", False),
        ("a b", False),
        ("ä", False),
        ("a\n", False),
    ],
)
def test_a_labels_key_is_kubernetes_own(key, valid):
    """As k8s.io/apimachinery validates qualified names."""
    assert is_key(key) == valid


@pytest.mark.parametrize(
    ("value", "valid"), [("", True), ("a.b", True), ("x" * 63, True), ("x" * 64, False), ("a b", False), ("a/b", False)]
)
def test_a_labels_value_is_kubernetes_own(value, valid):
    """As k8s.io/apimachinery validates label values."""
    assert is_value(value) == valid


def test_a_pod_of_a_recording_is_labelled():
    """A real Pod keeps its label and gets the others."""
    result, _ = mutate("default-labels", recorded("pod-create.0m"), {"labels": {"app": "other", "team": "a"}})
    assert result["metadata"]["labels"] == {"app": "x", "team": "a"}


def test_an_update_is_labelled_too():
    """Labels can be changed at any time."""
    admission = request(spec={"containers": []}, old={"containers": []})
    result, _ = mutate("default-labels", admission, {"labels": {"team": "a"}})
    assert result["metadata"]["labels"] == {"team": "a"}
