"""What a policy is sent: the parts of an AdmissionRequest that it claims, as the gateway cuts them out.

* ``kind``, ``resource``, ``subResource``, ``operation`` and ``dryRun`` always; ``uid`` never; ``namespaceObject`` only
  if it is named.
* A claimed value that exists appears, and so does every existing object or array on the way to one. What does not
  exist does not appear. Order stays.
* Arrays keep length and positions: an element that no claim reaches is ``{}``, ``[]`` or null, by its own kind.
* Where claims overlap, the wider wins.

The gateway does this; here it serves tests, so that a policy which reads more than it claims fails before it is
deployed.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from admission_worker.claims import Claim, Everything
from admission_worker.pointers import tokens

ALWAYS: Final = ("kind", "resource", "subResource", "operation", "dryRun")
"""Members of every document."""

NEVER_CALLED: Final = frozenset({"uid", "namespaceObject"})
"""What "everything" does not hold: nobody is sent the one, and the other is no member of the request itself."""

_Path = tuple[str, ...]


def document_of(request: Mapping[str, Any], inputs: Claim) -> dict[str, Any]:
    """The document for a policy with these inputs.

    Args:
        request: an AdmissionRequest in its JSON shape.
        inputs: what the policy claims; None (not said) is everything.
    """
    if inputs is None or isinstance(inputs, Everything):
        return {name: value for name, value in request.items() if name not in NEVER_CALLED}
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
    """What the paths reach of a value; of one that they do not reach, its kind."""
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
    """The paths that go through this member or element, from there on."""
    return [path[1:] for path in paths if path and path[0] in {name, "*"}]
