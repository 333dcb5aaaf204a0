"""The output of ``--config``, and which outputs shell-operator rejects. (Its own cases: tests/conformance.)"""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.hooks.configuration.bindings import snapshot_kinds
from gateway.hooks.configuration.model import FieldRequirement
from gateway.hooks.configuration.reader import read_hook_configuration
from gateway.policies.model import Phase


def test_json_and_yaml_are_equivalent(output, binding, read):
    """A hook may print either."""
    as_json = output(kubernetesValidating=[binding()])
    as_yaml = b"""
configVersion: v1
kubernetesValidating:
- name: a.example.com
  rules:
  - {operations: [CREATE], apiGroups: [""], apiVersions: [v1], resources: [pods]}
"""
    assert read(as_json) == read(as_yaml)


def test_defaults_are_shell_operators(output, read):
    """Fail, no side effects, ten seconds; other absent fields stay absent."""
    (made,) = read(output(kubernetesMutating=[{"name": "a.example.com"}])).bindings(Phase.MUTATING)
    assert made.webhook == {
        "name": "a.example.com",
        "failurePolicy": "Fail",
        "sideEffects": "None",
        "timeoutSeconds": 10,
    }
    assert (made.group, made.snapshots_from) == ("", None)


def test_selectors_get_the_names_that_webhooks_have(output, binding, read):
    """labelSelector is the object's, namespace.labelSelector the namespace's."""
    fields = {
        "labelSelector": {"matchLabels": {"a": "b"}, "matchExpressions": []},
        "namespace": {"labelSelector": {"matchLabels": {"c": "d"}}},
    }
    (made,) = read(output(kubernetesValidating=[binding(**fields)])).validating
    assert made.webhook["objectSelector"] == {"matchLabels": {"a": "b"}}
    assert made.webhook["namespaceSelector"] == {"matchLabels": {"c": "d"}}


@pytest.mark.parametrize(
    ("fields", "path"),
    [
        ({"name": 1}, "name"),
        ({"name": None}, "name"),
        ({"rules": []}, "rules"),
        ({"rules": None}, "rules"),
        ({"rules": [{}]}, "rules[0].operations"),
        ({"failurePolicy": "fail"}, "failurePolicy"),
        ({"sideEffects": "Some"}, "sideEffects"),
        ({"timeoutSeconds": "10"}, "timeoutSeconds"),
        ({"timeoutSeconds": 1.5}, "timeoutSeconds"),
        ({"timeoutSeconds": True}, "timeoutSeconds"),
        ({"timeoutSeconds": 2**31}, "timeoutSeconds"),
        ({"labelSelector": {}}, "labelSelector"),
        ({"labelSelector": {"matchLabels": {"a": 1}}}, "labelSelector.matchLabels.a"),
        ({"labelSelector": {"matchLabels": {"-a": "b"}}}, "labelSelector.matchLabels"),
        ({"namespace": {}}, "namespace.labelSelector"),
        ({"namespace": {"labelSelector": {"matchLabels": {"a": "!"}}}}, "namespace.labelSelector.matchLabels"),
        ({"matchConditions": [{"name": "a"}]}, "matchConditions[0].expression"),
        ({"includeSnapshotsFrom": []}, "includeSnapshotsFrom"),
        ({"includeSnapshotsFrom": ["nobody"]}, "includeSnapshotsFrom[0]"),
        ({"matchPolicy": "Exact"}, "matchPolicy"),
    ],
)
@pytest.mark.parametrize("key", ["kubernetesValidating", "kubernetesMutating"])
def test_validation_of_admission_bindings(output, binding, errors, key, fields, path):
    """Both phases have the same schema; an error has its path."""
    assert f"{key}[0].{path}" in {each.split(": ")[0] for each in errors(output(**{key: [binding() | fields]}))}


@pytest.mark.parametrize("fields", [{"name": "a.b"}, {"timeoutSeconds": 31}, {"timeoutSeconds": 0}, {"name": "A.b.c"}])
def test_only_validating_bindings_are_validated_further(output, binding, errors, fields):
    """As in shell-operator, which leaves mutating ones to the API server."""
    assert len(errors(output(kubernetesValidating=[binding() | fields]))) == 1
    assert errors(output(kubernetesMutating=[binding() | fields])) == []


