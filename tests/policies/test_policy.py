"""One policy: defaults, validation, fields that there are none of, settings."""

import json

import pytest

from gateway.policies.fields.policy import URL
from gateway.policies.model import (
    EVERYTHING,
    Cache,
    FailurePolicy,
    MatchPolicy,
    Mode,
    OnConflict,
    Phase,
    Policy,
    ReinvocationPolicy,
    Selector,
    SideEffects,
)
from gateway.scopes.inputs import Inputs
from gateway.scopes.pointer_set import PointerSet
from gateway.scopes.writes import Writes


def test_defaults(one_policy):
    """What is left out has Kubernetes' v1 defaults, and the worker's policy is the first segment of the name."""
    policy, loaded = one_policy()
    assert not loaded.errors
    assert not loaded.fatal
    assert policy == Policy(
        phase=Phase.MUTATING,
        configuration="team-a",
        index=0,
        name="labels.team-a.example.com",
        worker="labels",
        policy="labels",
        rules=policy.rules,
        namespace_selector=Selector(),
        object_selector=Selector(),
        match_policy=MatchPolicy.EQUIVALENT,
        failure_policy=FailurePolicy.FAIL,
        timeout=10.0,
        side_effects=SideEffects.NONE,
        reinvocation_policy=ReinvocationPolicy.NEVER,
        settings=b"{}",
        inputs=Inputs.EVERYTHING,
        writes=Writes.DEFAULT,
        cache=None,
        on_conflict=OnConflict.WARN,
        place=policy.place,
        fault=None,
    )
    assert str(policy.place) == "1.json:1: policies[0]"
    assert policy.qualified_name == "team-a/labels.team-a.example.com"


