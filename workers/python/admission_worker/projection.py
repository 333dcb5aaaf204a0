"""The document of a policy: the parts of an AdmissionRequest that it claims, as the gateway selects them.

* ``kind``, ``resource``, ``subResource``, ``operation`` and ``dryRun`` are always there; ``uid`` never is;
  ``namespaceObject`` only if it is claimed.
* Claimed values that exist are there, with the objects and arrays around them, in their order.
* Arrays keep length and positions: an element that no claim covers is ``{}``, ``[]`` or null, by its type.
* Where claims overlap, the wider one applies.

The gateway does this; the SDK does it in tests, so that a policy that reads more than it claims fails before it is
deployed.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from admission_worker.claims import Claim, Everything
from admission_worker.pointers import tokens

ALWAYS: Final = ("kind", "resource", "subResource", "operation", "dryRun")
"""Members of every document."""

NOT_IN_DOCUMENTS: Final = frozenset({"uid", "namespaceObject"})
"""Members outside of "everything": ``uid`` is in no document, and the Namespace is not part of the request itself."""

_Path = tuple[str, ...]


def document_of(request: Mapping[str, Any], inputs: Claim) -> dict[str, Any]:
    """The document for a policy with these inputs.

    Args:
        request: an AdmissionRequest in its JSON shape.
        inputs: the policy's claim; None (unset) is everything.
    """
    if inputs is None or isinstance(inputs, Everything):
        return {name: value for name, value in request.items() if name not in NOT_IN_DOCUMENTS}
    paths = [(name,) for name in ALWAYS] + [tokens(place) for place in inputs]
    return _members(request, paths)


def _members(value: Mapping[str, Any], paths: Sequence[_Path]) -> dict[str, Any]:
    found = {}
    for name, part in value.items():
        below = _below(paths, name)
        if () in below:
            found[name] = part
        elif below and isinstance(part, dict | list):
            found[name] = _cut(part, below)
    return found


def _cut(value: Any, paths: Sequence[_Path]) -> Any:
    """The parts of a value that the paths cover; an empty value of its type if they cover none."""
    if () in paths:
        return value
    if not isinstance(value, dict | list):
        return None
    if not paths:
        return type(value)()
    if isinstance(value, dict):
        return _members(value, paths)
    return [_cut(part, _below(paths, str(index))) for index, part in enumerate(value)]


def _below(paths: Sequence[_Path], name: str) -> list[_Path]:
    """The rest of the paths through this member or element."""
    return [path[1:] for path in paths if path and path[0] in {name, "*"}]
