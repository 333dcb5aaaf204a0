"""The whole: which objects there are, what refuses all of it, chain order, namespaces, warnings."""

import json

import pytest

from gateway.policies.configuration import load
from gateway.policies.decoding.texts import SourceText
from gateway.policies.errors import ConfigurationError, Place
from gateway.policies.model import Phase


def test_nothing_at_all():
    """No texts are a complete configuration without policies: a source may be empty."""
    loaded = load([])
    assert not loaded.fatal
    assert loaded.policies(Phase.MUTATING) == loaded.policies(Phase.VALIDATING) == ()


@pytest.mark.parametrize("text", ["# nothing yet\n", "---\n---\n", "null"])
def test_nothing_but_empty_files(load_text, text):
    """A file without an object, and nothing beside it, is fatal: it is the wrong one."""
    loaded = load_text(text)
    assert loaded.fatal
    assert str(loaded.errors[0]) == "policies.yaml:1: there is no object in this file"


@pytest.mark.parametrize("text", ["", "\n", " \n"])
def test_empty_file(worker, text):
    """An empty file is fatal, whatever stands beside it: it was cut off while it was written."""
    loaded = load(
        [SourceText(name="a", content=text.encode()), SourceText(name="b", content=json.dumps(worker()).encode())]
    )
    assert loaded.fatal
    assert [str(error) for error in loaded.errors] == [
        "a:1: the file is empty; remove it, or write a comment into it if it is empty on purpose"
    ]


def test_file_of_comments(worker):
    """A file without an object among others is a warning."""
    texts = [SourceText(name="a", content=b"# later"), SourceText(name="b", content=json.dumps(worker()).encode())]
    loaded = load(texts)
    assert not loaded.errors
    assert [str(warning) for warning in loaded.warnings] == ["a:1: there is no object in this file"]


@pytest.mark.parametrize(
    ("document", "expected"),
    [
        ({}, ["apiVersion: Required value", "kind: Required value"]),
        ({"apiVersion": "v1"}, ["kind: Required value"]),
        ({"apiVersion": "v1", "kind": 5}, ['kind: Invalid value: "integer": must be of type string']),
        (
            {"apiVersion": "v1", "kind": "Pod"},
            [
                (
                    'kind: no matches for kind "Pod" in version "v1"; known are Worker, MutatingPolicyConfiguration, '
                    "ValidatingPolicyConfiguration (admission-gateway.dev/v1alpha1), MutatingWebhookConfiguration, "
                    "ValidatingWebhookConfiguration (admissionregistration.k8s.io/v1, "
                    "admissionregistration.k8s.io/v1beta1) and Namespace, List (v1)"
                )
            ],
        ),
        ([], [': Invalid value: "array": must be of type object']),
        (5, [': Invalid value: "integer": must be of type object']),
        ({"apiVersion": "v1", "kind": "List"}, ["items: Required value"]),
        ({"apiVersion": "v1", "kind": "List", "items": {}}, ['items: Invalid value: "object": must be of type array']),
        ({"apiVersion": "v1", "kind": "List", "items": [None]}, ["items[0]: Invalid value: null: must not be null"]),
    ],
)
def test_unknown_objects(load_documents, errors, document, expected):
    """An object that is none of ours is fatal; the message says which kinds there are."""
    loaded = load_documents(document)
    assert loaded.fatal
    assert errors(loaded) == expected


@pytest.mark.parametrize(
    "version", ["admission-gateway.dev/v1", "admission-gateway.dev/v1beta1", "v1", "admission-gateway.dev"]
)
def test_unknown_versions(load_documents, worker, version):
    """Another version of a kind of ours is another kind."""
    assert load_documents(worker({"apiVersion": version})).fatal


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"metadata": {}}, "metadata.name: Required value: name or generateName is required"),
        (
            {"metadata": {"generateName": "a-"}},
            (
                "metadata.name: Required value: name or generateName is required; "
                "generateName makes a name in a cluster only: write the name"
            ),
        ),
        ({"metadata": {"name": 5}}, 'metadata.name: Invalid value: "integer": must be of type string'),
        ({"metadata": "a"}, 'metadata: Invalid value: "string": must be of type object'),
        ({"metadata": {"name": "a", "labls": {}}}, 'metadata.labls: unknown field "metadata.labls"'),
        ({"policies": None}, "policies: Required value: must be a list; write [] if there are no policies"),
        ({"policies": {}}, 'policies: Invalid value: "object": must be of type array'),
        ({"policies": "a"}, 'policies: Invalid value: "string": must be of type array'),
        ({"policy": []}, 'policy: unknown field "policy"'),
        ({"webhooks": []}, 'webhooks: unknown field "webhooks"'),
    ],
)
@pytest.mark.parametrize("phase", ["Mutating", "Validating"])
def test_frame_of_a_configuration(load_documents, configuration, errors, phase, change, expected):
    """A error around the policies leaves open what the chain is: it is fatal."""
    loaded = load_documents(configuration(phase=phase) | change)
    assert loaded.fatal
    assert errors(loaded) == [expected]