def test_everything_said(one_policy):
    """What is said is taken."""
    policy, loaded = one_policy(
        {
            "policy": "other",
            "matchPolicy": "Exact",
            "failurePolicy": "Ignore",
            "timeoutSeconds": 0.5,
            "sideEffects": "NoneOnDryRun",
            "reinvocationPolicy": "IfNeeded",
            "settings": {"b": 1, "a": [None, "ü"]},
            "inputs": ["/object/metadata/labels"],
            "writes": ["/metadata/labels"],
            "cache": {"ttl": "5m", "staleIfError": "1h"},
            "onConflict": "deny",
            "mode": "audit",
            "isolate": True,
            "contact": "platform team, #plätform",
            "documentation": "https://example.com/labels?a=b#c",
        }
    )
    assert not loaded.errors
    assert policy.policy == "other"
    assert policy.match_policy is MatchPolicy.EXACT
    assert policy.failure_policy is FailurePolicy.IGNORE
    assert policy.timeout == 0.5
    assert policy.side_effects is SideEffects.NONE_ON_DRY_RUN
    assert policy.reinvocation_policy is ReinvocationPolicy.IF_NEEDED
    assert policy.settings == '{"a":[null,"ü"],"b":1}'.encode()
    assert policy.inputs == Inputs(places=PointerSet([("object", "metadata", "labels")]))
    assert policy.writes == Writes(granted=PointerSet([("metadata", "labels")]))
    assert policy.cache == Cache(ttl=300, stale_if_error=3600)
    assert policy.on_conflict is OnConflict.DENY
    assert policy.mode is Mode.AUDIT
    assert policy.isolate
    assert (policy.contact, policy.documentation) == ("platform team, #plätform", "https://example.com/labels?a=b#c")


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"name": ...}, ".name: Required value"),
        ({"name": None}, ".name: Required value"),
        ({"name": ""}, ".name: Required value"),
        ({"name": 5}, '.name: Invalid value: "integer": must be of type string'),
        (
            {"name": "a.b"},
            '.name: Invalid value: "a.b": should be a domain with at least three segments separated by dots',
        ),
        ({"worker": ...}, ".worker: Required value"),
        ({"worker": "other"}, '.worker: Not found: "other"'),
        ({"worker": []}, '.worker: Invalid value: "array": must be of type string'),
        ({"policy": ""}, ".policy: Required value"),
        ({"policy": "a.b"}, '.policy: Invalid value: "a.b": must not contain dots'),
        (
            {"name": f"{'a' * 64}.b.c"},
            f'.policy: Invalid value: "{"a" * 64}": must be no more than 63 characters',
        ),
        (
            {"matchPolicy": "exact"},
            '.matchPolicy: Unsupported value: "exact": supported values: "Equivalent", "Exact"',
        ),
        ({"failurePolicy": ""}, '.failurePolicy: Unsupported value: "": supported values: "Fail", "Ignore"'),
        ({"failurePolicy": False}, '.failurePolicy: Invalid value: "boolean": must be of type string'),
        (
            {"timeoutSeconds": 0},
            ".timeoutSeconds: Invalid value: 0: the timeout value must be more than 0 and at most 30 seconds",
        ),
        (
            {"timeoutSeconds": 30.5},
            ".timeoutSeconds: Invalid value: 30.5: the timeout value must be more than 0 and at most 30 seconds",
        ),
        ({"timeoutSeconds": "5"}, '.timeoutSeconds: Invalid value: "string": must be of type number'),
        ({"timeoutSeconds": True}, '.timeoutSeconds: Invalid value: "boolean": must be of type number'),
        ({"sideEffects": ...}, ".sideEffects: Required value: must specify one of None, NoneOnDryRun"),
        (
            {"sideEffects": "Some"},
            '.sideEffects: Unsupported value: "Some": supported values: "None", "NoneOnDryRun"',
        ),
        (
            {"reinvocationPolicy": "Always"},
            '.reinvocationPolicy: Unsupported value: "Always": supported values: "IfNeeded", "Never"',
        ),
        ({"mode": "dryrun"}, '.mode: Unsupported value: "dryrun": supported values: "audit", "enforce", "warn"'),
        ({"mode": True}, '.mode: Invalid value: "boolean": must be of type string'),
        (
            {"onConflict": "fail"},
            '.onConflict: Unsupported value: "fail": supported values: "allow", "deny", "warn"',
        ),
        ({"isolate": "yes"}, '.isolate: Invalid value: "string": must be of type boolean'),
        ({"contact": 5}, '.contact: Invalid value: "integer": must be of type string'),
        ({"contact": "a" * 257}, ".contact: Too long: may not be more than 256 bytes"),
        ({"contact": "a\nb"}, '.contact: Invalid value: "a\\nb": must be one line of printable characters'),
        ({"documentation": "example.com"}, f'.documentation: Invalid value: "example.com": {URL}'),
        ({"documentation": "https://[::"}, f'.documentation: Invalid value: "https://[::": {URL}'),
        ({"settings": []}, '.settings: Invalid value: "array": must be of type object'),
        ({"foo": 1}, '.foo: unknown field "policies[0].foo"'),
        ({"a b\n": 1}, '[a b\\n]: unknown field "policies[0].a b\\n"'),
    ],
)
def test_validation(one_policy, errors, change, expected):
    """Each error has its field's path and Kubernetes' words, is the policy's fault, and is not fatal."""
    policy, loaded = one_policy(change)
    assert errors(loaded) == [f"policies[0]{expected}"]
    assert policy.fault == loaded.errors[0].text
    assert not loaded.fatal


@pytest.mark.parametrize("field", ["inputs", "writes", "cache", "onConflict", "shadow"])
def test_fields_that_say_nothing(one_policy, field):
    """null says nothing, here too: the policy is what it is without the field."""
    (said, loaded), (unsaid, _) = one_policy({field: None}), one_policy()
    assert not loaded.errors
    assert said == unsaid


@pytest.mark.parametrize("field", ["clientConfig", "admissionReviewVersions"])
def test_fields_of_webhooks(one_policy, field):
    """A webhook's own fields do not exist here, and the message says what to do instead of them."""
    _, loaded = one_policy({field: {}})
    (error,) = loaded.errors
    assert error.message.startswith("Forbidden: ")
    assert "remove the field" in error.message


def test_reinvocation_of_validating(one_policy, errors):
    """A validating policy has no reinvocationPolicy."""
    policy, loaded = one_policy({"reinvocationPolicy": "Never"}, phase="Validating")
    assert policy.phase is Phase.VALIDATING
    assert errors(loaded) == ['policies[0].reinvocationPolicy: unknown field "policies[0].reinvocationPolicy"']


