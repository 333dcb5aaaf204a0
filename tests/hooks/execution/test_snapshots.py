"""Snapshots: which objects a binding selects, and what is included of each."""

import json

import pytest

from gateway.hooks.configuration.model import FieldRequirement, ObjectBinding
from gateway.hooks.execution.snapshots import SnapshotError, selected, snapshot
from gateway.policies.model import Requirement, Selector
from tests.hooks.scripts import WAIT_SECONDS, needs_jq


def made(kind, name, namespace="", *, api_version="v1", labels=None, **members):
    metadata = {"name": name} | ({"namespace": namespace} if namespace else {}) | ({"labels": labels} if labels else {})
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata} | members


OBJECTS = [
    made("Namespace", "prod", labels={"env": "prod"}),
    made("Namespace", "dev", labels={"env": "dev"}),
    made("Pod", "b", "prod", labels={"app": "web"}, spec={"nodeName": "n1"}),
    made("Pod", "a", "prod", spec={"nodeName": "n2"}),
    made("Pod", "a", "dev", labels={"app": "web"}),
    made("Pod", "a", "unknown"),
    made("Policy", "p", api_version="example.com/v1"),
    {"apiVersion": "v1", "kind": "Pod"},
    {"apiVersion": "v1", "kind": "Pod", "metadata": 7},
]


def names(binding):
    metadata = (each.get("metadata") for each in selected(binding, OBJECTS))
    return [f"{each.get('namespace')}/{each['name']}" for each in metadata if isinstance(each, dict)]


def labelled(key, *values):
    return Selector(requirements=(Requirement(key=key, operator="In", values=values),))


@pytest.mark.parametrize(
    ("fields", "found"),
    [
        ({"kind": "Pod", "names": ("b",)}, ["prod/b"]),
        ({"kind": "pods", "names": ("b",)}, ["prod/b"]),
        ({"kind": "POD", "api_version": "v1", "names": ("b",)}, ["prod/b"]),
        ({"kind": "Pod", "api_version": "apps/v1"}, []),
        ({"kind": "policies"}, ["None/p"]),
        ({"kind": "Pod", "namespaces": ("dev", "unknown")}, ["dev/a", "unknown/a"]),
        ({"kind": "Pod", "labels": labelled("app", "web")}, ["prod/b", "dev/a"]),
        ({"kind": "Pod", "namespace_labels": labelled("env", "prod")}, ["prod/b", "prod/a"]),
        ({"kind": "Pod", "namespace_labels": Selector()}, ["prod/b", "prod/a", "dev/a"]),
        ({"kind": "Pod", "fields": (FieldRequirement(field="spec.nodeName", value="n1"),)}, ["prod/b"]),
        (
            {
                "kind": "Pod",
                "namespaces": ("prod",),
                "fields": (FieldRequirement(field="metadata.name", value="a", equals=False),),
            },
            ["prod/b"],
        ),
        ({"kind": "Node"}, []),
    ],
)
def test_a_binding_selects_as_shell_operator_does(fields, found):
    """By kind, name, namespace, labels of both, and fields; all of them have to match."""
    assert names(ObjectBinding(name="x", **fields)) == found


async def listed(**fields):
    binding = ObjectBinding(name="x", **({"kind": "Pod", "namespaces": ("prod", "dev")} | fields))
    return await snapshot(binding, OBJECTS, seconds=WAIT_SECONDS, output_bytes=1_000_000)


async def test_a_snapshot_is_a_sorted_list_of_objects():
    """By namespace and name; without a filter, the object and nothing else."""
    items = await listed()
    assert [each.keys() for each in items] == [{"object"}] * 3
    assert [each["object"]["metadata"]["namespace"] for each in items] == ["dev", "prod", "prod"]
    assert [each["object"]["metadata"]["name"] for each in items] == ["a", "a", "b"]


@pytest.mark.integration
@needs_jq
@pytest.mark.parametrize(
    ("jq_filter", "results"),
    [
        (".metadata.labels", [{"app": "web"}, None, {"app": "web"}]),
        (".spec.nodeName // empty", [None, "n2", "n1"]),
        (".metadata.name, .metadata.namespace", [["a", "dev"], ["a", "prod"], ["b", "prod"]]),
        ("def name: .metadata.name; name # the name", ["a", "a", "b"]),
        ("[.metadata.name]", [["a"], ["a"], ["b"]]),
        (".nope", [None, None, None]),
    ],
)
async def test_an_element_has_the_object_and_the_filters_result(jq_filter, results):
    """null without a value, an array for several."""
    items = await listed(jq_filter=jq_filter)
    assert [each["filterResult"] for each in items] == results
    assert all("object" in each for each in items)


@pytest.mark.integration
@needs_jq
async def test_the_objects_may_be_left_out():
    """With keepFullObjectsInMemory: false, elements have the filter's results only."""
    assert await listed(jq_filter=".metadata.name", keeps_objects=False) == [
        {"filterResult": "a"},
        {"filterResult": "a"},
        {"filterResult": "b"},
    ]


@pytest.mark.integration
@needs_jq
@pytest.mark.parametrize("jq_filter", [".metadata.name | tonumber", "][", ".[", "error"])
async def test_the_error_of_a_filter_names_its_binding(jq_filter):
    """With jq's own message on one line."""
    with pytest.raises(SnapshotError, match="binding 'x': jq cannot apply its jqFilter: ") as reported:
        await listed(jq_filter=jq_filter)
    assert "\n" not in str(reported.value)


@pytest.mark.integration
@needs_jq
async def test_a_filter_that_hangs_is_stopped():
    """At its time limit."""
    binding = ObjectBinding(name="x", kind="Pod", jq_filter="last(repeat(1))")
    with pytest.raises(SnapshotError, match="timed out"):
        await snapshot(binding, OBJECTS, seconds=0.5, output_bytes=1_000)


async def test_without_jq_a_filter_is_an_error(monkeypatch, tmp_path):
    """It says what to install; a binding without a filter needs no jq."""
    monkeypatch.setenv("PATH", str(tmp_path))
    assert len(await listed()) == 3
    with pytest.raises(SnapshotError, match="there is no program jq"):
        await listed(jq_filter=".")


def test_a_field_selector_compares_texts():
    """Whatever the value's type is."""
    objects = [made("Pod", "a", spec={"n": 3, "b": True})]
    for path, value in (("spec.n", "3"), ("spec.b", "true"), ("spec.none", ""), ("spec.n.x", "")):
        binding = ObjectBinding(name="x", kind="Pod", fields=(FieldRequirement(field=path, value=value),))
        assert json.dumps(selected(binding, objects)) == json.dumps(objects)