def test_bad_name(load_documents, configuration):
    """A configuration's name decides the order, so a bad one is fatal; its policies are read for their errors."""
    loaded = load_documents(configuration({"name": "a"}, name="A"))
    assert loaded.fatal
    assert loaded.mutating == ()
    assert {error.place.path for error in loaded.errors} >= {"metadata.name", "policies[0].name", "policies[0].worker"}


def test_two_configurations_of_one_name(load_documents, configuration):
    """Two configurations of one kind and name are fatal; a mutating and a validating one may share it."""
    assert not load_documents(configuration(), configuration(phase="Validating")).errors
    loaded = load_documents(configuration(), configuration())
    assert loaded.fatal
    assert str(loaded.errors[0]) == '1.json:1: metadata.name: Duplicate value: "team-a"; the first is in 0.json:1'


def test_chain_order(load_documents, worker, configuration, policy):
    """Configurations go by name whatever file they are in; policies by their place in the list."""
    loaded = load_documents(
        configuration(policy({"name": "z.b.c"}), policy({"name": "a.b.c"}), name="b"),
        worker(),
        configuration(policy({"name": "m.b.c"}), name="a.a"),
        configuration(policy({"name": "n.b.c"}), name="a"),
    )
    assert [each.qualified_name for each in loaded.mutating] == ["a/n.b.c", "a.a/m.b.c", "b/z.b.c", "b/a.b.c"]
    assert [each.index for each in loaded.mutating] == [0, 0, 0, 1]


def test_list(load_documents, worker, configuration, policy, namespace, errors):
    """A v1 List stands for its items, also within another one; paths are those of the items."""
    inner = {"apiVersion": "v1", "kind": "List", "items": [worker(), namespace()]}
    outer = {"apiVersion": "v1", "kind": "List", "metadata": {}, "items": [inner, configuration(policy({"mode": 1}))]}
    loaded = load_documents(outer)
    assert list(loaded.workers) == ["labels"]
    assert list(loaded.namespaces) == ["prod"]
    (error,) = errors(loaded)
    assert error.startswith("policies[0].mode: Invalid value")


def test_namespace(load_documents, namespace):
    """A Namespace is its labels, and the one that the API server adds; what else kubectl prints is not looked at."""
    loaded = load_documents(
        namespace({"status": {"phase": "Active"}, "metadata.labels": {"kubernetes.io/metadata.name": "x", "a": "b"}}),
        namespace({"metadata": {"name": "bare", "uid": 5}}),
    )
    assert not loaded.errors
    assert loaded.namespaces == {
        "prod": {"kubernetes.io/metadata.name": "prod", "a": "b"},
        "bare": {"kubernetes.io/metadata.name": "bare"},
    }


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"metadata": ...}, "metadata.name: Required value"),
        ({"metadata": "a"}, 'metadata: Invalid value: "string": must be of type object'),
        ({"metadata.name": "a.b"}, 'metadata.name: Invalid value: "a.b": must not contain dots'),
        ({"metadata.labels": []}, 'metadata.labels: Invalid value: "array": must be of type object'),
        ({"metadata.labels": {"a": 1}}, 'metadata.labels.a: Invalid value: "integer": must be of type string'),
    ],
)
def test_namespace_with_a_error(load_documents, namespace, errors, change, expected):
    """A Namespace with an error is left out: its labels are unknown, not empty. That is not fatal."""
    loaded = load_documents(namespace(change))
    assert errors(loaded) == [expected]
    assert loaded.namespaces == {}
    assert not loaded.fatal


