"""JSON documents, patches and edits for property tests, and an equality that owes nothing to the code under test."""

import copy
import json
from random import Random
from typing import Any

import jsonpatch
from hypothesis import settings
from hypothesis import strategies as st

from gateway.patching.application import apply_json_patch
from gateway.patching.errors import PatchError
from gateway.scopes.pointer import format_pointer

NAMES = st.sampled_from(["a", "b", "name", "", "0", "1", "-", "01", "~", "/", "m~1n", "é"])
"""Few, so that two documents have members in common; and with every meaning that a pointer's token can have."""

SCALARS = st.sampled_from([None, True, False, 0, 1, 1.0, -1, 2.5, 2**70, "", "a", "b", "1", "\n", "😀"])
PLAIN_SCALARS = st.sampled_from([None, True, False, -1, 2.5, 2**70, "", "a", "b", "1", "\n", "😀"])
"""Without 0 and 1, which are False and True for Python, and so for the jsonpatch library."""


def values(scalars: st.SearchStrategy[Any] = SCALARS) -> st.SearchStrategy[Any]:
    """Any JSON value."""
    return st.recursive(
        scalars, lambda inner: st.lists(inner, max_size=5) | st.dictionaries(NAMES, inner, max_size=5), max_leaves=12
    )


def objects(scalars: st.SearchStrategy[Any] = SCALARS) -> st.SearchStrategy[dict[str, Any]]:
    """A JSON object, as every Kubernetes object is."""
    return st.dictionaries(NAMES, values(scalars), max_size=5)


def places(value: Any, at: tuple[str, ...] = ()) -> list[tuple[str, ...]]:
    """Where the values in a document stand, itself first."""
    children = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [at, *[place for name, child in children for place in places(child, (*at, str(name)))]]


SOME = settings(max_examples=min(settings().max_examples, 1_500))
"""Documents are dear to draw, some 4 ms: in the "long" profile these properties make do with 1,500 of them."""

SEEDS = st.integers(0, 2**32).map(Random)
"""A source of chance that costs one draw, where a patch or an edit makes fifty decisions."""


def patched(
    scalars: st.SearchStrategy[Any] = SCALARS,
) -> st.SearchStrategy[tuple[dict[str, Any], list[dict[str, Any]]]]:
    """An object and a JSON Patch for it."""
    return st.tuples(objects(scalars), SEEDS).map(lambda drawn: (drawn[0], patch_for(drawn[1], drawn[0])))


def patch_for(random: Random, document: Any) -> list[dict[str, Any]]:
    """A JSON Patch of which all operations apply, except sometimes the last.

    It keeps to what the jsonpatch library does as the RFC says. These it does not, and they have tests of their own: it
    cannot copy or move the whole document, nor go on where that became something else than an object; it refuses to
    replace a member called "-"; its ``test`` holds 1 for true.
    """
    operations: list[dict[str, Any]] = []
    for _ in range(random.randrange(1, 6)):
        operation = _operation_for(random, document)
        try:
            document = apply_json_patch(document, text([operation]))
        except PatchError:
            if random.random() < 0.1:
                return [*operations, operation]
        else:
            operations.append(operation)
    return operations


def _operation_for(random: Random, document: Any) -> dict[str, Any]:
    name = random.choice(["add", "add", "remove", "replace", "move", "copy", "test"])
    path = _somewhere(random, document)
    if name == "replace" and path[-1] == "-":
        path = (*path, "a")
    operation = {"op": name, "path": format_pointer(path)}
    if name in {"move", "copy"}:
        operation["from"] = format_pointer(_somewhere(random, document))
    elif name == "test" and random.random() < 0.8:
        operation["value"] = found(document, path)
    elif name != "remove":
        operation["value"] = random.choice([None, True, 2.5, 2**70, "a", "", [], {}, [[3], {"a": []}], {"a": {"b": 3}}])
    return operation


def _somewhere(random: Random, document: Any) -> tuple[str, ...]:
    place = random.choice(places(document))
    name = random.choice(["a", "b", "name", "", "0", "1", "-", "-", "01", "~", "/", "m~1n"])
    if random.random() < 0.3 or not place:
        return (*place, name)
    return (*place[:-1], name) if random.random() < 0.2 else place


def found(document: Any, path: tuple[str, ...]) -> Any:
    """The value at a place, or None."""
    for token in path:
        if isinstance(document, dict) and token in document:
            document = document[token]
        elif isinstance(document, list) and token.isdecimal() and int(token) < len(document):
            document = document[int(token)]
        else:
            return None
    return document


def edited(random: Random, value: Any) -> Any:
    """A value with one random edit somewhere in it; sharing what it can with the old one, or nothing."""
    if random.random() < 0.3:
        value = copy.deepcopy(value)
    if isinstance(value, dict) and value:
        return _edited_object(random, value)
    if isinstance(value, list) and value:
        return _edited_array(random, value)
    return random.choice([None, True, 1, 2.5, "a", "new", [], {}, ["x"], {"name": "new"}])


def _edited_object(random: Random, value: dict[str, Any]) -> dict[str, Any]:
    result = dict(value)
    name = random.choice(list(result))
    match random.choice(["inside", "inside", "remove", "add", "reorder"]):
        case "inside":
            result[name] = edited(random, result[name])
        case "remove":
            del result[name]
        case "add":
            result[random.choice(["a", "new", "0", "m/n"])] = edited(random, None)
        case "reorder":
            result = dict(sorted(result.items(), key=lambda _: random.random()))
    return result


def _edited_array(random: Random, value: list[Any]) -> list[Any]:
    result = list(value)
    index = random.randrange(len(result))
    match random.choice(["inside", "inside", "remove", "insert", "repeat", "shuffle"]):
        case "inside":
            result[index] = edited(random, result[index])
        case "remove":
            del result[index]
        case "insert":
            result.insert(index, edited(random, None))
        case "repeat":
            result.insert(random.randrange(len(result)), result[index])
        case "shuffle":
            random.shuffle(result)
    return result


def strictly_equal(one: Any, other: Any) -> bool:
    """JSON equality, member by member: 1 is 1.0, but neither is true."""
    if isinstance(one, bool) or isinstance(other, bool) or one is None or other is None:
        return one is other
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(strictly_equal(one[name], other[name]) for name in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(strictly_equal, one, other))
    return not isinstance(one, dict | list) and not isinstance(other, dict | list) and one == other


def text(value: Any) -> bytes:
    """A value as JSON text."""
    return json.dumps(value, ensure_ascii=False).encode()


def applied_by_the_library(document: Any, patch: bytes) -> Any:
    """What the jsonpatch library makes of a patch; raises what it raises."""
    operations = [
        # It takes the member "-" of an object for an index. Adding a member that is there replaces it (RFC 6902, 4.1).
        {**operation, "op": "add"} if operation["op"] == "replace" and operation["path"].endswith("/-") else operation
        for operation in json.loads(patch)
    ]
    return jsonpatch.apply_patch(document, operations)
