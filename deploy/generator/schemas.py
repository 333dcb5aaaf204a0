"""Parts of a structural schema: OpenAPI v3 as CustomResourceDefinitions take it, and CEL rules with `check`'s words."""

from collections.abc import Collection, Iterable, Mapping
from typing import Any, Final

from gateway.policies.names import dns_subdomain

Schema = dict[str, Any]
"""An OpenAPI v3 schema."""

_DNS_LABEL: Final = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"

IS_DNS_NAME: Final = f"self.matches('^{_DNS_LABEL}([.]{_DNS_LABEL})*$')"
"""Not ``format.dns1123Subdomain()``, which API servers before 1.32 refuse in a definition."""

ANY_OBJECT: Final[Schema] = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}


def text(description: str = "", *rules: Schema, **limits: Any) -> Schema:
    """A string."""
    return _typed("string", description, rules, limits)


def words(description: str, known: Iterable[str]) -> Schema:
    """One of these words."""
    return _typed("string", description, (), {"enum": sorted(map(str, known))})


def number(description: str, *rules: Schema) -> Schema:
    """A number, which may be a fraction."""
    return _typed("number", description, rules, {})


def whole(description: str, *rules: Schema, **limits: Any) -> Schema:
    """A whole number."""
    return _typed("integer", description, rules, {"format": "int32", **limits})


def flag(description: str) -> Schema:
    """A boolean."""
    return _typed("boolean", description, (), {})


def mapping(
    description: str, properties: Mapping[str, Schema], *rules: Schema, required: Iterable[str] = (), **rest: Any
) -> Schema:
    """An object with these members."""
    members = {"properties": dict(properties)} | ({"required": list(required)} if required else {})
    return _typed("object", description, rules, members | rest)


def array(
    description: str, items: Schema, *rules: Schema, kind: str = "atomic", keys: Iterable[str] = (), **limits: Any
) -> Schema:
    """A list. ``kind`` is how server-side apply merges it: atomic, set or map; a map has ``keys``."""
    merge = {"x-kubernetes-list-type": kind} | ({"x-kubernetes-list-map-keys": list(keys)} if keys else {})
    return _typed("array", description, rules, {"items": items, **limits, **merge})


def rule(expression: str, message: str, reason: str = "Invalid", path: str = "") -> Schema:
    """A CEL rule: what must be true, or else this message. ``path`` leads to the member that it is about."""
    made = {"rule": expression, "message": message}
    return (
        made
        | ({} if reason == "Invalid" else {"reason": f"FieldValue{reason}"})
        | ({"fieldPath": path} if path else {})
    )


def dns_name() -> Schema:
    """The rule of a DNS-1123 subdomain."""
    (words_,) = dns_subdomain("")
    return rule(IS_DNS_NAME, words_)


def require_equal(schemas: Mapping[str, Schema], fields: Collection[str]) -> None:
    """Raise ValueError unless there is a schema of each of these fields: one that a reader knows, and no other."""
    if schemas.keys() != set(fields):
        raise ValueError(f"of the fields {sorted(fields)}, there are schemas of {sorted(schemas)}")


def _typed(kind: str, description: str, rules: Iterable[Schema], rest: Schema) -> Schema:
    made = ({"description": description} if description else {}) | {"type": kind} | rest
    validations = list(rules)
    return made | ({"x-kubernetes-validations": validations} if validations else {})
