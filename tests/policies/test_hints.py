"""Hints beside Kubernetes' message: what was probably meant, and where the first of two stands."""

import pytest

NATIVE = """\
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: a}
webhooks:
- name: a.example.com
  clientConfig: {url: "https://a.example.com"}
  admissionReviewVersions: [v1]
  sideEffects: None
  rulez: []
- name: a.example.com
  clientConfig: {url: "https://a.example.com"}
  admissionReviewVersions: [v1]
  sideEffects: Nome
  rules: []
  rules: []
"""


@pytest.mark.parametrize(
    ("change", "message", "hint"),
    [
        ({"rulez": []}, 'unknown field "policies[0].rulez"', 'did you mean "rules"?'),
        ({"failurepolicy": "Fail"}, 'unknown field "policies[0].failurepolicy"', 'did you mean "failurePolicy"?'),
        ({"zzz": 1}, 'unknown field "policies[0].zzz"', ""),
        (
            {"failurePolicy": "ignore"},
            'Unsupported value: "ignore": supported values: "Fail", "Ignore"',
            'did you mean "Ignore"?',
        ),
        ({"mode": "enforced"}, ..., 'did you mean "enforce"?'),
        ({"worker": "lables"}, 'Not found: "lables"', 'did you mean "labels"? known workers: "labels"'),
        ({"worker": "zzz"}, 'Not found: "zzz"', 'known workers: "labels"'),
        ({"rules.0.operations.0": "create"}, ..., 'did you mean "CREATE"?'),
        ({"cache": {"ttl": "5m", "stale": "1h"}}, 'unknown field "policies[0].cache.stale"', ""),
        (
            {"inputs": ["/object/a", "/name", "/object/a"]},
            'Duplicate value: "/object/a"',
            "the first is policies[0].inputs[0]",
        ),
        (
            {"matchConditions": [{"name": "a", "expression": "true"}, {"name": "a", "expression": "true"}]},
            'Duplicate value: "a"',
            "the first is policies[0].matchConditions[0]",
        ),
    ],
)
def test_our_own_kinds(one_policy, change, message, hint):
    """A hint is a part of its own: the message stays as Kubernetes would say it."""
    _, loaded = one_policy(change)
    (error,) = loaded.errors
    assert message is ... or error.message == message
    assert error.hint == hint


@pytest.mark.parametrize(
    ("pointer", "hint"),
    [
        ("/objct/metadata", 'did you mean "/object"? what stands'),
        ("/userInfo/usernam", 'did you mean "username"?'),
        ("/namespaceObject/metadta", 'did you mean "metadata"?'),
    ],
)
def test_members_in_inputs(one_policy, pointer, hint):
    """Of what an AdmissionRequest has, the hint names the member with almost this spelling."""
    _, loaded = one_policy({"inputs": [pointer]})
    (error,) = loaded.errors
    assert hint in error.message


def test_native_kinds(load_text):
    """The words are the API server's; a path that they say themselves is not said again."""
    assert [str(error) for error in load_text(NATIVE, "native.yaml").errors] == [
        'native.yaml:9: unknown field "webhooks[0].rulez"; did you mean "rules"?',
        'native.yaml:15: duplicate field "webhooks[1].rules"; the first is in line 14',
        (
            'native.yaml:13: webhooks[1].sideEffects: Unsupported value: "Nome": supported values: "None", '
            '"NoneOnDryRun"; did you mean "None"?'
        ),
        'native.yaml:10: webhooks[1].name: Duplicate value: "a.example.com"; the first is webhooks[0], in line 5',
    ]


def test_a_path_is_said_once_where_it_is_quoted(load_documents, worker, configuration, policy):
    """A worker's errors stand in those of its policies as well, and say no path twice there either."""
    loaded = load_documents(worker({"spec.grpc.targt": "x"}), configuration(policy()))
    assert loaded.errors[1].message == 'worker "labels" is invalid: unknown field "spec.grpc.targt" (in 0.json:1)'


def test_kinds(load_text):
    """The hint names the known kind with almost this spelling."""
    loaded = load_text("apiVersion: admission-gateway.dev/v1alpha1\nkind: worker\nmetadata: {name: a}\n")
    assert [error.hint for error in loaded.errors] == ['did you mean "Worker"?']


def test_two_policies_of_one_name(load_documents, worker, configuration, policy):
    """The second says which is the first, and where."""
    loaded = load_documents(worker(), configuration(policy(), policy()))
    (error,) = loaded.errors
    assert (error.place.path, error.hint) == ("policies[1].name", "the first is policies[0], in line 1")


def test_an_expressions_error_keeps_its_lines(one_policy):
    """What the compiler says shows the place below the expression; in a log it is one line."""
    _, loaded = one_policy({"matchConditions": [{"name": "a", "expression": "object.spec ==\n  nope"}]})
    (error,) = loaded.errors
    assert len(error.lines) == 3
    assert error.lines[-1].endswith("^")
    assert "\n" not in str(error)