def test_two_namespaces_of_one_name(load_documents, namespace, errors):
    """A Namespace that is there twice is left out, however often."""
    loaded = load_documents(*[namespace() for _ in range(3)], namespace({"metadata.name": "other"}))
    assert errors(loaded) == ['metadata.name: Duplicate value: "prod"'] * 2
    assert list(loaded.namespaces) == ["other"]


def test_lines(load_text):
    """An error stands at the line of the member's name, of the element, or, for what is absent, of its owner; those of
    one object come in Kubernetes' order.
    """
    loaded = load_text("""# line 1
apiVersion: admission-gateway.dev/v1alpha1
kind: ValidatingPolicyConfiguration
metadata:
  name: a

policies:
- name: a.b.c
  worker:
    - x
  rules:
  - operations:
    - CREATE

    - PATCH
    apiGroups: [""]
    resources: [pods]
  failurePolicy: >
    Maybe
  settings:
    a: {b: .nan,
        c: .inf}
""")
    assert [(error.place.line, error.place.path) for error in loaded.errors] == [
        (15, "policies[0].rules[0].operations[1]"),
        (12, "policies[0].rules[0].apiVersions"),
        (18, "policies[0].failurePolicy"),
        (8, "policies[0].sideEffects"),
        (9, "policies[0].worker"),
        (21, "policies[0].settings.a.b"),
        (22, "policies[0].settings.a.c"),
    ]
    assert str(loaded.errors[4]).startswith("policies.yaml:9: policies[0].worker: Invalid value: ")


def test_errors_of_all_files(load_documents):
    """All errors of all files are reported at once, by file and object."""
    loaded = load_documents({"kind": "X"}, {"apiVersion": "v1", "kind": "Namespace"}, [])
    assert [error.place.file for error in loaded.errors] == ["0.json", "1.json", "2.json"]


def test_warning_about_everything(one_policy):
    """A policy that matches every resource and fails closed gets a warning; one that selects or fails open does not."""
    everything = [{"operations": ["*"], "apiGroups": ["*"], "apiVersions": ["*"], "resources": ["*/*"]}]
    _, loaded = one_policy({"rules": everything})
    (warning,) = loaded.warnings
    assert warning.place == Place(file="1.json", line=1, path="policies[0].rules")
    assert warning.message.startswith("the policy matches every resource and fails closed")
    assert not one_policy({"rules": everything, "failurePolicy": "Ignore"})[1].warnings
    assert not one_policy({"rules": everything, "objectSelector": {"matchLabels": {"a": "b"}}})[1].warnings
    assert not one_policy()[1].warnings


def test_warning_about_namespaces(load_documents, worker, configuration, policy, namespace):
    """A namespaceSelector without any Namespace document gets a warning; with one it does not."""
    documents = worker(), configuration(policy({"namespaceSelector": {"matchLabels": {"a": "b"}}}))
    (warning,) = load_documents(*documents).warnings
    assert warning.place.path == "policies[0].namespaceSelector"
    assert not load_documents(*documents, namespace()).warnings


def test_isolated_policies_need_no_namespaces(load_documents, worker, configuration, policy):
    """The API server itself matches the selector of an isolated policy, so none of its namespaces is unknown."""
    isolated = policy({"namespaceSelector": {"matchLabels": {"a": "b"}}, "isolate": True})
    assert load_documents(worker(), configuration(isolated)).warnings == ()


@pytest.mark.parametrize("pointer", ["/namespaceObject", "/namespaceObject/metadata/labels/tier"])
def test_warning_about_inputs_of_the_namespace(load_documents, worker, configuration, policy, namespace, pointer):
    """Inputs that reach the namespace's object without any Namespace document get a warning; with one they do not."""
    documents = worker(), configuration(policy({"inputs": [pointer, "/object"]}))
    (warning,) = load_documents(*documents).warnings
    assert warning.place.path == "policies[0].inputs"
    assert warning.message.startswith("/namespaceObject: there is no Namespace document")
    assert not load_documents(*documents, namespace()).warnings


def test_no_warning_about_faults(one_policy):
    """A policy with an error gets its errors reported, and no advice."""
    _, loaded = one_policy({"rules": [{}]})
    assert loaded.errors
    assert loaded.warnings == ()


def test_error_as_text():
    """An error reads as a compiler writes it."""
    error = ConfigurationError(place=Place(file="a.yaml", line=3, path="policies[0].name"), message="Required value")
    assert str(error) == "a.yaml:3: policies[0].name: Required value"
