"""The operations that a hook writes to ``$KUBERNETES_PATCH_PATH``, decoded as shell-operator decodes them.

The file is a stream of JSON objects, else a stream of YAML documents, each of them one operation:

==================================================  ==========================================================
``operation``                                       members
==================================================  ==========================================================
Create, CreateOrUpdate, CreateIfNotExists           ``object``: an object, or its YAML or JSON as a string
Delete, DeleteInBackground, DeleteNonCascading      ``apiVersion``, ``kind``, ``namespace``, ``name``
JSONPatch, MergePatch, JQPatch                      these, ``subresource``, ``ignoreMissingObject``,
                                                    ``ignoreHookError``, and ``jsonPatch`` or ``mergePatch``
                                                    (or its YAML or JSON as a string), or ``jqFilter``
==================================================  ==========================================================

What becomes a part of a path must be one segment of it, as in client-go ("may not be '..'", "may not contain '/'"): a
name that a hook takes from the request must not lead to another object, or to a whole collection.

``kind`` and ``name`` are required, and so is what is created or patched with. Without ``apiVersion`` any group that has
the kind is meant. Unknown members are ignored, and so is ``namespace`` beside an ``object``, which has its own.
"""

import re
from collections.abc import Iterator
from typing import Any, Final

from msgspec import Struct

from gateway.enums import StrEnum
from gateway.gotypes import types
from gateway.gotypes.places import DecodeError
from gateway.hooks.protocol.answers import AnswerError, json_values
from gateway.policies.decoding.nodes import Broken, Node, TextError
from gateway.policies.decoding.yaml_text import read_yaml


class OperationKind(StrEnum):
    """What is done with an object."""

    CREATE = "Create"
    CREATE_OR_UPDATE = "CreateOrUpdate"
    CREATE_IF_NOT_EXISTS = "CreateIfNotExists"
    DELETE = "Delete"
    DELETE_IN_BACKGROUND = "DeleteInBackground"
    DELETE_NON_CASCADING = "DeleteNonCascading"
    JQ_PATCH = "JQPatch"
    MERGE_PATCH = "MergePatch"
    JSON_PATCH = "JSONPatch"


CREATES: Final = frozenset({OperationKind.CREATE, OperationKind.CREATE_OR_UPDATE, OperationKind.CREATE_IF_NOT_EXISTS})
_BODIES: Final = {
    OperationKind.JQ_PATCH: "jqFilter",
    OperationKind.MERGE_PATCH: "mergePatch",
    OperationKind.JSON_PATCH: "jsonPatch",
}
_NO_SEGMENT: Final = re.compile(r"[/%?#]")
_SUBRESOURCE_ON_ERROR: Final = "/status"


class Operation(Struct, frozen=True, kw_only=True):
    """One operation. ``body`` is the object to create, the patch (a dict or a list), or the jq filter; None to delete.

    ``subresource`` is "" or such as ``/status``. ``ignore_missing``: an object that does not exist is no error.
    """

    kind: OperationKind
    api_version: str
    object_kind: str
    namespace: str
    name: str
    body: Any = None
    subresource: str = ""
    ignore_missing: bool = False
    ignore_hook_error: bool = False

    def __str__(self) -> str:
        """For messages: the operation and its object."""
        return f"{self.kind} {self.api_version}/{self.object_kind}/{self.namespace}/{self.name}"

    @property
    def is_done_on_error(self) -> bool:
        """Whether it is done although the hook has failed: as in shell-operator, only patches of ``/status``."""
        return self.ignore_hook_error and self.subresource == _SUBRESOURCE_ON_ERROR


def read_operations(content: bytes) -> tuple[Operation, ...]:
    """The operations in a file.

    Raises:
        AnswerError: one of them is invalid; none is done then.
    """
    return tuple(_checked(_operation(members)) for members in _documents(content))


def _documents(content: bytes) -> Iterator[dict[str, Any]]:
    try:
        found, kind = list(json_values(content)), _JSON
    except AnswerError as error:
        try:
            found, kind = list(_yaml_values(content.decode(errors="replace"))), _YAML
        except AnswerError as other:
            raise AnswerError(f"neither JSON ({error}) nor YAML ({other})") from None
    for value in found:
        try:
            yield types.read(value, kind) or {}
        except DecodeError as error:
            named = f"{error.field} of an operation" if error.field else "an operation"
            raise AnswerError(f"{named} is {error.found}, and must be {error.expected}") from None


