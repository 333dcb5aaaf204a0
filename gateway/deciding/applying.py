"""A worker's change, applied to the object: a new value that shares all it can with the old one, and what differs.

The change may be a JSON Patch, a merge patch or a whole object; what counts is the difference between before and
after. A change that changes nothing is none. A change that does not apply is a failure, never a partial change.
"""

from typing import Any, Final

from gateway.deciding.verdicts import Change, ChangeKind, Failure
from gateway.patching import (
    Operation,
    PatchDialect,
    PatchError,
    PatchLimits,
    apply_json_patch,
    apply_merge_patch,
    difference,
    object_fault,
    parse_object,
)
from gateway.reasons import Reason
from gateway.review import Request

_NO_CHANGE: Final = {
    ChangeKind.JSON_PATCH: {b"[]"},
    ChangeKind.KUBERNETES_PATCH: {b"[]", b"null"},
    ChangeKind.MERGE_PATCH: {b"{}"},
    ChangeKind.OBJECT: set[bytes](),
}


class EvolvingObject:
    """The object of one review as the policies so far have left it.

    ``changed`` says whether any of them ever changed it. ``patch`` is the difference between what came and what it is
    now; where that is empty, it is the one that came again: then its document is the API server's own bytes.
    """

    __slots__ = ("_after", "_limits", "_request", "changed", "patch")

    def __init__(self, request: Request, limits: PatchLimits) -> None:
        self._request = request
        self._limits = limits
        self._after: Any = None
        self.changed = False
        self.patch: tuple[Operation, ...] = ()

    @property
    def after(self) -> Any:
        """The object, if it differs from the one that came; else None."""
        return self._after

    def now(self) -> Any:
        """The object as it is now."""
        return self._after if self.patch else self._request.object

    def try_out(self, change: Change) -> tuple[Operation, ...] | Failure:
        """What ``change`` would change."""
        applied = apply_change(self.now(), change, self._limits)
        return applied if isinstance(applied, Failure) else applied[1]

    def apply(self, change: Change) -> tuple[Operation, ...] | Failure:
        """Change the object; what that changed."""
        applied = apply_change(self.now(), change, self._limits)
        if isinstance(applied, Failure):
            return applied
        after, changes = applied
        if changes:
            self.changed = True
            # The first change is all that differs; a later one may have undone it.
            self.patch = difference(self._request.object, after) if self.patch else changes
            self._after = after if self.patch else None
        return changes


def apply_change(before: Any, change: Change, limits: PatchLimits) -> tuple[Any, tuple[Operation, ...]] | Failure:
    """Apply ``change`` to the object ``before``.

    Returns:
        The object after it and the difference, empty if they are equal (then the object returned is ``before`` itself);
        or a failure ``INVALID_PATCH``.
    """
    if before is None:
        # "attempted to modify the object, which is not supported for this operation"
        if b"".join(change.content.split()) in _NO_CHANGE[change.kind]:
            return None, ()
        return _invalid("the request has no object to change (it is a DELETE); answer allow without a change")
    try:
        after = _apply(before, change, limits)
    except PatchError as error:
        return _invalid(str(error))
    if not isinstance(after, dict):
        return _invalid(f"the {change.kind} leaves a {type(after).__name__} where the object was")
    if (fault := object_fault(before, after)) is not None:
        return _invalid(fault)
    changes = difference(before, after)
    return (after, changes) if changes else (before, ())


def _apply(before: Any, change: Change, limits: PatchLimits) -> Any:
    match change.kind:
        case ChangeKind.JSON_PATCH:
            return apply_json_patch(before, change.content, limits=limits)
        case ChangeKind.KUBERNETES_PATCH:
            return apply_json_patch(before, change.content, limits=limits, dialect=PatchDialect.KUBERNETES)
        case ChangeKind.MERGE_PATCH:
            return apply_merge_patch(before, change.content, limits=limits)
        case ChangeKind.OBJECT:
            return parse_object(change.content, limits=limits)


def _invalid(message: str) -> Failure:
    return Failure(reason=Reason.INVALID_PATCH, message=message)
