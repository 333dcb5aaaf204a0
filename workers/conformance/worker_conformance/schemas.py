"""Whether a text is a JSON Schema (2020-12): JSON whose keywords have values of the types that the dialect requires.

It does not validate settings: "``ValidateSettings`` decides, not this". Keywords that are not in the dialect are
annotations with any value.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import msgspec

DIALECT = "https://json-schema.org/draft/2020-12/schema"

TYPES = frozenset({"null", "boolean", "object", "array", "number", "integer", "string"})


def _number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _count(value: Any) -> bool:
    return _number(value) and value >= 0 and value == int(value)


def _text(value: Any) -> bool:
    return isinstance(value, str)


def _texts(value: Any) -> bool:
    return isinstance(value, list) and all(map(_text, value)) and len(set(value)) == len(value)


def _type(value: Any) -> bool:
    names = value if isinstance(value, list) else [value]
    return bool(names) and all(name in TYPES for name in names if isinstance(name, str)) and all(map(_text, names))


_SIMPLE: Mapping[str, tuple[Callable[[Any], bool], str]] = {
    "type": (_type, f"one of {', '.join(sorted(TYPES))}, or an array of them"),
    "required": (_texts, "an array of different strings"),
    "enum": (lambda value: isinstance(value, list), "an array"),
    "$ref": (_text, "a string"),
    "$schema": (lambda value: value == DIALECT, DIALECT),
    "pattern": (_text, "a string"),
    "format": (_text, "a string"),
    "title": (_text, "a string"),
    "description": (_text, "a string"),
    **dict.fromkeys(("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"), (_number, "a number")),
    **dict.fromkeys(
        ("minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties"),
        (_count, "a whole number of at least 0"),
    ),
    "uniqueItems": (lambda value: isinstance(value, bool), "a boolean"),
}

_SCHEMA = (
    "items",
    "contains",
    "additionalProperties",
    "propertyNames",
    "unevaluatedProperties",
    "not",
    "if",
    "then",
    "else",
)
_SCHEMAS = ("allOf", "anyOf", "oneOf", "prefixItems")
_SCHEMAS_BY_NAME = ("properties", "patternProperties", "$defs", "dependentSchemas")


def errors(text: bytes) -> Iterator[str]:
    """All errors in a JSON Schema, each with its JSON Pointer."""
    try:
        root = msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        yield f"not JSON: {error}"
        return
    yield from _of(root, root, "#")


def _of(schema: Any, root: Any, here: str) -> Iterator[str]:
    if isinstance(schema, bool):
        return
    if not isinstance(schema, dict):
        yield f"{here}: must be an object or a boolean, is {type(schema).__name__}"
        return
    for name, value in schema.items():
        if name in _SIMPLE and not _SIMPLE[name][0](value):
            yield f"{here}/{name}: must be {_SIMPLE[name][1]}, is {msgspec.json.encode(value).decode()}"
        elif name == "$ref" and value.startswith("#/") and not _leads(root, value):
            yield f"{here}/$ref: {value} does not exist"
        yield from _below(name, value, root, f"{here}/{name}")


def _below(name: str, value: Any, root: Any, here: str) -> Iterator[str]:
    """The errors in the schemas of a keyword."""
    if name in _SCHEMA:
        yield from _of(value, root, here)
    elif name in _SCHEMAS:
        if not isinstance(value, list) or not value:
            yield f"{here}: must be a non-empty array of schemas"
            return
        for index, schema in enumerate(value):
            yield from _of(schema, root, f"{here}/{index}")
    elif name in _SCHEMAS_BY_NAME:
        if not isinstance(value, dict):
            yield f"{here}: must be an object of schemas"
            return
        for key, schema in value.items():
            yield from _of(schema, root, f"{here}/{key}")


def _leads(root: Any, reference: str) -> bool:
    for token in reference.removeprefix("#/").split("/"):
        key = token.replace("~1", "/").replace("~0", "~")
        if not isinstance(root, dict) or key not in root:
            return False
        root = root[key]
    return True
