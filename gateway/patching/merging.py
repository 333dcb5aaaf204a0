"""JSON Merge Patch, RFC 7386, on shared structure.

A merge patch has the shape of the object: objects are merged member by member, null removes a member, and any other
value replaces the existing one (so an array can only be replaced whole). Unchanged parts are shared with the document,
and a patch that changes nothing returns the document itself.

If the worker received only a part of the document, the patch still applies to the whole document. Members are set and
removed by name, which reads and moves nothing. An array can only be replaced whole, so the worker must have received it
whole. An existing array with hidden parts is therefore never replaced, removed, or lost with an object around it, even
if the new one would equal it: otherwise the patch could test for equality. For the same reason, whether a policy may
write what its patch changes is decided as if no hidden value were equal to the patch's (``merged_unlike``).
"""

from typing import Any

from gateway.json_values import VALUES
from gateway.patching.draft import place
from gateway.patching.equality import Value, equal
from gateway.patching.errors import PatchError, kind
from gateway.patching.limits import DEFAULT_LIMITS, PatchLimits
from gateway.patching.parsing import decode
from gateway.patching.visibility import missing, shows_array
from gateway.scopes.pointer import Pointer
from gateway.scopes.pointer_set import PointerSet

_ABSENT: Any = object()
_KNOWN = frozenset({"apiVersion", "kind"})
"""Members of the object that are never hidden: each request has them."""


def apply_merge_patch(
    document: Value,
    patch: bytes,
    *,
    limits: PatchLimits = DEFAULT_LIMITS,
    visibility: PointerSet | None = None,
    is_counted: bool = False,
) -> Value:
    """The document after a JSON Merge Patch given as JSON text; ``document`` itself is never changed.

    ``visibility`` is the part of the document that the worker received; None: all. ``is_counted``: see
    ``parsing.count``.

    Raises PatchError if the patch is not JSON, deeper than ``limits.depth``, would change an array that was not shown
    whole, or is not an object: by RFC 7386 any other value would replace the whole document.
    """
    merge: Any = decode(VALUES, patch, "the merge patch", limits, is_counted=is_counted)
    if type(merge) is not dict:
        raise PatchError(f"the merge patch: expected a JSON object, found {kind(merge)}")
    if visibility is not None and not visibility.whole:
        _check_arrays(document, merge, visibility, ())
    return _merged(document, merge)


def merged_unlike(
    document: Value, patch: bytes, *, limits: PatchLimits = DEFAULT_LIMITS, visibility: PointerSet
) -> Value:
    """The result of a merge patch, as if no hidden value were already equal to the patch's value.

    Its difference from the document does not depend on hidden values, so a check of that difference reveals nothing of
    them. Otherwise a worker could write a field that it may write together with one that it may not, and learn from the
    outcome whether it has guessed the hidden value. ``apiVersion`` and ``kind`` are not hidden: each request has them.
    The patch has been applied before, so its values are counted.
    """
    merge: Any = decode(VALUES, patch, "the merge patch", limits, is_counted=True)
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
    merged = {
        name: _unlike(before[name], after[name], value, None if visibility is None else visibility.below(name))
        for name, value in patch.items()
        if name in before and name in after and name not in known
    }
    return {**after, **merged}


def _another(value: Value) -> Value:
    return "" if value != "" else "another"


def _check_arrays(target: Value, patch: Value, visibility: PointerSet | None, at: Pointer) -> None:
    """Reject a patch that changes an array with hidden parts."""
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
    """``MergePatch(Target, Patch)`` of RFC 7386, section 2, for a patch that is an object. Copies ``target``."""
    # The RFC on a target that is not an object: "Ignore the contents and set it to an empty Object".
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
