"""Whatever comes in: never an exception, never a policy that disappears, never one that means less than it could."""

import copy
import json
import random
import re

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.policies.configuration import load
from gateway.policies.decoding.texts import SourceText
from gateway.policies.model import EVERYTHING, Configuration

GROUP = "admission-gateway.dev/v1alpha1"
RULE = {
    "operations": ["CREATE"],
    "apiGroups": ["apps"],
    "apiVersions": ["v1"],
    "resources": ["deployments"],
    "scope": "*",
}
SELECTOR = {"matchLabels": {"a": "b"}, "matchExpressions": [{"key": "c", "operator": "NotIn", "values": ["d"]}]}
POLICY = {
    "name": "labels.a.example.com",
    "worker": "labels",
    "policy": "labels",
    "rules": [RULE, RULE | {"resources": ["*"]}],
    "namespaceSelector": SELECTOR,
    "objectSelector": SELECTOR,
    "matchPolicy": "Exact",
    "failurePolicy": "Ignore",
    "timeoutSeconds": 2,
    "sideEffects": "None",
    "settings": {"labels": {"owner": ["a", 1, None]}},
    "matchConditions": [],
    "inputs": ["/object/metadata/labels", "/object/spec/*/a~1b"],
    "cache": {"ttl": "5m", "staleIfError": "1h"},
    "mode": "enforce",
    "isolate": False,
    "contact": "us",
    "documentation": "https://example.com",
    "shadow": {"worker": "labels", "policy": "next", "settings": {"a": 1}},
}
DOCUMENTS = [
    {
        "apiVersion": GROUP,
        "kind": "Worker",
        "metadata": {"name": "labels"},
        "spec": {"grpc": {"target": "unix:a", "command": ["b"]}},
    },
    {
        "apiVersion": GROUP,
        "kind": "MutatingPolicyConfiguration",
        "metadata": {"name": "m"},
        "policies": [
            POLICY | {"reinvocationPolicy": "IfNeeded", "writes": ["/metadata/labels/x"], "onConflict": "deny"},
            POLICY | {"name": "other.a.example.com"},
        ],
    },
    {"apiVersion": GROUP, "kind": "ValidatingPolicyConfiguration", "metadata": {"name": "v"}, "policies": [POLICY]},
]

FEWER = settings(max_examples=settings.default.max_examples // 4)
"""For properties that load everything twice, of which a case takes 7 ms."""

JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
    | st.sampled_from(["*", "*/*", "CREATE", "Fail", "Ignore", "None", "a.b.c", "labels", "In", "Exists", "unix:b"])
    | st.sampled_from(["/object", "/uid", "/object/metadata/labels/a", "/kind/*", "/a~", "1h", "-1s", "deny"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["name", "rules", "key", "a", "x.y/z", "", "policies"]), inner, max_size=3)
    ),
    max_leaves=6,
)


def places(value, path=()):
    """Every path in a JSON value, the root included."""
    yield path
    children = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for step, child in children:
        yield from places(child, (*path, step))


PLACES = list(places(DOCUMENTS))[1:]


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


def load_all(documents):
    """Each document from a file of its own."""
    texts = [SourceText(name=f"{i}", content=json.dumps(document).encode()) for i, document in enumerate(documents)]
    return load(texts)


def chains(loaded):
    """All policies of both phases."""
    return loaded.mutating + loaded.validating


def test_unchanged():
    """The documents that are changed below are right."""
    loaded = load_all(DOCUMENTS)
    assert (loaded.errors, loaded.fatal, len(loaded.mutating), len(loaded.validating)) == ((), False, 2, 1)


@pytest.mark.property
@given(st.binary(max_size=400), st.sampled_from(["a.yaml", "a.json"]))
def test_any_bytes(content, name):
    """Any bytes give a Configuration; those that hold no object give a fatal one."""
    loaded = load([SourceText(name=name, content=content)])
    assert isinstance(loaded, Configuration)
    assert loaded.fatal


