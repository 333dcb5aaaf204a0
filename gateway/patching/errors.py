"""A worker's patch that cannot be used, and the words in which that is told.

The words reach the user, the log and the audit log, while the object may be a Secret: they name places and kinds,
never a value of the object. And they are bounded, whatever the worker wrote.
"""

from typing import Any

from gateway.wording import quoted, shortened, shown

__all__ = ["PatchError", "ScopeError", "kind", "prefixed", "quoted", "shortened", "shown"]

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
    """What a worker wants changed is malformed, does not apply, or passes a limit. The message says which and where."""


class ScopeError(PatchError):
    """It would read or move what the worker was not shown: ``WRITE_SCOPE``, not ``INVALID_PATCH``."""


def prefixed(error: PatchError, where: str) -> PatchError:
    """The same fault, said with where in the change it is."""
    reported = f"{where}: {error}"
    return ScopeError(reported) if isinstance(error, ScopeError) else PatchError(reported)


def kind(value: Any) -> str:
    """The JSON type of a decoded value with its article, such as ``a string``."""
    return _KINDS[type(value)]