def _checked(operation: Operation) -> Operation:
    """The operation, whose texts lead to one object of its kind."""
    segments = {
        "apiVersion": operation.api_version.partition("/")[::2],
        "namespace": (operation.namespace,),
        "name": (operation.name,),
        "subresource": (operation.subresource.removeprefix("/"),),
    }
    for member, texts in segments.items():
        if any(text in {".", ".."} or _NO_SEGMENT.search(text) for text in texts):
            raise AnswerError(
                f"{member} of {operation} is no segment of a path: '.', '..', '/' and '%' are not allowed"
            )
    return operation


def _operation(members: dict[str, Any]) -> Operation:
    try:
        kind = OperationKind(members.get("operation", ""))
    except ValueError:
        known = ", ".join(OperationKind)
        raise AnswerError(f"operation is {members.get('operation')!r}, and must be one of {known}") from None
    if kind in CREATES:
        return _creation(kind, members.get("object"))
    for required in ("kind", "name"):
        if not members.get(required):
            raise AnswerError(f"an operation {kind} has no {required}")
    is_patch = kind in _BODIES
    return Operation(
        kind=kind,
        api_version=members.get("apiVersion", ""),
        object_kind=members["kind"],
        namespace=members.get("namespace", ""),
        name=members["name"],
        body=_body(kind, members) if is_patch else None,
        subresource=members.get("subresource", "") if is_patch else "",
        ignore_missing=members.get("ignoreMissingObject", False),
        ignore_hook_error=members.get("ignoreHookError", False),
    )


def _creation(kind: OperationKind, given: Any) -> Operation:
    found = _parsed(given) if isinstance(given, str) else given
    if not isinstance(found, dict) or not found:
        raise AnswerError(f"an operation {kind} has no object")
    metadata = found.get("metadata")
    metadata = metadata if isinstance(metadata, dict) else {}
    texts = (found.get("apiVersion"), found.get("kind"), metadata.get("namespace") or "", metadata.get("name") or "")
    api_version, object_kind, namespace, name = (each if isinstance(each, str) else "" for each in texts)
    if not object_kind:
        raise AnswerError(f"the object of an operation {kind} has no kind")
    return Operation(
        kind=kind, api_version=api_version, object_kind=object_kind, namespace=namespace, name=name, body=found
    )


def _body(kind: OperationKind, members: dict[str, Any]) -> Any:
    name = _BODIES[kind]
    given = members.get(name)
    if kind is OperationKind.JQ_PATCH:
        if not given:
            raise AnswerError(f"an operation {kind} has no {name}")
        return given
    found = _parsed(given) if isinstance(given, str) else given
    wanted, words = (dict, "an object") if kind is OperationKind.MERGE_PATCH else (list, "an array of operations")
    if not isinstance(found, wanted) or not found:
        raise AnswerError(f"{name} of an operation {kind} must be {words}, or its JSON or YAML, and not empty")
    return found


def _parsed(text: str) -> Any:
    """The first document in a string."""
    try:
        return next(iter(json_values(text.encode(errors="replace"))), None)
    except AnswerError:
        return next(_yaml_values(text), None)


def _yaml_values(text: str) -> Iterator[Any]:
    try:
        for node in read_yaml(text):
            yield _plain(node)
    except TextError as error:
        raise AnswerError(f"line {error.line}: {error}") from None


def _plain(node: Node) -> Any:
    value = node.value
    if isinstance(value, Broken):
        raise AnswerError(f"line {node.line}: {value.message}")
    if isinstance(value, dict):
        return {name: _plain(child) for name, child in value.items()}
    if isinstance(value, list):
        return [_plain(child) for child in value]
    return value


def _fields(*, folded: bool) -> types.Struct:
    texts = ("operation", "apiVersion", "kind", "namespace", "name", "subresource", "jqFilter")
    anything = ("object", "mergePatch", "jsonPatch")
    flags = ("ignoreMissingObject", "ignoreHookError")
    kinds = dict.fromkeys(texts, types.STRING) | dict.fromkeys(anything, types.ANYTHING)
    return types.Struct("", {**kinds, **dict.fromkeys(flags, types.BOOL)}, folded=folded)


_JSON: Final = _fields(folded=True)
"""goccy/go-json compares names without regard to letter case."""

_YAML: Final = _fields(folded=False)
