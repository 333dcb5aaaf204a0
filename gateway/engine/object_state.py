"""The object of a review, and how a worker's change is applied to it: a new value that shares unchanged parts.

The change may be a JSON Patch, a merge patch or a whole object; only the difference between before and after counts. A
change that does not apply, or that is outside the policy's scope, is a failure, never a partial change:

* the change may neither read nor replace what the policy's inputs do not include (``visibility``);
* the change may only write the fields that the policy may write (``writes``), whatever the form of the change.
"""

from typing import Any, Final

from msgspec import Struct

from gateway.engine.plan import Member
from gateway.engine.verdicts import Change, ChangeKind, Failure
from gateway.patching.application import PatchDialect, apply_json_patch
from gateway.patching.difference import Operation, difference
from gateway.patching.equality import equal
from gateway.patching.errors import PatchError, ScopeError
from gateway.patching.field_ownership import ChangedField, FieldOwnership, Overwrite
from gateway.patching.limits import PatchLimits
from gateway.patching.merging import apply_merge_patch, merged_unlike
from gateway.patching.metadata import object_fault
from gateway.patching.replacement import apply_object
from gateway.patching.write_check import out_of_scope
from gateway.reasons import Reason
from gateway.review.request import Request, UnreadError
from gateway.scopes.pointer_set import PointerSet
from gateway.scopes.writes import Writes

_NO_CHANGE: Final = {
    ChangeKind.JSON_PATCH: {b"[]"},
    ChangeKind.KUBERNETES_PATCH: {b"[]", b"null"},
    ChangeKind.MERGE_PATCH: {b"{}"},
    ChangeKind.OBJECT: set[bytes](),
}


class AppliedChange(Struct, frozen=True, kw_only=True):
    """The object after a change, and the difference; no operations if nothing changed."""

    after: Any
    operations: tuple[Operation, ...]


class ObjectState(Struct, eq=False):
    """The object of one review after the policies so far, and which policy changed what.

    ``changed``: a policy has changed it, even if another one undid that. ``after`` is the object if it differs from the
    original, else None: then documents hold the API server's own bytes.
    """

    _request: Request
    _limits: PatchLimits
    changed: bool = False
    after: Any = None
    _patch: tuple[Operation, ...] | None = ()
    _field_ownership: FieldOwnership | None = None
    _unrecorded: list[tuple[int, int, AppliedChange]] = []

    @property
    def patch(self) -> tuple[Operation, ...]:
        """The difference between the original and the current object."""
        if self._patch is None:
            self._patch = difference(self._request.object, self.after)
        return self._patch

    def now(self) -> Any:
        """The current object."""
        return self._request.object if self.after is None else self.after

    def preview(self, change: Change, member: Member) -> AppliedChange | Failure:
        """The object after this policy's change, without committing it."""
        scope = Scope(
            visibility=member.inputs.object,
            writes=member.writes,
            sub_resource=self._request.sub_resource,
            limits=self._limits,
        )
        try:
            before = self.now()
        except UnreadError as error:
            return Failure(reason=error.reason, message=str(error))
        return apply_change(before, change, scope)

    def overwritten(self, operations: tuple[Operation, ...], author: int) -> tuple[Overwrite, ...]:
        """The fields that other policies changed and that these operations of ``author`` would write again."""
        return self._ownership().overwritten(operations, author=author) if self.changed else ()

    def commit(self, applied: AppliedChange, *, author: int, order: int) -> None:
        """Apply a change. ``author`` is the policy's index in the plan, ``order`` the turn's index among all turns."""
        self._unrecorded.append((author, order, applied))
        self.changed = True
        if self.after is None:
            # The object was the original one, so this change is the whole difference.
            self.after, self._patch = applied.after, applied.operations
        elif equal(self._request.object, applied.after):
            self.after, self._patch = None, ()
        else:
            self.after, self._patch = applied.after, None

    def fields(self) -> tuple[ChangedField, ...]:
        """The fields that differ from the original object, and the turns that wrote them."""
        return () if self.after is None else self._ownership().changes(self.after)

    def _ownership(self) -> FieldOwnership:
        """Which policy wrote which field; computed when needed, because most reviews have at most one change."""
        if self._field_ownership is None:
            self._field_ownership = FieldOwnership(self._request.object)
        for author, order, applied in self._unrecorded:
            self._field_ownership.record(author, order, applied.operations, applied.after)
        self._unrecorded.clear()
        return self._field_ownership


class Scope(Struct, frozen=True, kw_only=True):
    """The bounds of a change: the part of the object in the policy's inputs (None: all), and what it may write."""

    visibility: PointerSet | None
    writes: Writes
    sub_resource: str
    limits: PatchLimits


def apply_change(before: Any, change: Change, scope: Scope) -> AppliedChange | Failure:
    """Apply ``change`` to the object ``before``.

    Returns:
        The object after the change (``before`` itself if nothing changed) and the difference; or a failure
        ``INVALID_PATCH`` or ``WRITE_SCOPE``.
    """
    if before is None:
        # "attempted to modify the object, which is not supported for this operation"
        if b"".join(change.content.split()) in _NO_CHANGE[change.kind]:
            return AppliedChange(after=None, operations=())
        return _invalid("the request has no object to change (it is a DELETE); answer allow without a change")
    try:
        after = _apply(before, change, scope)
    except ScopeError as error:
        return _outside(str(error))
    except PatchError as error:
        return _invalid(str(error))
    return _checked(before, after, change, scope)


def _checked(before: Any, after: Any, change: Change, scope: Scope) -> AppliedChange | Failure:
    if not isinstance(after, dict):
        return _invalid(f"the {change.kind} leaves a {type(after).__name__} where the object was")
    if (fault := object_fault(before, after)) is not None:
        return _invalid(fault)
    operations = difference(before, after)
    outside = _beyond_writes(before, after, operations, change, scope)
    if outside is not None:
        return _outside(outside)
    if not operations:
        return AppliedChange(after=before, operations=())
    return AppliedChange(after=after, operations=operations)


def _beyond_writes(
    before: Any, after: Any, operations: tuple[Operation, ...], change: Change, scope: Scope
) -> str | None:
    """Why the policy may not write what differs; None if it may."""
    if scope.writes is Writes.EVERYTHING:
        return None
    if change.kind is ChangeKind.MERGE_PATCH and scope.visibility is not None:
        # Otherwise an empty difference would reveal the hidden value.
        after = merged_unlike(before, change.content, limits=scope.limits, visibility=scope.visibility)
        operations = difference(before, after)
    return out_of_scope(before, after, operations, scope.writes, scope.sub_resource) if operations else None


def _apply(before: Any, change: Change, scope: Scope) -> Any:
    limits, visibility = scope.limits, scope.visibility
    match change.kind:
        case ChangeKind.JSON_PATCH:
            return apply_json_patch(before, change.content, limits=limits, visibility=visibility)
        case ChangeKind.KUBERNETES_PATCH:
            dialect = PatchDialect.KUBERNETES
            return apply_json_patch(before, change.content, limits=limits, dialect=dialect, visibility=visibility)
        case ChangeKind.MERGE_PATCH:
            return apply_merge_patch(before, change.content, limits=limits, visibility=visibility)
        case ChangeKind.OBJECT:
            return apply_object(before, change.content, limits=limits, visibility=visibility)


def _invalid(message: str) -> Failure:
    return Failure(reason=Reason.INVALID_PATCH, message=message)


def _outside(message: str) -> Failure:
    return Failure(reason=Reason.WRITE_SCOPE, message=message)