@pytest.mark.parametrize(("field", "value"), [("writes", []), ("writes", 5), ("onConflict", "warn")])
def test_changes_of_validating(one_policy, field, value):
    """A validating policy changes nothing: what speaks of changes is refused, and says why."""
    policy, loaded = one_policy({field: value}, phase="Validating")
    (error,) = loaded.errors
    assert error.place.path == f"policies[0].{field}"
    assert error.message.startswith("Forbidden: a validating policy changes nothing")
    assert policy.writes == Writes.DEFAULT


def test_scopes_of_validating(one_policy):
    """A validating policy has inputs and cache as a mutating one has."""
    policy, loaded = one_policy({"inputs": [], "cache": {"ttl": "1s"}}, phase="Validating")
    assert not loaded.errors
    assert policy.inputs == Inputs(places=PointerSet())
    assert policy.cache == Cache(ttl=1)


@pytest.mark.parametrize(
    "change", [{"inputs": 5, "writes": 5, "cache": 5, "onConflict": 5}, {"inputs": ["/object", "x"], "writes": ["x"]}]
)
def test_unreadable_scopes(one_policy, change):
    """What cannot be read takes the strictest meaning: nothing to see, nothing to change, nothing kept."""
    policy, _ = one_policy({"onConflict": "never"} | change)
    assert policy.fault
    assert policy.inputs == Inputs(places=PointerSet())
    assert policy.writes == Writes(granted=PointerSet())
    assert policy.cache is None
    assert policy.on_conflict is OnConflict.DENY


@pytest.mark.parametrize("entry", [None, 5, "text", [], True])
def test_entry_that_is_no_policy(load_documents, worker, configuration, policy, entry):
    """What is no policy stands in the list all the same: it matches everything, fails closed, and says why."""
    loaded = load_documents(worker(), configuration(policy(), entry))
    assert not loaded.fatal
    good, bad = loaded.mutating
    assert good.fault is None
    assert bad.rules == (EVERYTHING,)
    assert bad.failure_policy is FailurePolicy.FAIL
    assert bad.name == "policies-1.name.invalid"
    assert bad.fault.startswith("policies[1]: Invalid value: ")


def test_failure_policy_of_a_fault(one_policy):
    """A policy with an error stands under its own failurePolicy, if that can be read."""
    policy, _ = one_policy({"failurePolicy": "Ignore", "timeoutSeconds": 99})
    assert policy.fault
    assert policy.failure_policy is FailurePolicy.IGNORE


def test_duplicate_names(load_documents, worker, configuration, policy, errors):
    """Of two policies of one name in a configuration, the second has a fault and another name; the first has not."""
    loaded = load_documents(worker(), configuration(policy(), policy(), policy({"name": "policies-1.name.invalid"})))
    first, second, third = loaded.mutating
    assert errors(loaded) == ['policies[1].name: Duplicate value: "labels.team-a.example.com"']
    assert first.fault is None
    assert third.fault is None
    assert len({first.name, second.name, third.name}) == 3


def test_same_name_in_two_configurations(load_documents, worker, configuration, policy):
    """Two configurations may use the same name for a policy, as two webhook configurations may."""
    loaded = load_documents(worker(), configuration(policy()), configuration(policy(), name="team-b"))
    assert not loaded.errors
    assert [each.qualified_name for each in loaded.mutating] == [
        "team-a/labels.team-a.example.com",
        "team-b/labels.team-a.example.com",
    ]


def test_all_errors_at_once(one_policy):
    """A fault names all of a policy's errors, joined by semicolons."""
    policy, loaded = one_policy({"worker": "other", "timeoutSeconds": 31, "sideEffects": ...})
    assert len(loaded.errors) == 3
    assert policy.fault == (
        "policies[0].sideEffects: Required value: must specify one of None, NoneOnDryRun; "
        "policies[0].timeoutSeconds: Invalid value: 31: the timeout value must be more than 0 and at most 30 seconds; "
        'policies[0].worker: Not found: "other"'
    )


def test_bounded_fault(one_policy):
    """A fault ends in the messages of requests: it names twenty errors at most, and says how many more there are."""
    policy, loaded = one_policy({f"x{i}": 1 for i in range(30)})
    assert len(loaded.errors) == 30
    assert policy.fault.endswith("; and 10 more errors")


