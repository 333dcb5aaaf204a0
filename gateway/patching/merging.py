"""JSON Merge Patch, RFC 7386, on shared structure.

A merge patch looks like what it changes: an object is merged member by member, null removes a member, and anything
else takes the place of what was there (so an array can only be replaced whole). What it leaves alone is shared with
the document, and a patch that says only what is so already gives the document itself.

Where its worker was shown only a part of the document, the patch still applies to the document itself. Members are
set and removed by name, so that reads nothing and moves nothing. An array is different: it can only be replaced whole,
by one who has seen it whole. So an existing array that does not lie in sight is not replaced, removed, or lost
with an object around it; whether the new one would equal it does not matter, or the patch could ask for that. For the
same reason a patch is held against what its policy may write as if no hidden value were what it says
(``merged_unlike``).
"""

from typing import Any

import msgspec

from gateway.patching.draft import place
from gateway.patching.equality import Value, equal
from gateway.patching.errors import PatchError, kind
from gateway.patching.limits import DEFAULT_LIMITS, PatchLimits
from gateway.patching.parsing import decode
from gateway.patching.visibility import missing, shows_array
from gateway.scopes.pointer import Pointer
from gateway.scopes.pointer_set import PointerSet

_ANYTHING = msgspec.json.Decoder()
_ABSENT: Any = object()
_KNOWN = frozenset({"apiVersion", "kind"})
"""Members of the object that are no secret to anybody who sees a request."""


def apply_merge_patch(
    document: Value, patch: bytes, *, limits: PatchLimits = DEFAULT_LIMITS, visibility: PointerSet | None = None
) -> Value:
    """The document after a JSON Merge Patch given as JSON text; ``document`` itself is never changed.

    ``visibility`` is what the worker was shown of the document, as places over it; None: all.

    Raises PatchError if the patch is not JSON, deeper than ``limits.depth``, would change an array that was not shown
    whole, or is not an object: by RFC 7386 anything else would replace the whole document, which no policy can mean.
    """
    merge: Any = decode(_ANYTHING, patch, "the merge patch", limits)
    if type(merge) is not dict:
        raise PatchError(f"the merge patch: expected a JSON object, found {kind(merge)}")
    if visibility is not None and not visibility.whole:
        _check_arrays(document, merge, visibility, ())
    return _merged(document, merge)


def merged_unlike(
    document: Value, patch: bytes, *, limits: PatchLimits = DEFAULT_LIMITS, visibility: PointerSet
) -> Value:
    """What a merge patch that applies gives where no hidden value is already what the patch says.

    What differs from the document does not depend on hidden values then, so whoever judges by it tells nothing of them:
    a worker could else write what it may not, together with what it may, and see from the one whether it has guessed
    the other. ``apiVersion`` and ``kind`` are not hidden: the request says them to everybody.
    """
    merge: Any = decode(_ANYTHING, patch, "the merge patch", limits)
    return _unlike(document, _merged(document, merge), merge, visibility, known=_KNOWN)


def _unlike(
    before: Value, after: Value, patch: Value, visibility: PointerSet | None, *, known: frozenset[str] = frozenset()
) -> Value:
    """``after``, with another value wherever the patch has repeated a hidden one."""
    if visibility is not None and visibility.whole:
        return after
    if type(patch) is not dict:
        # An array that can be replaced was shown whole.
        repeats = type(before) is not dict and type(before) is not list and equal(before, after)
        return _another(before) if repeats else after
    if type(before) is not dict:
        return after
    said = {
        name: _unlike(before[name], after[name], value, None if visibility is None else visibility.below(name))
        for name, value in patch.items()
        if name in before and name in after and name not in known
    }
    return {**after, **said}


def _another(value: Value) -> Value:
    return "" if value != "" else "another"


def _check_arrays(target: Value, patch: Value, visibility: PointerSet | None, at: Pointer) -> None:
    """Refuse a patch that changes an array that is not in sight."""
    if visibility is not None and visibility.whole:
        return
    if type(target) is dict and type(patch) is dict:
        for name, value in patch.items():
            if name in target:
                _check_arrays(target[name], value, None if visibility is None else visibility.below(name), (*at, name))
    elif _holds_hidden_array(target, visibility):
        raise PatchError(
            f"the merge patch: an array at or below {place(at)} was not shown whole, and cannot be replaced or removed:"
            f" {missing(at)}"
        )


def _holds_hidden_array(value: Value, visibility: PointerSet | None) -> bool:
    if visibility is not None and visibility.whole:
        return False
    if type(value) is list:
        return not shows_array(visibility)
    return type(value) is dict and any(
        _holds_hidden_array(child, None if visibility is None else visibility.below(name))
        for name, child in value.items()
    )


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
