"""The operations in ``$KUBERNETES_PATCH_PATH``. The YAML cases are those of shell-operator's own tests."""

import contextlib
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.hooks.protocol.answers import AnswerError
from gateway.hooks.protocol.operations import Operation, OperationKind, read_operations

VALID_CREATE = b"""---
operation: Create
namespace: default
object:
  apiVersion: core/v1
  kind: ConfigMap
  data:
    test: test
---
operation: CreateOrUpdate
namespace: default
object:
  apiVersion: core/v1
  kind: ConfigMap
  data:
    test: test"""

VALID_DELETE = b"""---
operation: Delete
apiVersion: core/v1
kind: ConfigMap
name: "test"
namespace: "default"
---
operation: DeleteInBackground
apiVersion: core/v1
kind: ConfigMap
name: "test"
namespace: "default"
---
operation: DeleteNonCascading
apiVersion: core/v1
kind: ConfigMap
name: "test"
namespace: "default\""""

VALID_PATCH = b"""---
operation: JQPatch
apiVersion: core/v1
kind: ConfigMap
name: "test"
namespace: "default"
jqFilter: '.data = {"test": test}'
---
operation: MergePatch
apiVersion: core/v1
kind: ConfigMap
name: "test"
namespace: "default"
mergePatch:
  data:
    test: test
---
operation: JSONPatch
apiVersion: core/v1
kind: ConfigMap
name: "test"
namespace: "default"
jsonPatch:
- op: replace
  path: /data
  value:
    test: test
"""

INVALID_CREATE = b"""---
operation: Create
namespace: default
object:
---
operation: CreateOrUpdate
namespace: default
object:"""

INVALID_DELETE = b"""---
operation: Delete
kind: ConfigMap
name: "test"
---
operation: DeleteInBackground
apiversion: core/v1
name: "test"
---
operation: DeleteNonCascading
apiversion: core/v1
kind: ConfigMap"""

INVALID_PATCH = b"""---
operation: JQPatch
apiversion: core/v1
kind: ConfigMap
name: "test"
---
operation: MergePatch
apiversion: core/v1
kind: ConfigMap
name: "test"
---
operation: jsonPatch
apiversion: core/v1
kind: ConfigMap
name: "test"
"""

OBJECT = {"apiVersion": "core/v1", "kind": "ConfigMap", "data": {"test": "test"}}
CREATED = {"api_version": "core/v1", "object_kind": "ConfigMap", "namespace": "", "name": "", "body": OBJECT}
FOUND = {"api_version": "core/v1", "object_kind": "ConfigMap", "namespace": "default", "name": "test"}


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (VALID_CREATE, [("Create", CREATED), ("CreateOrUpdate", CREATED)]),
        (VALID_DELETE, [(kind, FOUND) for kind in ("Delete", "DeleteInBackground", "DeleteNonCascading")]),
        (
            VALID_PATCH,
            [
                ("JQPatch", FOUND | {"body": '.data = {"test": test}'}),
                ("MergePatch", FOUND | {"body": {"data": {"test": "test"}}}),
                ("JSONPatch", FOUND | {"body": [{"op": "replace", "path": "/data", "value": {"test": "test"}}]}),
            ],
        ),
        (b"", []),
    ],
)
def test_operations_are_read_as_by_shell_operator(content, expected):
    """In their order. The namespace beside an object does not count."""
    assert read_operations(content) == tuple(Operation(kind=OperationKind(kind), **fields) for kind, fields in expected)


def patch(**members):
    return {"operation": "MergePatch", "kind": "Pod", "name": "p", "mergePatch": {"a": 1}} | members


def test_json_is_a_stream():
    """On one line or on several, names in any letter case, unknown members ignored."""
    text = '{"OPERATION":"Delete","kind":"Pod","name":"a","x":1} {"operation":"Delete",\n"kind":"Pod","name":"b"}'
    assert [each.name for each in read_operations(text.encode())] == ["a", "b"]


@pytest.mark.parametrize(
    ("members", "body"),
    [
        ({"mergePatch": '{"a": 2}'}, {"a": 2}),
        ({"mergePatch": "a: 2"}, {"a": 2}),
        ({"operation": "JSONPatch", "jsonPatch": "- {op: remove, path: /a}"}, [{"op": "remove", "path": "/a"}]),
        (
            {"operation": "Create", "object": "{kind: Pod, metadata: {name: a}}"},
            {"kind": "Pod", "metadata": {"name": "a"}},
        ),
    ],
)
def test_a_patch_or_an_object_may_be_a_string(members, body):
    """Of JSON or YAML."""
    (found,) = read_operations(json.dumps(patch(**members)).encode())
    assert found.body == body


def test_options_are_of_patches():
    """A deletion has none: it ignores a missing object anyway."""
    options = {"subresource": "/status", "ignoreMissingObject": True, "ignoreHookError": True}
    (found,) = read_operations(json.dumps(patch(**options)).encode())
    assert (found.subresource, found.ignore_missing, found.is_done_on_error) == ("/status", True, True)
    (found,) = read_operations(json.dumps(patch(**options, operation="Delete")).encode())
    assert (found.subresource, found.body, found.is_done_on_error) == ("", None, False)


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (INVALID_CREATE, "Create has no object"),
        (INVALID_DELETE, "DeleteInBackground has no kind"),
        (INVALID_PATCH, "JQPatch has no jqFilter"),
        (b"{", "it is not JSON"),
        (b"- a", "must be"),
        (b"a: [", "neither JSON .* nor YAML"),
        ({"operation": "Remove"}, "operation is 'Remove', and must be one of Create, "),
        ({}, "operation is None"),
        (patch(name=""), "MergePatch has no name"),
        (patch(kind=7), "kind of an operation is"),
        (patch(mergePatch={}), "mergePatch .* not empty"),
        (patch(mergePatch="["), "YAML|JSON|line"),
        (patch(operation="JSONPatch", jsonPatch={"op": "add"}), "must be an array"),
        ({"operation": "Create", "object": {"metadata": {}}}, "has no kind"),
        ({"operation": "Delete", "kind": "Pod", "name": "."}, "name of Delete .* is no segment"),
        ({"operation": "Delete", "kind": "Pod", "name": "a/b"}, "name of Delete .* is no segment"),
        ({"operation": "Create", "object": {"kind": "Pod", "metadata": {"namespace": ".."}}}, "namespace of Create"),
        (patch(namespace="a/../b"), "namespace of MergePatch"),
        (patch(name="%2e%2e"), "name of MergePatch"),
        (patch(subresource="../.."), "subresource of MergePatch"),
        (patch(subresource="/status?x"), "subresource of MergePatch"),
        (patch(apiVersion="../v1"), "apiVersion of MergePatch"),
        (patch(apiVersion="a/b/c"), "apiVersion of MergePatch"),
    ],
    ids=repr,
)
def test_an_invalid_operation_makes_all_invalid(content, why):
    """The error says what is wrong."""
    with pytest.raises(AnswerError, match=why):
        read_operations(content if isinstance(content, bytes) else json.dumps(content).encode())


@pytest.mark.property
@given(st.binary() | st.text().map(str.encode) | st.dictionaries(st.text(), st.text()).map(json.dumps).map(str.encode))
def test_whatever_is_written_is_read_or_invalid(content):
    """Nothing else is raised."""
    with contextlib.suppress(AnswerError):
        read_operations(content)
