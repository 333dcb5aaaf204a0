"""What is hidden in a Secret, value by value, and the search for hidden values in texts.

Only ``apiVersion``, ``kind``, ``type``, ``immutable``, ``metadata`` without the values of annotations, and the keys of
``data`` and ``stringData`` are shown: also a member that no version of Secret has may hold a value.
"""

import base64
import binascii
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import msgspec

from gateway.json_values import VALUES
from gateway.scopes.pointer_set import ANY, PointerSet

HIDDEN: Final = "(hidden)"
"""Replaces a hidden value."""

_PUBLIC: Final = frozenset({"apiVersion", "kind", "type", "immutable", "metadata"})
KEYED: Final = frozenset({"data", "stringData"})
_LAST_APPLIED: Final = "kubectl.kubernetes.io/last-applied-configuration"

_decode: Final = VALUES.decode


def is_public(places: PointerSet | None) -> bool:
    """Whether these places of a Secret hold no hidden value, whatever it contains."""
    if places is None:
        return True
    return all(
        pointer and (pointer[0] in _PUBLIC - {"metadata"} or (pointer[0] == "metadata" and _is_label(pointer)))
        for pointer in places.pointers
    )


def _is_label(pointer: tuple[str, ...]) -> bool:
    return len(pointer) > 1 and pointer[1] not in {"annotations", ANY}


def masked_member(name: str, value: Any) -> Any:
    """A top-level member of a Secret."""
    if name == "metadata" and type(value) is dict:
        return {key: _hidden_values(each) if key == "annotations" else each for key, each in value.items()}
    if name in _PUBLIC and name != "metadata":
        return value
    return _hidden_values(value) if name in KEYED else HIDDEN


def without_written(value: Any, original: Any) -> Any:
    """``value`` without what is not in ``original``, at any depth."""
    if type(value) is dict and type(original) is dict:
        return {
            name: without_written(member, original[name]) if name in original else HIDDEN
            for name, member in value.items()
        }
    return value if value == original else HIDDEN


def _hidden_values(value: Any) -> Any:
    return dict.fromkeys(value, HIDDEN) if type(value) is dict else HIDDEN


def secret_texts(value: Any) -> Iterable[str]:
    """The hidden values of a Secret, as it stands in a request, in the forms of ``texts``."""
    if type(value) is not dict:
        return
    for name in KEYED:
        yield from texts(value.get(name))
    metadata = value.get("metadata")
    annotations = metadata.get("annotations") if type(metadata) is dict else None
    applied = annotations.get(_LAST_APPLIED) if type(annotations) is dict else None
    if type(applied) is str:
        yield applied
        try:
            before = _decode(applied)
        except (msgspec.DecodeError, ValueError, RecursionError):
            return
        if type(before) is dict:
            for name in KEYED:
                yield from texts(before.get(name))


def texts(value: Any) -> Iterable[str]:
    """The strings in a value, at any depth; each as it stands, encoded in base64, and decoded from it if it is."""
    rest = [value]
    while rest:
        each = rest.pop()
        if type(each) is dict:
            rest += each.values()
        elif type(each) is list:
            rest += each
        elif type(each) is str:
            yield each
            content = each.encode("utf-8", "surrogatepass")
            yield base64.b64encode(content).decode()
            try:
                decoded = base64.b64decode(content, validate=True).decode()
            except (binascii.Error, ValueError):
                continue
            yield from (decoded, decoded.strip())


def scrubbed_text(text: str, values: Sequence[str]) -> str:
    """The text with ``HIDDEN`` in the place of each of these values."""
    for each in values:
        if each in text:
            text = text.replace(each, HIDDEN)
    return text


def scrubbed(value: Any, values: Sequence[str]) -> Any:
    """A JSON value, the names of its members included, with ``HIDDEN`` in the place of each of these values."""
    if type(value) is str:
        return scrubbed_text(value, values)
    if isinstance(value, Mapping):
        return {scrubbed_text(name, values): scrubbed(member, values) for name, member in value.items()}
    if isinstance(value, list | tuple):
        return [scrubbed(element, values) for element in value]
    return value
