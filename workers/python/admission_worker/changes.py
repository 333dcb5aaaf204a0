"""The change of an allow: a JSON Patch, a JSON Merge Patch, or the whole object, as JSON text.

The change is encoded when the answer is made. So an invalid value raises in the policy's own function, and later
changes of the values do not change the answer. Numbers of the document keep their digits
(``admission_worker.json_text``). The gateway checks whether a patch applies.
"""

import math
from collections.abc import Iterable, Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import Any, Final

from msgspec import Struct

from admission_worker import json_text, values
from admission_worker.errors import InvalidAnswerError

_PATCH_MEMBERS: Final[Mapping[str, frozenset[str]]] = MappingProxyType(
    {
        "add": frozenset({"path", "value"}),
        "remove": frozenset({"path"}),
        "replace": frozenset({"path", "value"}),
        "move": frozenset({"path", "from"}),
        "copy": frozenset({"path", "from"}),
        "test": frozenset({"path", "value"}),
    }
)
"""The required members of each operation, without ``op``: RFC 6902, section 4."""


class ChangeKind(StrEnum):
    """The three forms of a change."""

    JSON_PATCH = "json_patch"
    MERGE_PATCH = "merge_patch"
    OBJECT = "object"


class Change(Struct, frozen=True, kw_only=True):
    """A change; ``content`` is JSON text."""

    kind: ChangeKind
    content: bytes

    @property
    def value(self) -> Any:
        """The decoded content, for tests: the operations, the merge patch or the object."""
        return json_text.decoder().decode(self.content)


def json_patch(operations: Iterable[Mapping[str, Any]]) -> Change:
    """Operations of RFC 6902, checked."""
    return Change(kind=ChangeKind.JSON_PATCH, content=_encoded(_operations(operations), "patch"))


def merge_patch(changes: Mapping[str, Any]) -> Change:
    """An object of RFC 7386."""
    return Change(kind=ChangeKind.MERGE_PATCH, content=_encoded(values.mapping(changes, "merge"), "merge"))


def whole_object(whole: Mapping[str, Any]) -> Change:
    """The whole new object."""
    return Change(kind=ChangeKind.OBJECT, content=_encoded(values.mapping(whole, "mutated"), "mutated"))


def _operations(operations: Iterable[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """The operations as a list, each checked against RFC 6902."""
    if isinstance(operations, str | bytes | Mapping) or not isinstance(operations, Iterable):
        raise InvalidAnswerError(f"patch: must be a list of operations, is {values.type_of(operations)}")
    result = list(operations)
    for index, operation in enumerate(result):
        if not isinstance(operation, Mapping):
            raise InvalidAnswerError(f"patch[{index}]: must be an operation, is {values.type_of(operation)}")
        op = operation.get("op")
        needed = _PATCH_MEMBERS.get(op) if isinstance(op, str) else None
        if needed is None:
            raise InvalidAnswerError(f"patch[{index}].op: must be one of {', '.join(_PATCH_MEMBERS)}")
        if missing := sorted(needed - operation.keys()):
            raise InvalidAnswerError(f"patch[{index}]: {op} needs {' and '.join(missing)}")
        for name in ("path", "from"):
            place = operation.get(name, "")
            if not isinstance(place, str) or (place and not place.startswith("/")):
                raise InvalidAnswerError(f"patch[{index}].{name}: must be a JSON Pointer such as /metadata/labels")
    return result


def _encoded(value: Any, what: str) -> bytes:
    """A value as JSON text."""
    try:
        content = json_text.encoded(value)
    except (TypeError, ValueError, OverflowError, RecursionError) as error:
        message = f"{what}: cannot be written as JSON: {type(error).__name__}"
        raise InvalidAnswerError(message) from error
    # msgspec writes NaN and infinities as null, which removes a field in a merge patch. Search for them only if there
    # is a null.
    if b"null" in content and _has_no_number(value):
        raise InvalidAnswerError(f"{what}: cannot be written as JSON: NaN and infinities are no JSON numbers")
    return content


def _has_no_number(value: Any) -> bool:
    """Whether a value has a float that is not finite. A ``Number`` such as ``1e400`` is written as its text."""
    if isinstance(value, json_text.Number):
        return False
    if isinstance(value, float):
        return not math.isfinite(value)
    if isinstance(value, Mapping):
        return any(map(_has_no_number, value.values()))
    return isinstance(value, list | tuple) and any(map(_has_no_number, value))