def test_all_errors_are_reported_at_once(output, binding, errors):
    """Each with its line in the output."""
    wrong = output(
        kubernetesValidating=[binding(failurePolicy="no")], kubernetesMutating=[binding(sideEffects="no")], more=1
    )
    assert len(errors(wrong)) == 3
    found = read_hook_configuration(b"configVersion: v1\nschedule: []\nkubernetesMutating:\n- {}\n", "h --config")
    assert [str(each.place) for each in found.errors] == [
        "h --config:2: schedule",
        "h --config:4: kubernetesMutating[0].name",
    ]


@pytest.mark.parametrize(
    ("text", "word"),
    [
        (b"", "nothing was printed"),
        (b"# only a comment\n", "nothing was printed"),
        (b"Usage: hook [OPTIONS]", "configVersion: Required value"),
        (b"hello", "object"),
        (b"[]", "object"),
        (b"\xff", "UTF-8"),
        (b"a: [", "neither YAML nor JSON"),
        (b"configVersion: 1\nonStartup: 1\n", "must be v1"),
        (b"configVersion: v2\nonStartup: 1\n", "must be v1"),
        (b"configVersion: v0\nonStartup: 1\n", "no such property"),
        (b"configVersion: v1\n", "at least 2 members"),
        (b"configVersion: v1\nconfigVersion: v1\nonStartup: 1\n", "duplicate"),
        (b"configVersion: v1\nkubernetesValidating: []\n", "at least 1 item"),
    ],
)
def test_a_text_that_is_no_configuration(errors, text, word):
    """Is an error."""
    assert word in "\n".join(errors(text))


@pytest.mark.parametrize(
    ("settings", "wrong"),
    [
        ({"executionMinInterval": "30ks", "executionBurst": 1}, 'time: unknown unit "ks" in duration "30ks"'),
        ({"executionMinInterval": "30", "executionBurst": 1}, 'time: missing unit in duration "30"'),
        ({"executionMinInterval": "", "executionBurst": 1}, 'time: invalid duration ""'),
        ({"executionMinInterval": "1.5e3s", "executionBurst": 1}, 'time: unknown unit "e" in duration "1.5e3s"'),
        ({"executionMinInterval": "9223372036855s", "executionBurst": 1}, "time: invalid duration"),
        ({"executionMinInterval": "3s", "executionBurst": 2**31}, "32 bits"),
        ({"executionMinInterval": "3s"}, "settings.executionBurst: Required value"),
        ({"executionBurst": 1}, "settings.executionMinInterval: Required value"),
    ],
)
def test_settings_are_parsed_as_by_shell_operator(output, binding, errors, settings, wrong):
    """Both members, with Go's error messages."""
    (found,) = errors(output(kubernetesValidating=[binding()], settings=settings))
    assert wrong in found


def test_bindings_that_the_gateway_ignores_are_warnings(output, binding):
    """Many hooks have them, so they are accepted."""
    everything = {
        "onStartup": 10,
        "schedule": [{"crontab": "* * * * *"}],
        "settings": {"executionMinInterval": "3s", "executionBurst": 1},
        "kubernetesCustomResourceConversion": [
            {"name": "c", "crdName": "d.example.com", "conversions": [{"fromVersion": "a", "toVersion": "b"}]}
        ],
    }
    found = read_hook_configuration(output(kubernetesValidating=[binding()], **everything), "h")
    assert found.configuration is not None
    assert {warning.place.path for warning in found.warnings} == everything.keys()
    assert all("accepted and ignored" in warning.message for warning in found.warnings)


def test_v0_has_no_admission(read):
    """A hook without configVersion has version v0."""
    made = read(b"onStartup: 1\nonKubernetesEvent: [{kind: Pod}]\n")
    assert (made.version, made.mutating, made.validating) == ("v0", (), ())


def test_a_group_adds_its_snapshots(output, binding, read):
    """The included ones come first, each once, and then the others of the group."""
    kubernetes = [
        {"name": "pods", "apiVersion": "v1", "kind": "Pod", "group": "g"},
        {"name": "nodes", "apiVersion": "v1", "kind": "Node"},
        {"name": "jobs", "apiVersion": "batch/v1", "kind": "Job", "group": "g"},
        {"kind": "Secret"},
    ]
    bindings = [
        binding("a.example.com", group="g", includeSnapshotsFrom=["nodes", "jobs"]),
        binding("b.example.com", includeSnapshotsFrom=["nodes"]),
        binding("c.example.com", group="other"),
    ]
    made = read(output(kubernetes=kubernetes, kubernetesValidating=bindings))
    assert [each.snapshots_from for each in made.validating] == [("nodes", "jobs", "pods"), ("nodes",), None]
    assert snapshot_kinds(made) == (("batch/v1", "Job"), ("v1", "Node"), ("v1", "Pod"))
    assert made.objects[3].name == "kubernetes"


