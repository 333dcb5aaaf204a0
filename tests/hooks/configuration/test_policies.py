"""Hooks as policies: the fields of bindings, shell-operator's fixed values, and Kubernetes' validation."""

import pytest

from gateway.hooks.configuration.names import webhook_id
from gateway.policies.configuration import load
from gateway.policies.model import FailurePolicy, MatchPolicy, OnConflict, Phase, ReinvocationPolicy, SideEffects
from gateway.registration.entries import make_entries
from gateway.registration.webhook_configurations import Registrar, register
from gateway.scopes.writes import Writes


def test_a_binding_becomes_a_policy(text, output, binding):
    """With its own fields and shell-operator's fixed values."""
    fields = {
        "failurePolicy": "Ignore",
        "sideEffects": "NoneOnDryRun",
        "timeoutSeconds": 7,
        "labelSelector": {"matchLabels": {"a": "b"}},
        "namespace": {"labelSelector": {"matchLabels": {"c": "d"}}},
        "matchConditions": [{"name": "x", "expression": "true"}],
    }
    loaded = load([text(**{"sub/hook": output(kubernetesMutating=[binding(**fields)])})])
    assert loaded.errors == ()
    (policy,) = loaded.mutating
    assert (policy.configuration, policy.name, policy.policy) == ("shell-operator-hooks-hooks", *["a.example.com"] * 2)
    assert policy.isolate
    assert policy.match_policy is MatchPolicy.EQUIVALENT
    assert policy.reinvocation_policy is ReinvocationPolicy.NEVER
    assert policy.failure_policy is FailurePolicy.IGNORE
    assert policy.side_effects is SideEffects.NONE_ON_DRY_RUN
    assert policy.timeout == 7
    assert [each.key for each in policy.object_selector.requirements] == ["a"]
    assert [each.key for each in policy.namespace_selector.requirements] == ["c"]
    assert [each.name for each in policy.match_conditions] == ["x"]
    # As a webhook: no limit on what it changes, and no conflict with others.
    assert policy.writes == Writes.EVERYTHING
    assert policy.on_conflict is OnConflict.ALLOW
    (worker,) = loaded.workers.values()
    assert (worker.hook.path, worker.hook.directory) == ("sub/hook", "/hooks")
    assert policy.worker == worker.name


def test_each_binding_is_registered_under_a_path_of_its_own(text, output, binding):
    """Also equal bindings of different names."""
    names = [f"{letter}.example.com" for letter in "abc"]
    hook = output(kubernetesValidating=[binding(name) for name in names], kubernetesMutating=[binding("m.example.com")])
    entries = make_entries(load([text(hook=hook)]))
    assert [entry.path.rpartition("/")[0] for entry in entries.validating] == [f"/validate/{name}" for name in names]
    mutating, validating = register(entries, Registrar(url="https://h")).objects
    assert [webhook["matchPolicy"] for webhook in (*mutating["webhooks"], *validating["webhooks"])] == [
        "Equivalent"
    ] * 4


def test_hooks_are_in_the_order_of_their_paths(text, output, binding):
    """And the bindings of a hook in their own order."""
    hooks = {
        "a": output(kubernetesMutating=[binding("z.example.com"), binding("y.example.com")]),
        "b": output(kubernetesMutating=[binding("x.example.com")]),
    }
    policies = load([text(**hooks)]).mutating
    assert [policy.name for policy in policies] == ["z.example.com", "y.example.com", "x.example.com"]


def test_hooks_without_admission_bindings_are_no_error(text, output):
    """A directory may have hooks for events only."""
    loaded = load([text(hook=output(onStartup=1))])
    assert (loaded.errors, loaded.mutating, loaded.validating) == ((), (), ())


@pytest.mark.parametrize(
    ("fields", "path"),
    [
        ({"name": "two.segments"}, "name"),
        ({"timeoutSeconds": 31}, "timeoutSeconds"),
        ({"matchConditions": [{"name": "x", "expression": "((("}]}, "matchConditions[0].expression"),
    ],
)
def test_what_the_api_server_would_reject_is_an_error_of_the_hook(text, output, binding, fields, path):
    """shell-operator accepts it, and cannot register it. Here it is a fatal error that names the hook."""
    loaded = load([text(hook=output(kubernetesMutating=[binding(), binding("b.example.com") | fields]))])
    (error,) = loaded.errors
    assert str(error).startswith(f"/hooks/hook:1: kubernetesMutating[1].{path}: ")
    assert loaded.fatal


@pytest.mark.parametrize("field", ["contact", "documentation"])
def test_a_hook_has_no_text_beside_its_own(text, output, binding, errors, field):
    """Its denials go out as it wrote them: contact and documentation are fields of our own kinds only."""
    (error,) = errors(output(kubernetesValidating=[binding(**{field: "https://example.com"})]))
    assert field in error
    (policy,) = load([text(hook=output(kubernetesValidating=[binding()]))]).validating
    assert (policy.contact, policy.documentation) == ("", "")


def test_two_hooks_with_one_binding_name_are_an_error(text, output, binding):
    """It names both."""
    hook = output(kubernetesValidating=[binding()])
    loaded = load([text(one=hook, two=hook)])
    assert loaded.fatal
    message = next(str(error) for error in loaded.errors if "another" in str(error) or "too" in str(error))
    assert "/hooks/two" in message
    assert "/hooks/one" in message


def test_two_bindings_with_one_id_are_a_warning(text, output, binding):
    """They are served, but not at the path of their id."""
    hook = output(kubernetesValidating=[binding("a.b.example.com"), binding("a-b.example.com")])
    loaded = load([text(hook=hook)])
    assert loaded.errors == ()
    (warning,) = [each for each in loaded.warnings if "pods are matched" not in each.message]
    assert webhook_id("a.b.example.com") in warning.message


def test_the_worker_names_the_kinds_of_its_snapshots(text, output, binding):
    """Those that its bindings include, and no others."""
    kubernetes = [{"kind": "Pod", "apiVersion": "v1"}, {"name": "unused", "kind": "Node", "apiVersion": "v1"}]
    hook = output(kubernetes=kubernetes, kubernetesValidating=[binding(includeSnapshotsFrom=["kubernetes"])])
    (worker,) = load([text(hook=hook)]).workers.values()
    assert worker.hook.snapshots_of == (("v1", "Pod"),)


def test_equal_names_in_two_phases_are_two_policies(text, output, binding):
    """A validating and a mutating binding."""
    loaded = load([text(hook=output(kubernetesValidating=[binding()], kubernetesMutating=[binding()]))])
    assert {phase: len(loaded.policies(phase)) for phase in Phase} == {Phase.MUTATING: 1, Phase.VALIDATING: 1}
