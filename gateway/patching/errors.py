"""Errors of a worker's patch, and their messages.

The messages reach the user, the log and the audit log, while the object may be a Secret: they name places and JSON
types, never a value of the object. Their size is bounded, whatever the worker wrote.
"""

from typing import Any

from gateway.quoting import json_quoted, quoted, shortened

__all__ = ["PatchError", "PatchLimitError", "ScopeError", "json_quoted", "kind", "prefixed", "quoted", "shortened"]

_KINDS = {
    dict: "an object",
    list: "an array",
    str: "a string",
    bool: "a boolean",
    int: "a number",
    float: "a number",
    type(None): "null",
}


class PatchError(ValueError):
    """A worker's change is malformed, does not apply, or exceeds a limit. The message says which and where."""


class PatchLimitError(PatchError):
    """The change exceeds a limit (``PatchLimits``)."""


class ScopeError(PatchError):
    """The change would read or move a hidden value: ``WRITE_SCOPE``, not ``INVALID_PATCH``."""


def prefixed(error: PatchError, where: str) -> PatchError:
    """The same error, prefixed with its place in the change."""
    reported = f"{where}: {error}"
    return type(error)(reported)


def kind(value: Any) -> str:
    """The JSON type of a decoded value with its article, such as ``a string``."""
    return _KINDS[type(value)]
