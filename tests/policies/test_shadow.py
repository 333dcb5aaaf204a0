"""``shadow``: the worker that is called in addition; its errors are reported, and affect no policy."""

import pytest

from gateway.policies.fields.shadows import shadow_of
from gateway.policies.model import FailurePolicy, Mode, OnConflict, ReinvocationPolicy, Shadow

WEBHOOK = {"metadata.name": "webhook", "spec": {"webhook": {"url": "https://labels.example.com/"}}}
HOOK = {"metadata.name": "hook", "spec": {"hook": {"path": "labels.sh"}}}

NO_POLICIES = "a webhook holds no policies of its own; remove the field, and give the webhook another path instead"


@pytest.fixture
def shadowed(load_documents, worker, policy, configuration):
    """Loads a policy with this shadow beside Workers labels, next (gRPC), webhook and hook; it and the whole."""

    def load_policy(shadow, phase="Mutating", **changes):
        workers = [worker(), worker({"metadata.name": "next"}), worker(WEBHOOK), worker(HOOK)]
        loaded = load_documents(*workers, configuration(policy(changes | {"shadow": shadow}), phase=phase))
        (read,) = loaded.mutating + loaded.validating
        return read, loaded

    return load_policy


@pytest.mark.parametrize("phase", ["Mutating", "Validating"])
@pytest.mark.parametrize(
    ("said", "changes", "expected"),
    [
        ({"worker": "next"}, {}, Shadow(worker="next", policy="labels")),
        ({"worker": "next"}, {"policy": "other"}, Shadow(worker="next", policy="other")),
        ({"worker": "next", "policy": "new"}, {"policy": "other"}, Shadow(worker="next", policy="new")),
        ({"worker": "labels", "policy": "new"}, {}, Shadow(worker="labels", policy="new")),
        ({"worker": "next"}, {"settings": {"a": 1}}, Shadow(worker="next", policy="labels", settings=b'{"a":1}')),
        (
            {"worker": "labels", "settings": {"a": 2}},
            {"settings": {"a": 1}},
            Shadow(worker="labels", policy="labels", settings=b'{"a":2}'),
        ),
        ({"worker": "next", "settings": {}}, {"settings": {"a": 1}}, Shadow(worker="next", policy="labels")),
        ({"worker": "webhook"}, {"settings": {"a": 1}}, Shadow(worker="webhook", policy="")),
        ({"worker": "next"}, {"worker": "webhook"}, Shadow(worker="next", policy="labels")),
        ({"worker": "hook"}, {"policy": "other"}, Shadow(worker="hook", policy="labels.team-a.example.com")),
        ({"worker": "next"}, {"worker": "hook", "policy": "a.b.c"}, Shadow(worker="next", policy="labels")),
    ],
)
def test_who_is_called(shadowed, phase, said, changes, expected):
    """The policy's own question, unless something else is said: a worker of another kind has its own defaults."""
    policy, loaded = shadowed(said, phase, **changes)
    assert not loaded.errors
    assert policy.shadow == expected


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ({}, ".worker: Required value"),
        ({"worker": "missing"}, '.worker: Not found: "missing"'),
        ({"worker": 5}, '.worker: Invalid value: "integer": must be of type string'),
        ("next", ': Invalid value: "string": must be of type object, such as {worker: labels-next}'),
        ({"worker": "next", "ttl": "5m"}, '.ttl: unknown field "policies[0].shadow.ttl"'),
        ({"worker": "next", "policy": "a.b"}, '.policy: Invalid value: "a.b": must not contain dots'),
        ({"worker": "next", "settings": []}, '.settings: Invalid value: "array": must be of type object'),
        (
            {"worker": "webhook", "policy": "a"},
            f".policy: Forbidden: {NO_POLICIES}",
        ),
        (
            {"worker": "labels"},
            ": Forbidden: is the same call as the policy's own; name another worker, policy or other settings",
        ),
    ],
)
def test_errors(shadowed, errors, said, expected):
    """Each is an error with its place; the policy is in force all the same, and has no shadow."""
    policy, loaded = shadowed(said)
    assert errors(loaded) == [f"policies[0].shadow{expected}"]
    assert (policy.fault, policy.shadow) == (None, None)
    assert not loaded.fatal


def test_a_broken_worker(load_documents, worker, policy, configuration, errors):
    """A error in the Worker that only a shadow names is an error of both, and takes no policy down."""
    broken = worker({"metadata.name": "next", "spec.grpc.target": ""})
    loaded = load_documents(worker(), broken, configuration(policy({"shadow": {"worker": "next"}})))
    assert errors(loaded) == [
        "spec.grpc.target: Required value",
        'policies[0].shadow.worker: worker "next" is invalid: spec.grpc.target: Required value (in 1.json:1)',
    ]
    assert loaded.mutating[0].fault is None


def test_a_error_of_the_policy(shadowed, errors):
    """What is wrong with the policy itself is its fault, whatever shadow it has; and the policy calls no worker."""
    policy, loaded = shadowed({"worker": "missing"}, mode="off")
    assert [error.partition(": ")[0] for error in errors(loaded)] == [
        "policies[0].mode",
        "policies[0].shadow.worker",
    ]
    assert "shadow" not in policy.fault
    policy, _ = shadowed({"worker": "next"}, mode="off")
    assert shadow_of(policy) is None


def test_as_a_policy(shadowed):
    """The shadow gets the policy's call, and its verdict has no effect."""
    policy, _ = shadowed(
        {"worker": "next"},
        settings={"a": 1},
        inputs=["/object/metadata/labels"],
        writes=["/metadata/labels"],
        timeoutSeconds=2,
        cache={"ttl": "5m"},
        mode="audit",
        failurePolicy="Ignore",
        reinvocationPolicy="IfNeeded",
        onConflict="deny",
    )
    shadow = shadow_of(policy)
    assert (shadow.worker, shadow.policy, shadow.settings) == ("next", "labels", policy.settings)
    assert (shadow.inputs, shadow.writes, shadow.timeout) == (policy.inputs, policy.writes, policy.timeout)
    assert (shadow.mode, shadow.cache, shadow.shadow) == (Mode.ENFORCE, None, None)
    assert shadow.failure_policy is FailurePolicy.FAIL
    assert shadow.reinvocation_policy is ReinvocationPolicy.NEVER
    assert shadow.on_conflict is OnConflict.ALLOW


def test_as_a_policy_it_has_a_name_of_its_own(shadowed):
    """No policy is called so: a policy's name has no blanks."""
    policy, _ = shadowed({"worker": "next"})
    assert shadow_of(policy).qualified_name == f"{policy.qualified_name} (shadow)"


def test_none(one_policy):
    """Without a shadow, no other worker is called."""
    policy, _ = one_policy()
    assert (policy.shadow, shadow_of(policy)) == (None, None)


def test_side_effects(shadowed):
    """A policy that has its effects on anything but dry runs is compared on dry runs only, and that is said."""
    assert not shadowed({"worker": "next"})[1].warnings
    policy, loaded = shadowed({"worker": "next"}, sideEffects="NoneOnDryRun")
    assert not loaded.errors
    assert policy.shadow is not None
    (warning,) = loaded.warnings
    assert warning.place.path == "policies[0].shadow"
    assert "only dry runs are sent to the shadow" in warning.message
