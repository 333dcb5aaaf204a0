"""Files and objects of the cluster, loaded together: an object that cannot be loaded keeps none of the others away."""

import json

from gateway.policies.decoding.texts import SourceText
from gateway.policies.partial_load import load_partially

API = {"apiVersion": "admission-gateway.dev/v1alpha1"}
WORKER = {"kind": "Worker", "metadata": {"name": "w"}, "spec": {"grpc": {"target": "localhost:1"}}}
POLICY = {"name": "labels.a.example.com", "worker": "w", "sideEffects": "None"}


def text(obj, *, in_cluster=True):
    name = f"{obj['kind']}/{obj['metadata']['name']}"
    return SourceText(
        name=name if in_cluster else f"z/{name}", content=json.dumps(API | obj).encode(), in_cluster=in_cluster
    )


def validating(name, *policies, **fields):
    return {"kind": "ValidatingPolicyConfiguration", "metadata": {"name": name}, "policies": list(policies)} | fields


def names(loaded):
    return [policy.qualified_name for policy in loaded.configuration.validating]


def test_an_error_in_a_policy_is_its_fault():
    """The policy is in the chain, and the object in what was loaded."""
    objects = [text(WORKER), text(validating("a", POLICY | {"worker": "x"})), text(validating("b", POLICY))]
    loaded = load_partially([], objects, {})
    assert [policy.fault is None for policy in loaded.configuration.validating] == [False, True]
    assert (loaded.refused, loaded.file_errors, set(loaded.texts)) == ({}, (), set(objects))


def test_an_object_whose_policies_are_not_known_is_left_out():
    """The result has its reason; the others are loaded."""
    loaded = load_partially([], [text(validating("a", typo=1)), text(validating("b", POLICY))], {})
    assert names(loaded) == ["b/labels.a.example.com"]
    assert loaded.refused == {text(validating("a", typo=1)): 'unknown field "typo"'}


def test_its_last_good_text_is_loaded_instead():
    """An object that was in force stays so."""
    good = text(validating("a", POLICY))
    loaded = load_partially([], [text(validating("a", typo=1))], {good.name: good})
    assert names(loaded) == ["a/labels.a.example.com"]
    assert loaded.texts == (good,)
    assert loaded.refused


def test_a_file_wins_over_an_object_of_its_name():
    """Whatever the names of the texts are; of a Worker too."""
    files = [text(WORKER, in_cluster=False), text(validating("a", POLICY | {"mode": "warn"}), in_cluster=False)]
    loaded = load_partially(files, [text(WORKER), text(validating("a", POLICY))], {})
    assert [policy.mode for policy in loaded.configuration.validating] == ["warn"]
    assert {each.name for each in loaded.refused} == {"Worker/w", "ValidatingPolicyConfiguration/a"}
    assert loaded.file_errors == ()


def test_the_errors_of_files_are_told_apart():
    """They refuse a reload of the files, and nothing else."""
    files = [text(validating("f", POLICY), in_cluster=False)]
    loaded = load_partially(files, [text(validating("a", POLICY))], {})
    assert [error.place.file for error in loaded.file_errors] == ["z/ValidatingPolicyConfiguration/f"]
    assert len(loaded.configuration.errors) == 2
