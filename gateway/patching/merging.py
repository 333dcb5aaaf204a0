"""JSON Merge Patch, RFC 7386, on shared structure.

A merge patch looks like what it changes: an object is merged member by member, null removes a member, and anything
else takes the place of what was there (so an array can only be replaced whole). What it leaves alone is shared with
the document, and a patch that says only what is so already gives the document itself.
"""

from typing import Any

import msgspec

from gateway.patching.equality import Value, equal
from gateway.patching.errors import PatchError, kind
from gateway.patching.limits import DEFAULT_LIMITS, PatchLimits
from gateway.patching.parsing import decode

_ANYTHING = msgspec.json.Decoder()
_ABSENT: Any = object()


def apply_merge_patch(document: Value, patch: bytes, *, limits: PatchLimits = DEFAULT_LIMITS) -> Value:
    """The document after a JSON Merge Patch given as JSON text; ``document`` itself is never changed.

    Raises PatchError if the patch is not JSON, deeper than ``limits.depth``, or not an object: by RFC 7386 anything
    else would replace the whole document, which no policy can mean.
    """
    merge: Any = decode(_ANYTHING, patch, "the merge patch", limits)
    if type(merge) is not dict:
        raise PatchError(f"the merge patch: expected a JSON object, found {kind(merge)}")
    return _merged(document, merge)


def _merged(target: Value, patch: dict[str, Value]) -> Value:
    """``MergePatch(Target, Patch)`` of RFC 7386, section 2, for a patch that is an object; leaves ``target`` alone."""
    # Of a target that is not an object the RFC says: "Ignore the contents and set it to an empty Object".
    shared = type(target) is dict
    result: dict[str, Value] = target if shared else {}
    for name, value in patch.items():
        old = result.get(name, _ABSENT)
        if value is None:
            new = _ABSENT
        elif type(value) is dict:
            new = _merged(old, value)
        else:
            new = old if equal(old, value) else value
        if new is old:
            continue
        if shared:
            result, shared = result.copy(), False
        if new is _ABSENT:
            del result[name]
        else:
            result[name] = new
    return result
