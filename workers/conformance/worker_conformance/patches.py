"""Applies a change to an object: JSON Patch (RFC 6902), JSON Merge Patch (RFC 7386), or a whole object.

It is strict: each error of an RFC is an error here.
"""

import copy
from collections.abc import Mapping
from typing import Any

import msgspec

from worker_conformance.pointers import Place, is_pointer, tokens
from worker_conformance.proto.admission.worker.v1 import worker_pb2

Json = Any
"""A decoded JSON value: None, bool, int, float, str, list, dict."""


class PatchError(ValueError):
    """The change does not apply."""


def changed(value: Json, allow: worker_pb2.Allow) -> Json:
    """The object after the change of an allow; without a change, the object.

    Args:
        value: the object, which is not modified.
        allow: the verdict.

    Raises:
        PatchError: the change is invalid, or does not apply.
    """
    kind = allow.WhichOneof("change")
    if kind is None:
        return value
    try:
        change = msgspec.json.decode(getattr(allow, kind))
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise PatchError(f"{kind} is not JSON: {error}") from None
    if kind == "json_patch":
        return _patched(value, change)
    if not isinstance(change, dict):
        raise PatchError(f"{kind} must be a JSON object, is {type(change).__name__}")
    return _merged(value, change) if kind == "merge_patch" else change


def _merged(value: Json, patch: Json) -> Json:
    """RFC 7386, section 2, word for word."""
    if not isinstance(patch, dict):
        return patch
    target = dict(value) if isinstance(value, dict) else {}
    for name, part in patch.items():
        if part is None:
            target.pop(name, None)
        else:
            target[name] = _merged(target.get(name), part)
    return target


def _patched(value: Json, operations: Json) -> Json:
    if not isinstance(operations, list):
        raise PatchError(f"json_patch must be a JSON array, is {type(operations).__name__}")
    root = {"": copy.deepcopy(value)}
    for number, operation in enumerate(operations):
        try:
            _apply(root, operation)
        except PatchError as error:
            raise PatchError(f"operation {number} ({msgspec.json.encode(operation).decode()}): {error}") from None
    return root[""]


def _apply(root: dict[str, Json], operation: Json) -> None:
    if not isinstance(operation, Mapping):
        raise PatchError("is not a JSON object")
    kind, place = operation.get("op"), _place(operation, "path")
    match kind:
        case "add":
            _add(root, place, _value(operation))
        case "remove":
            _remove(root, place)
        case "replace":
            _remove(root, place)
            _add(root, place, _value(operation))
        case "move":
            source = _place(operation, "from")
            if len(place) > len(source) and place[: len(source)] == source:
                raise PatchError("cannot move a value into itself")
            _add(root, place, _remove(root, source))
        case "copy":
            _add(root, place, copy.deepcopy(_at(root, _place(operation, "from"))))
        case "test":
            if not same(_at(root, place), _value(operation)):
                raise PatchError("the test fails")
        case _:
            raise PatchError("op must be add, remove, replace, move, copy or test")


def same(one: Json, other: Json) -> bool:
    """Whether two values are equal in JSON: ``true`` is not 1."""
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(same(value, other[key]) for key, value in one.items())
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(same, one, other))
    return bool(one == other)


def _place(operation: Mapping[str, Json], member: str) -> Place:
    text = operation.get(member)
    if not isinstance(text, str) or not is_pointer(text):
        raise PatchError(f"{member} must be a JSON Pointer")
    return ("", *tokens(text))


def _value(operation: Mapping[str, Json]) -> Json:
    if "value" not in operation:
        raise PatchError("value is missing")
    return operation["value"]


def _at(root: Json, place: Place) -> Json:
    for token in place:
        root = root[_key(root, token)]
    return root


def _key(container: Json, token: str, *, end: int = 0) -> Any:
    """The key or index of an existing part; ``end`` 1: the index may be one past the last."""
    if isinstance(container, list):
        if not token.isdecimal() or (len(token) > 1 and token.startswith("0")) or int(token) >= len(container) + end:
            raise PatchError(f"element {token!r} does not exist")
        return int(token)
    if not isinstance(container, dict) or (token not in container and not end):
        raise PatchError(f"member {token!r} does not exist")
    return token


def _add(root: Json, place: Place, value: Json) -> None:
    parent = _at(root, place[:-1])
    if isinstance(parent, list):
        parent.insert(len(parent) if place[-1] == "-" else _key(parent, place[-1], end=1), value)
    else:
        parent[_key(parent, place[-1], end=1)] = value


def _remove(root: Json, place: Place) -> Json:
    parent = _at(root, place[:-1])
    return parent.pop(_key(parent, place[-1]))
