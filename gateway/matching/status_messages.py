"""kube-apiserver's messages and StatusDetails for what it cannot decide (k8s.io/apimachinery/pkg/api/errors)."""

from collections.abc import Sequence
from typing import Any, Final

_SHORT: Final = {7: r"\a", 8: r"\b", 9: r"\t", 10: r"\n", 11: r"\v", 12: r"\f", 13: r"\r", 34: r"\"", 92: r"\\"}
_ASCII: Final = 0x80
_BASIC_PLANE: Final = 0x10000


def forbidden(group: str, resource: str, name: str, why: str) -> tuple[str, dict[str, Any]]:
    """NewForbidden: ``deployments.apps "x" is forbidden: WHY``, and its StatusDetails."""
    named = f"{qualified(group, resource)} {quoted(name)}" if name else qualified(group, resource)
    return f"{named} is forbidden: {why}", details(group, resource, name)


def not_found(group: str, resource: str, name: str) -> tuple[str, dict[str, Any]]:
    """NewNotFound: ``namespaces "gone" not found``, and its StatusDetails."""
    return f"{qualified(group, resource)} {quoted(name)} not found", details(group, resource, name)


def details(group: str, resource: str, name: str) -> dict[str, Any]:
    """StatusDetails; "The kind attribute of the resource": the API server puts the resource there. None is empty."""
    members = {"name": name, "group": group, "kind": resource}
    return {key: value for key, value in members.items() if value}


def qualified(group: str, resource: str) -> str:
    """GroupResource.String: ``deployments.apps``, and the resource alone for the core group."""
    return f"{resource}.{group}" if group else resource


def aggregate(errors: Sequence[str]) -> str:
    """utilerrors.NewAggregate: one error unchanged; several different ones in brackets, each once."""
    seen = list(dict.fromkeys(errors))
    return seen[0] if len(seen) == 1 else f"[{', '.join(seen)}]"


def quoted(text: str) -> str:
    """Go's ``%q``."""
    return f'"{"".join(_escaped(char) for char in text)}"'


def _escaped(char: str) -> str:
    code = ord(char)
    if code in _SHORT:
        return _SHORT[code]
    if char.isprintable():
        return char
    if code < _ASCII:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < _BASIC_PLANE else f"\\U{code:08x}"