@pytest.mark.property
@given(st.integers(0, 3000), st.binary(min_size=1, max_size=8), st.booleans())
def test_damaged_text(at, damage, overwrite):
    """A text that is damaged anywhere gives a Configuration in which every error is one line and has a place."""
    text = yaml.safe_dump_all(DOCUMENTS).encode()
    at %= len(text)
    content = text[:at] + damage + text[at + (len(damage) if overwrite else 0) :]
    loaded = load([SourceText(name="a", content=content)])
    for error in loaded.errors:
        assert error.place.file == "a"
        assert 1 <= error.place.line <= content.count(b"\n") + content.count(b"\r") + 2
        assert "\n" not in str(error)
        assert str(error).encode()


@pytest.mark.property
@given(st.integers(0, 3000))
def test_cut_text(at):
    """A text that is cut off loses policies only loudly: it is fatal, or whole documents are missing."""
    text = yaml.safe_dump_all(DOCUMENTS).encode()
    loaded = load([SourceText(name="a", content=text[: at % len(text)])])
    for chain in (loaded.mutating, loaded.validating):
        for policy in chain:
            assert policy.fault or policy.rules


@pytest.mark.property
@given(st.sampled_from(PLACES), st.lists(JSON, max_size=1))
def test_changed_document(path, new):
    """A value replaced or taken away: all policies stand or all is refused, and each error is the fault of a policy."""
    documents = changed(path, new)
    loaded = load_all(documents)
    if loaded.fatal:
        assert loaded.errors
        return
    entries = [
        (str(file), index)
        for file, document in enumerate(documents)
        if document is not None and "Policy" in document["kind"]
        for index in range(len(document["policies"]))
    ]
    policies = chains(loaded)
    assert sorted(entries) == sorted((policy.place.file, policy.index) for policy in policies)
    at_fault = {(policy.place.file, f"policies[{policy.index}]") for policy in policies if policy.fault}
    errors = [
        error.place
        for error in loaded.errors
        # Those of a shadow are errors, but no policy's fault.
        if error.place.path.startswith("policies") and "].shadow" not in error.place.path
    ]
    blamed = {(place.file, re.match(r"policies\[\d+\]", place.path)[0]) for place in errors}
    assert at_fault == blamed
    # The Worker is named by all policies that could be read, so an error in it is the fault of each.
    if "labels" not in loaded.workers:
        assert all(policy.fault for policy in policies)


@pytest.mark.property
@given(st.sampled_from([path for path in PLACES if "rules" in path]), st.lists(JSON, max_size=1))
def test_strictest_reading(path, new):
    """Each list of a rule is as it is written, or everything; nothing that was written is left out."""
    documents = changed(path, new)
    file, _, index, *_ = path
    loaded = {(policy.place.file, policy.index): policy.rules for policy in chains(load_all(documents))}
    read = loaded[str(file), index]
    written = documents[file]["policies"][index].get("rules")
    if not isinstance(written, list):
        assert read == (() if written is None else (EVERYTHING,))
        return
    assert len(read) == len(written)
    for rule, entry in zip(read, written, strict=True):
        for name in ("operations", "apiGroups", "apiVersions", "resources"):
            field = name.replace("apiG", "api_g").replace("apiV", "api_v")
            widest = list(getattr(EVERYTHING, field))
            said = entry.get(name) if isinstance(entry, dict) else widest
            assert list(getattr(rule, field)) in (said, widest)


@FEWER
@pytest.mark.property
@given(st.integers(0, 100), st.sampled_from(PLACES), st.lists(JSON, max_size=1))
def test_order_of_files(shuffler, path, new):
    """The order in which files are given means nothing, not even for the errors."""
    documents = changed(path, new)
    texts = [SourceText(name=f"{i}", content=json.dumps(document).encode()) for i, document in enumerate(documents)]
    assert load(texts) == load(random.Random(shuffler).sample(texts, len(texts)))


@FEWER
@pytest.mark.property
@given(st.integers(0, 50), st.sampled_from(PLACES), st.lists(JSON, max_size=1))
def test_lines_shift(blank, path, new):
    """Lines above a text move every error down by their number, and change nothing else."""
    text = yaml.safe_dump_all(changed(path, new)).encode()
    before = load([SourceText(name="a", content=text)])
    after = load([SourceText(name="a", content=b"# above\n" * blank + text)])
    assert [(error.place.line + blank, error.place.path) for error in before.errors] == [
        (error.place.line, error.place.path) for error in after.errors
    ]
