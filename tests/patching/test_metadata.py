"""What a change may not do to an object: metadata that kube-apiserver could not read, and another kind of object."""

import copy
import json

import pytest
from hypothesis import given

from gateway.engine.object_state import Scope, apply_change
from gateway.engine.verdicts import Change, ChangeKind, Failure
from gateway.patching.limits import DEFAULT_LIMITS
from gateway.patching.metadata import OBJECT_META, object_fault
from gateway.patching.steps import Steps
from gateway.reasons import Reason
from gateway.scopes.writes import Writes
from gateway.slices import finished
from tests.patching.values import objects, text
from tests.traffic import recordings

BEFORE = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "n", "labels": {"a": "b"}}, "spec": {}}
OWNER = {"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "u", "controller": True, "blockOwnerDeletion": None}


def after(**metadata):
    """The object with these members of metadata."""
    return BEFORE | {"metadata": BEFORE["metadata"] | metadata}


@pytest.mark.parametrize(
    "metadata",
    [
        {"labels": None},
        {"labels": {"a": None}},
        {"annotations": {"a": "<\u2028>"}},
        {"finalizers": [None, "f"]},
        {"ownerReferences": [OWNER, None, {}]},
        {"generation": 3, "deletionGracePeriodSeconds": None},
        {"creationTimestamp": None},
        {"creationTimestamp": "2024-01-02T03:04:05Z", "deletionTimestamp": "2024-01-02T03:04:05.1+01:00"},
        {"managedFields": [{"manager": "m", "time": "2024-01-02T03:04:05Z", "fieldsV1": {"f:metadata": {}}}]},
        {"managedFields": [{"fieldsV1": 5}]},
        {"Labels": 5, "unknown": {"a": 1}},
    ],
    ids=str,
)
def test_metadata_that_go_reads(metadata):
    """What decodes into an ObjectMeta is no fault: null everywhere, unknown members, any fieldsV1."""
    assert object_fault(BEFORE, after(**metadata)) is None


@pytest.mark.parametrize(
    ("metadata", "reported"),
    [
        ({"name": 5}, "metadata.name: expected a string, found a number"),
        ({"name": ["n"]}, "metadata.name: expected a string, found an array"),
        ({"generateName": True}, "metadata.generateName: expected a string, found a boolean"),
        ({"namespace": {}}, "metadata.namespace: expected a string, found an object"),
        ({"selfLink": 1}, "metadata.selfLink: expected a string, found a number"),
        ({"uid": 1}, "metadata.uid: expected a string, found a number"),
        ({"resourceVersion": 7}, "metadata.resourceVersion: expected a string, found a number"),
        ({"generation": "3"}, "metadata.generation: expected an integer, found a string"),
        ({"generation": 1.5}, "metadata.generation: expected an integer, found the number 1.5"),
        ({"generation": 2**63}, "metadata.generation: expected an integer, found the number 9223372036854775808"),
        ({"deletionGracePeriodSeconds": "0"}, "metadata.deletionGracePeriodSeconds: expected an integer"),
        ({"creationTimestamp": 5}, "metadata.creationTimestamp: expected a time (RFC 3339), found a number"),
        ({"deletionTimestamp": "today"}, "metadata.deletionTimestamp: expected a time (RFC 3339), found a string"),
        ({"labels": "a=b"}, "metadata.labels: expected an object, found a string"),
        ({"labels": ["a"]}, "metadata.labels: expected an object, found an array"),
        ({"labels": {"tier": 1}}, "metadata.labels[tier]: expected a string, found a number"),
        ({"labels": {"a.b/c": True}}, "metadata.labels[a.b/c]: expected a string, found a boolean"),
        ({"annotations": {"x": {}}}, "metadata.annotations[x]: expected a string, found an object"),
        ({"ownerReferences": {}}, "metadata.ownerReferences: expected an array, found an object"),
        ({"ownerReferences": [OWNER, {"uid": 1}]}, "metadata.ownerReferences[1].uid: expected a string"),
        ({"ownerReferences": [{"controller": "yes"}]}, "metadata.ownerReferences[0].controller: expected a boolean"),
        ({"ownerReferences": ["x"]}, "metadata.ownerReferences[0]: expected an object, found a string"),
        ({"finalizers": "f"}, "metadata.finalizers: expected an array, found a string"),
        ({"finalizers": [1]}, "metadata.finalizers[0]: expected a string, found a number"),
        ({"managedFields": [{"time": "now"}]}, "metadata.managedFields[0].time: expected a time (RFC 3339)"),
        ({"managedFields": [{"manager": 1}]}, "metadata.managedFields[0].manager: expected a string"),
    ],
    ids=str,
)
def test_metadata_that_go_does_not_read(metadata, reported):
    """Field, expectation, observation, and what to do."""
    fault = object_fault(BEFORE, after(**metadata))
    assert fault is not None
    assert fault.startswith(reported)
    assert fault.endswith("kube-apiserver could not read the object: correct what the policy writes there")


@pytest.mark.parametrize("metadata", ["x", 5, [], True])
def test_metadata_is_an_object(metadata):
    """metadata itself is an object, null or absent."""
    assert object_fault(BEFORE, BEFORE | {"metadata": metadata}).startswith("metadata: expected an object, found")
    assert object_fault(BEFORE, BEFORE | {"metadata": None}) is None
    assert object_fault(BEFORE, {name: value for name, value in BEFORE.items() if name != "metadata"}) is None


@pytest.mark.parametrize(
    ("change", "reported"),
    [
        ({"kind": "Pod"}, "kind: it was 'Deployment', and the change leaves 'Pod'; "),
        ({"kind": ""}, "kind: it was 'Deployment', and the change leaves ''; "),
        ({"kind": None}, "kind: it was 'Deployment', and the change leaves nothing; "),
        ({"kind": 5}, "kind: it was 'Deployment', and the change leaves what is no string; "),
        ({"apiVersion": "apps/v1beta1"}, "apiVersion: it was 'apps/v1', and the change leaves 'apps/v1beta1'; "),
        ({"apiVersion": None}, "apiVersion: it was 'apps/v1', and the change leaves nothing; "),
    ],
    ids=str,
)
def test_the_kind_of_an_object_stays(change, reported):
    """A change may neither remove nor alter apiVersion and kind."""
    assert object_fault(BEFORE, BEFORE | change).startswith(reported)
    absent = {name: value for name, value in BEFORE.items() if name not in change}
    assert object_fault(absent, absent) is None


def test_a_fault_is_a_failure_of_the_policy():
    """Whatever form the change has, a fault is INVALID_PATCH that names the field."""
    changes = {
        ChangeKind.JSON_PATCH: [{"op": "add", "path": "/metadata/labels/tier", "value": 1}],
        ChangeKind.MERGE_PATCH: {"metadata": {"labels": {"tier": 1}}},
        ChangeKind.OBJECT: after(labels={"tier": 1}),
        ChangeKind.KUBERNETES_PATCH: [{"op": "replace", "path": "/metadata/labels/tier", "value": 1}],
    }
    scope = Scope(visibility=None, writes=Writes.EVERYTHING, sub_resource="", limits=DEFAULT_LIMITS, steps=Steps())
    for kind, content in changes.items():
        failure = finished(apply_change(BEFORE, Change(kind=kind, content=text(content)), scope))
        assert isinstance(failure, Failure)
        assert failure.reason is Reason.INVALID_PATCH
        assert "metadata.labels[tier]: expected a string, found a number" in failure.message


def test_recorded_objects_have_no_fault():
    """No object that the API server ever sent has a fault."""
    seen = 0
    for recording in recordings():
        request = json.loads(recording.body)["request"]
        for name in ("object", "oldObject"):
            obj = request[name]
            if obj is not None:
                seen += 1
                assert object_fault({"apiVersion": obj.get("apiVersion"), "kind": obj.get("kind")}, obj) is None
    assert seen > 100


def test_every_field_of_object_meta_is_checked():
    """There are fifteen fields, and none takes a value of every type."""
    assert len(OBJECT_META.fields) == 15
    for name in OBJECT_META.fields:
        assert any(object_fault(BEFORE, after(**{name: value})) for value in (5, "x", [5], {}))


@pytest.mark.property
@given(objects())
def test_any_metadata_is_read_or_reported(metadata):
    """Whatever JSON stands in metadata, it is a fault or none, and nothing is changed."""
    changed = BEFORE | {"metadata": metadata}
    kept = copy.deepcopy(changed)
    fault = object_fault(BEFORE, changed)
    assert fault is None or fault.startswith("metadata")
    assert changed == kept
