"""Whatever change a worker sends for whatever object: it gives another value, or PatchError.

* The object that it is applied to stays what it is; what it gives nests no deeper than the limit.
* Our difference from before to after leads there, by another library too, and only with add, replace and remove.
* To a worker that sees a part of the object, the rest makes no difference: with another value there, the change applies
  or fails alike.

An input is the kind of the change (one byte), the object, a zero byte, and the change.
"""

import copy
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonpatch
import msgspec

from gateway.depth import too_deep
from gateway.patching.application import PatchDialect, apply_json_patch
from gateway.patching.difference import difference, encode_patch
from gateway.patching.errors import PatchError
from gateway.patching.limits import DEFAULT_LIMITS
from gateway.patching.merging import apply_merge_patch
from gateway.patching.parsing import parse_object
from gateway.patching.replacement import apply_object
from gateway.scopes.pointer_set import PointerSet
from tests.patching.values import strictly_equal

RECORDED = Path(__file__).parents[1] / "conformance" / "agnhost_webhook_io.jsonl"
CASES = Path(__file__).parents[1] / "conformance" / "cases" / "json_patch_quirks.jsonl"
WORDS = (
    b'"op" | "add" | "remove" | "replace" | "move" | "copy" | "test" | "path" | "from" | "value" | "/-" | '
    b'"/a/0" | ~0 | ~1 | ~2 | "/metadata/labels" | null | 1e400 | 18446744073709551616 | \\ud800 | [[[[[[ | '
    b'{"a":{"a": | -0 | 1.0 | "-1" | "01" | \x00'
).split(b" | ")
_VISIBLE = PointerSet([("a",), ("metadata", "labels")])
_anything = msgspec.json.Decoder()


def seeds() -> Iterator[bytes]:
    """The cases of conformance, what Kubernetes' own test webhook has answered, and changes of all kinds."""
    for line in CASES.read_text().splitlines()[1:]:
        case = json.loads(line)
        for kind in b"\x00\x01\x04":
            yield bytes([kind]) + case["doc"].encode() + b"\x00" + case["patch"].encode()
    for line in RECORDED.read_text().splitlines()[1:]:
        case = json.loads(line)
        if patch := case["expected"].get("decodedPatch"):
            obj = json.dumps(case["request"]["body"]["request"]["object"]).encode()
            yield b"\x00" + obj + b"\x00" + (patch if isinstance(patch, str) else json.dumps(patch)).encode()
    before = b'{"a":[{"b":1},{"b":2}],"metadata":{"labels":{"x":"1"}},"h":{"i":null}}'
    for kind in b"\x02\x03\x05\x06":
        yield bytes([kind]) + before + b'\x00{"a":[{"b":2}],"metadata":{"labels":{"x":null,"y":"2"}}}'


def run(data: bytes) -> None:
    """See the invariant above."""
    kind = data[0] % 8 if data else 0
    text, _, change = data[1:].partition(b"\x00")
    try:
        before = parse_object(text)
    except PatchError:
        return
    visibility = _VISIBLE if kind & 4 else None
    if visibility is not None:
        outcomes = {_outcome(kind & 3, before | {"hidden": {"v": value}}, change) for value in (1, "2", [3])}
        assert len(outcomes) == 1, f"what is hidden makes a difference: {outcomes}"
    kept = copy.deepcopy(before)
    try:
        after = _changed(kind & 3, before, change, visibility)
    except PatchError:
        assert strictly_equal(before, kept), "a change that fails has changed the object"
        return
    assert strictly_equal(before, kept), "the object that was given has changed"
    content = msgspec.json.encode(after)
    assert not too_deep(content, DEFAULT_LIMITS.depth)
    _check_difference(before, after)


def _changed(kind: int, before: dict[str, Any], change: bytes, visibility: PointerSet | None) -> Any:
    if kind == 0:
        return apply_json_patch(before, change, visibility=visibility)
    if kind == 1:
        return apply_json_patch(before, change, dialect=PatchDialect.KUBERNETES, visibility=visibility)
    if kind == 2:
        return apply_merge_patch(before, change, visibility=visibility)
    return apply_object(before, change, visibility=visibility)


def _outcome(kind: int, before: dict[str, Any], change: bytes) -> str:
    try:
        _changed(kind, before, change, _VISIBLE)
    except PatchError as error:
        return str(error)
    return "applies"


def _check_difference(before: Any, after: Any) -> None:
    operations = json.loads(encode_patch(difference(before, after)))
    assert {operation["op"] for operation in operations} <= {"add", "replace", "remove"}
    plain = json.loads(msgspec.json.encode(before))
    led_to = jsonpatch.apply_patch(copy.deepcopy(plain), operations)
    assert strictly_equal(led_to, json.loads(msgspec.json.encode(after))), operations
    assert bool(operations) != strictly_equal(before, after)
