"""A worker's change, applied to the object: a new value that shares all it can with the old one, and what differs.

The change may be a JSON Patch, a merge patch or a whole object; what counts is the difference between before and
after. A change that changes nothing is none. A change that does not apply is a failure, never a partial change.
"""

from typing import Any, Final

from gateway.deciding.verdicts import Change, ChangeKind, Failure
from gateway.patching import (
    Operation,
    PatchError,
    PatchLimits,
    apply_json_patch,
    apply_merge_patch,
    difference,
    parse_object,
)
from gateway.reasons import Reason

_NO_CHANGE: Final = {ChangeKind.JSON_PATCH: b"[]", ChangeKind.MERGE_PATCH: b"{}"}


def apply_change(before: Any, change: Change, limits: PatchLimits) -> tuple[Any, tuple[Operation, ...]] | Failure:
    """Apply ``change`` to the object ``before``.

    Returns:
        The object after it and the difference, empty if they are equal (then the object returned is ``before`` itself);
        or a failure ``INVALID_PATCH``.
    """
    if before is None:
        # "attempted to modify the object, which is not supported for this operation"
        if change.content.strip() == _NO_CHANGE.get(change.kind):
            return None, ()
        return _invalid("the request has no object to change (it is a DELETE); answer allow without a change")
    try:
        after = _apply(before, change, limits)
    except PatchError as error:
        return _invalid(str(error))
    if not isinstance(after, dict):
        return _invalid(f"the {change.kind} leaves a {type(after).__name__} where the object was")
    changes = difference(before, after)
    return (after, changes) if changes else (before, ())


def _apply(before: Any, change: Change, limits: PatchLimits) -> Any:
    match change.kind:
        case ChangeKind.JSON_PATCH:
            return apply_json_patch(before, change.content, limits=limits)
        case ChangeKind.MERGE_PATCH:
            return apply_merge_patch(before, change.content, limits=limits)
        case ChangeKind.OBJECT:
            return parse_object(change.content, limits=limits)


def _invalid(message: str) -> Failure:
    return Failure(reason=Reason.INVALID_PATCH, message=message)
