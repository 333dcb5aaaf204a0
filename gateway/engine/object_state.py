"""A worker's change, applied to the object: a new value that shares all it can with the old one, and what differs.

The change may be a JSON Patch, a merge patch or a whole object; what counts is the difference between before and
after. A change that changes nothing is none. A change that does not apply, or that touches what the policy may not
touch, is a failure, never a partial change:

* what the policy was not shown, its change may neither read nor replace (``visibility``);
* what it may not write, its change may not change (``writes``), in whatever form it is said.
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
from gateway.patching.scope import out_of_scope
from gateway.reasons import Reason
from gateway.review.request import Request
from gateway.scopes.pointer_set import PointerSet
from gateway.scopes.writes import Writes

_NO_CHANGE: Final = {
    ChangeKind.JSON_PATCH: {b"[]"},
    ChangeKind.KUBERNETES_PATCH: {b"[]", b"null"},
    ChangeKind.MERGE_PATCH: {b"{}"},
    ChangeKind.OBJECT: set[bytes](),
}


class AppliedChange(Struct, frozen=True, kw_only=True):
    """What a change makes of the object: the object after it, and the difference; none if nothing changed."""

    after: Any
    operations: tuple[Operation, ...]


class ObjectState(Struct, eq=False):
    """The object of one review as the policies so far have left it, and who changed what.

    ``changed`` says whether any of them ever changed it. ``after`` is the object, if it differs from the one that came;
    else None: then its document is the API server's own bytes.
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
        """The difference between the object that came and what it is now."""
        if self._patch is None:
            self._patch = difference(self._request.object, self.after)
        return self._patch

    def now(self) -> Any:
        """The object as it is now."""
        return self._request.object if self.after is None else self.after

    def preview(self, change: Change, member: Member) -> AppliedChange | Failure:
        """What this policy's change would make of it."""
        scope = Scope(
            visibility=member.inputs.object,
            writes=member.writes,
            sub_resource=self._request.sub_resource,
            limits=self._limits,
        )
        return apply_change(self.now(), change, scope)

    def overwritten(self, operations: tuple[Operation, ...], author: int) -> tuple[Overwrite, ...]:
        """What others have changed and these operations of ``author`` would write again, and whose it is."""
        return self._ownership().overwritten(operations, author=author) if self.changed else ()

    def commit(self, applied: AppliedChange, *, author: int, order: int) -> None:
        """Change it. ``author`` is the policy's place in the plan, ``order`` that of its turn among all turns."""
        self._unrecorded.append((author, order, applied))
        self.changed = True
        if self.after is None:
            # The first change is all that differs. A later one may have undone it.
            self.after, self._patch = applied.after, applied.operations
        elif equal(self._request.object, applied.after):
            self.after, self._patch = None, ()
        else:
            self.after, self._patch = applied.after, None

    def fields(self) -> tuple[ChangedField, ...]:
        """Which fields differ from the object that came, and in which turns they were written."""
        return () if self.after is None else self._ownership().changes(self.after)

    def _ownership(self) -> FieldOwnership:
        """Who wrote what. Most reviews have one change, and nobody asks: it is followed only when somebody does."""
        if self._field_ownership is None:
            self._field_ownership = FieldOwnership(self._request.object)
        for author, order, applied in self._unrecorded:
            self._field_ownership.record(author, order, applied.operations, applied.after)
        self._unrecorded.clear()
        return self._field_ownership


class Scope(Struct, frozen=True, kw_only=True):
    """Within which bounds a change is applied: what the policy was shown of the object (None: all), and may write."""

    visibility: PointerSet | None
    writes: Writes
    sub_resource: str
    limits: PatchLimits


def apply_change(before: Any, change: Change, scope: Scope) -> AppliedChange | Failure:
    """Apply ``change`` to the object ``before``.

    Returns:
        The object after it (``before`` itself if nothing changed) and the difference; or a failure ``INVALID_PATCH`` or
        ``WRITE_SCOPE``.
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
    return _held_against(before, after, change, scope)


def _held_against(before: Any, after: Any, change: Change, scope: Scope) -> AppliedChange | Failure:
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
        # Else "nothing differs" would tell what a hidden value is.
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