def test_canonical_settings(one_policy):
    """Equal settings are equal bytes, whatever the order of their members."""
    members = [("b", {"y": 1.5, "x": "é\u2028"}), ("a", []), ("c", None)]
    one, _ = one_policy({"settings": dict(members)})
    other, _ = one_policy({"settings": dict(reversed(members))})
    assert one.settings == other.settings
    assert json.loads(one.settings) == dict(members)
    assert one.settings.startswith(b'{"a":[],"b":{"x":')


@pytest.mark.parametrize(
    ("yaml", "expected"),
    [
        ("{a: .nan}", ".settings.a: Invalid value: nan: JSON has no such number"),
        ("{a: {b: [1, -.inf]}}", ".settings.a.b[1]: Invalid value: -inf: JSON has no such number"),
        ("{a: !!binary aGk=}", ".settings.a: has the tag 'tag:yaml.org,2002:binary', which JSON has no value for"),
        ("{x.y/z: !!set {}}", ".settings[x.y/z]: has the tag 'tag:yaml.org,2002:set', which JSON has no value for"),
        ("{1: a}", ".settings[1]: the name of a field must be a string, not integer; quote it"),
        ("{a: 1, a: 1}", '.settings.a: duplicate field "policies[0].settings.a"'),
    ],
)
def test_settings_beyond_json(load_text, errors, yaml, expected):
    """What JSON cannot say is no setting; the message says where in the settings it stands."""
    loaded = load_text(f"""
apiVersion: admission-gateway.dev/v1alpha1
kind: Worker
metadata: {{name: labels}}
spec: {{grpc: {{target: "localhost:50051"}}}}
---
apiVersion: admission-gateway.dev/v1alpha1
kind: ValidatingPolicyConfiguration
metadata: {{name: a}}
policies:
- {{name: a.b.c, worker: labels, sideEffects: None, settings: {yaml}}}
""")
    assert errors(loaded) == ["policies[0]" + expected]
    assert loaded.validating[0].settings == b"{}"


@pytest.fixture
def behind(load_documents, worker, configuration, policy):
    """The policy, with changes, of a Worker with this spec, and its errors."""

    def load_one(spec, changes=None):
        loaded = load_documents(worker({"spec": spec}), configuration(policy(changes or {})))
        return loaded.mutating[0], [f"{error.place.path}: {error.message}" for error in loaded.errors]

    return load_one


@pytest.mark.parametrize("field", ["policy", "settings"])
def test_a_policy_of_a_webhook(behind, field):
    """A webhook holds no policies, and takes no settings: naming them is an error."""
    webhook = {"webhook": {"url": "https://hooks.example.com"}}
    one, errors = behind(webhook)
    assert (one.policy, one.fault, errors) == ("", None, [])
    one, (error,) = behind(webhook, {field: {"policy": "labels", "settings": {"a": 1}}[field]})
    assert error.startswith(f"policies[0].{field}: Forbidden: a webhook ")
    assert one.fault == error


def test_a_policy_of_a_hook(behind):
    """It is a binding, whose name has dots: the policy's own whole name, unless another one is said."""
    hook = {"hook": {"path": "validate.sh"}}
    assert behind(hook)[0].policy == "labels.team-a.example.com"
    assert behind(hook, {"policy": "other.example.com"})[0].policy == "other.example.com"
    assert behind(hook, {"policy": "No Binding"})[1][0].startswith("policies[0].policy: Invalid value: ")


@pytest.mark.parametrize("target", [{"webhook": {"url": "https://hooks.example.com"}}, {"hook": {"path": "a.sh"}}])
def test_a_policy_of_an_existing_webhook_or_hook_may_have_a_contact(behind, target):
    """It is of our own kinds: its denials get it, as those of any worker."""
    one, errors = behind(target, {"contact": "us", "documentation": "https://example.com/a"})
    assert (one.is_existing, one.contact, one.documentation) == (True, "us", "https://example.com/a")
    assert errors == []


def test_a_policy_behind_a_queue(behind):
    """It is one of a gRPC worker's, which the queue only leads to."""
    queue = {"queue": {"stream": "labels", "keyFile": "labels.key"}}
    assert behind(queue)[0].policy == "labels"
