"""Native configurations, whatever is in them: never an exception, never a webhook that disappears quietly."""

import copy
import json
import random
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.policies.configuration import load
from gateway.policies.decoding.texts import SourceText
from gateway.policies.model import EVERYTHING

SELECTOR = {"matchLabels": {"a": "b"}, "matchExpressions": [{"key": "c", "operator": "NotIn", "values": ["d"]}]}
WEBHOOK = {
    "name": "a.example.com",
    "clientConfig": {"service": {"namespace": "n", "name": "s", "path": "/p", "port": 443}, "caBundle": "YQ=="},
    "rules": [
        {"operations": ["CREATE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"], "scope": "*"}
    ],
    "failurePolicy": "Ignore",
    "matchPolicy": "Exact",
    "namespaceSelector": SELECTOR,
    "objectSelector": SELECTOR,
    "sideEffects": "None",
    "timeoutSeconds": 2,
    "admissionReviewVersions": ["v1"],
    "matchConditions": [{"name": "n", "expression": "true"}],
}
METADATA = {
    "labels": {"a": "b"},
    "annotations": {"A/b": "c"},
    "creationTimestamp": "2026-01-01T00:00:00Z",
    "generation": 1,
    "ownerReferences": [{"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "u", "controller": True}],
    "finalizers": ["a.b/c"],
    "managedFields": [{"manager": "m", "operation": "Update", "time": None, "fieldsType": "FieldsV1", "fieldsV1": {}}],
}
DOCUMENTS = [
    {
        "apiVersion": f"admissionregistration.k8s.io/{version}",
        "kind": f"{phase}WebhookConfiguration",
        "metadata": METADATA | {"name": version},
        "webhooks": [WEBHOOK, WEBHOOK | {"name": "b.example.com", "clientConfig": {"url": "https://h/p"}}],
    }
    for phase in ("Mutating", "Validating")
    for version in ("v1", "v1beta1")
]
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=8) | st.sampled_from(
    [
        "*",
        "*/*",
        "CREATE",
        "Fail",
        "Ignore",
        "Some",
        "a.b.c",
        "In",
        "https://h",
        "http://u:p@h?#",
        "/a/",
        "YQ=",
        "-",
        "v1",
    ]
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXTS,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["name", "key", "a", "x.y/z", "", "url"]), inner)
    ),
    max_leaves=6,
)
FEWER = settings(max_examples=settings.default.max_examples // 4)
"""For what loads everything several times."""


def places(value, path=()):
    """Every path in a JSON value, the root left out."""
    if path:
        yield path
    children = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for step, child in children:
        yield from places(child, (*path, step))


PLACES = [path for path in places(DOCUMENTS) if path[1:2] not in {(), ("apiVersion",), ("kind",)}]


def changed(path, new):
    """The documents with one value replaced, or taken away (None in ``new``)."""
    documents = copy.deepcopy(DOCUMENTS)
    owner = documents
    for step in path[:-1]:
        owner = owner[step]
    if new:
        owner[path[-1]] = new[0]
    else:
        del owner[path[-1]]
    return documents


def texts_of(documents):
    """Each document in a file of its own."""
    return [SourceText(name=f"{i}", content=json.dumps(document).encode()) for i, document in enumerate(documents)]


def test_unchanged():
    """The documents that are changed below are right."""
    loaded = load(texts_of(DOCUMENTS))
    assert (loaded.errors, loaded.fatal, len(loaded.mutating), len(loaded.validating)) == ((), False, 4, 4)


@pytest.mark.property
@given(st.sampled_from(PLACES), st.lists(JSON, max_size=1))
def test_changed_document(path, new):
    """A value replaced or taken away: all webhooks stand or all is refused, and each error is the fault of one."""
    documents = changed(path, new)
    loaded = load(texts_of(documents))
    if loaded.fatal:
        assert loaded.errors
        return
    entries = [
        (str(file), index)
        for file, document in enumerate(documents)
        for index in range(len(document.get("webhooks") or []))
    ]
    policies = loaded.mutating + loaded.validating
    assert sorted((policy.place.file, policy.index) for policy in policies) == sorted(entries)
    assert {policy.worker for policy in policies if not policy.fault} == loaded.workers.keys()
    at_fault = {(policy.place.file, f"webhooks[{policy.index}]") for policy in policies if policy.fault}
    blamed = {(error.place.file, re.match(r"webhooks\[\d+\]", error.place.path)[0]) for error in loaded.errors}
    assert at_fault == blamed
    for error in loaded.errors:
        assert error.message
        assert "\n" not in str(error)
        assert str(error).encode()


@pytest.mark.property
@given(st.sampled_from([path for path in PLACES if "rules" in path]), st.lists(JSON, max_size=1))
def test_strictest_reading(path, new):
    """Each list of a rule is as it is written, or everything; nothing that was written is left out."""
    documents = changed(path, new)
    file, _, index, *_ = path
    loaded = load(texts_of(documents))
    (read,) = [
        policy.rules
        for policy in loaded.mutating + loaded.validating
        if (policy.place.file, policy.index) == (str(file), index)
    ]
    written = documents[file]["webhooks"][index].get("rules")
    if not isinstance(written, list):
        assert read == (() if written is None else (EVERYTHING,))
        return
    assert len(read) == len(written)
    for rule, entry in zip(read, written, strict=True):
        for name, field in {"operations": "operations", "apiGroups": "api_groups", "resources": "resources"}.items():
            widest = list(getattr(EVERYTHING, field))
            said = entry.get(name) if isinstance(entry, dict) else widest
            # An element that is null is an empty text, as in Go.
            said = ["" if text is None else text for text in said] if isinstance(said, list) else said
            assert list(getattr(rule, field)) in (said, widest)


@FEWER
@pytest.mark.property
@given(st.integers(0, 100), st.sampled_from(PLACES), st.lists(JSON, max_size=1))
def test_order_of_files(shuffler, path, new):
    """The order in which files are given means nothing, not even for the errors."""
    texts = texts_of(changed(path, new))
    assert load(texts) == load(random.Random(shuffler).sample(texts, len(texts)))


@FEWER
@pytest.mark.property
@given(st.sampled_from(PLACES), st.lists(JSON, max_size=1))
def test_alone_or_in_a_list(path, new):
    """An object gets the same errors alone, beside others, and in a List."""
    document = changed(path, new)[path[0]]

    def errors(content):
        loaded = load([SourceText(name="a", content=json.dumps(content).encode())])
        return [(error.place.path, error.message) for error in loaded.errors]

    assert errors({"apiVersion": "v1", "kind": "List", "items": [document]}) == errors(document)