def test_an_object_binding_selects_objects(output, binding, read):
    """Members that select objects count; members about events are ignored."""
    kubernetes = {
        "kind": "Pod",
        "nameSelector": {"matchNames": ["a", "b"]},
        "labelSelector": {"matchLabels": {"x": "y"}},
        "fieldSelector": {
            "matchExpressions": [
                {"field": "metadata.namespace", "operator": "Equals", "value": "n"},
                {"field": "status.phase", "operator": "!=", "value": "Failed"},
            ]
        },
        "namespace": {"nameSelector": {"matchNames": ["n"]}, "labelSelector": {"matchLabels": {"t": "u"}}},
        "jqFilter": ".metadata",
        "keepFullObjectsInMemory": False,
        "executeHookOnEvent": [],
        "queue": "q",
        "allowFailure": True,
    }
    made = read(output(kubernetes=[kubernetes], kubernetesValidating=[binding(includeSnapshotsFrom=["kubernetes"])]))
    (pods,) = made.objects
    assert (pods.names, pods.namespaces, pods.jq_filter, pods.keeps_objects) == (("a", "b"), ("n",), ".metadata", False)
    assert pods.fields == (
        FieldRequirement(field="metadata.namespace", value="n"),
        FieldRequirement(field="status.phase", value="Failed", equals=False),
    )
    assert [each.key for each in (*pods.labels.requirements, *pods.namespace_labels.requirements)] == ["x", "t"]
    assert snapshot_kinds(made) == (("", "Pod"), ("v1", "Namespace"))


@pytest.mark.parametrize(
    ("kubernetes", "path"),
    [
        ({}, "kind"),
        ({"kind": "Pod", "apiVersion": "a/b/c"}, "apiVersion"),
        ({"kind": "Pod", "executeHookOnEvent": ["added"]}, "executeHookOnEvent[0]"),
        ({"kind": "Pod", "namespace": {}}, "namespace"),
        ({"kind": "Pod", "nameSelector": {}}, "nameSelector.matchNames"),
        ({"kind": "Pod", "includeSnapshotsFrom": ["x"]}, "includeSnapshotsFrom[0]"),
        ({"kind": "Pod", "mode": "Incremental"}, "mode"),
        (
            {
                "kind": "Pod",
                "nameSelector": {"matchNames": ["a"]},
                "fieldSelector": {"matchExpressions": [{"field": "metadata.name", "operator": "=", "value": "a"}]},
            },
            "fieldSelector",
        ),
    ],
)
def test_validation_of_object_bindings(output, errors, kubernetes, path):
    """An error has its path."""
    (error,) = errors(output(kubernetes=[kubernetes]))
    assert error.startswith(f"kubernetes[0].{path}: ")


def test_an_ambiguous_name_cannot_be_included(output, binding, errors):
    """Two bindings have it."""
    twice = [{"kind": "Pod"}, {"kind": "Secret"}]
    (error,) = errors(output(kubernetes=twice, kubernetesValidating=[binding(includeSnapshotsFrom=["kubernetes"])]))
    assert "there are 2 bindings" in error


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
WORDS = st.sampled_from(
    [
        "name",
        "rules",
        "operations",
        "kubernetes",
        "namespace",
        "labelSelector",
        "matchLabels",
        "group",
        "timeoutSeconds",
    ]
)
NEARLY = st.recursive(JSON, lambda inner: st.dictionaries(WORDS, inner) | st.lists(inner, max_size=2), max_leaves=8)


@pytest.mark.property
@given(st.dictionaries(st.sampled_from(["kubernetesValidating", "kubernetesMutating", "kubernetes"]), NEARLY))
def test_any_json_is_a_configuration_or_errors(members):
    """Never an exception, never neither."""
    text = json.dumps({"configVersion": "v1", **members}).encode()
    found = read_hook_configuration(text, "h")
    assert (found.configuration is None) is bool(found.errors)


@pytest.mark.property
@given(st.binary(max_size=200))
def test_any_bytes_are_a_configuration_or_errors(content):
    """A hook may print anything."""
    found = read_hook_configuration(content, "h")
    assert (found.configuration is None) is bool(found.errors)
