"""The object of a review, and how a worker's change is applied to it: a new value that shares unchanged parts.

The change may be a JSON Patch, a merge patch or a whole object; only the difference between before and after counts. A
change that does not apply, or that is outside the policy's scope, is a failure, never a partial change:

* the change may neither read nor replace what the policy's inputs do not include (``visibility``);
* the change may only write the fields that the policy may write (``writes``), whatever the form of the change.

The work is bounded, for each change (``PatchLimits``, ``Steps``) and for all of a review. What is done with a large
change is a generator that yields between the parts, none of which takes longer than some 50 ms.
"""

from collections.abc import Generator
from typing import Any, Final

import msgspec
from msgspec import Struct

from gateway.engine.plan import Member
from gateway.engine.verdicts import Change, ChangeKind, Failure
from gateway.patching.application import PatchDialect, apply_json_patch
from gateway.patching.difference import Operation, difference
from gateway.patching.equality import equal
from gateway.patching.errors import PatchError, PatchLimitError, ScopeError
from gateway.patching.field_ownership import ChangedField, FieldOwnership, Overwrite
from gateway.patching.kubernetes import check_texts
from gateway.patching.limits import PatchLimits
from gateway.patching.merging import apply_merge_patch, merged_unlike
from gateway.patching.metadata import object_fault
from gateway.patching.parsing import count
from gateway.patching.replacement import apply_object
from gateway.patching.steps import STEPS, Steps
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


_DIALECTS: Final = {
    ChangeKind.JSON_PATCH: PatchDialect.RFC_6902,
    ChangeKind.KUBERNETES_PATCH: PatchDialect.KUBERNETES,
}

_NAMES: Final = {
    ChangeKind.JSON_PATCH: "the JSON Patch",
    ChangeKind.KUBERNETES_PATCH: "the JSON Patch",
    ChangeKind.MERGE_PATCH: "the merge patch",
    ChangeKind.OBJECT: "the object",
}
"""What messages call a change."""

_encode: Final = msgspec.json.Encoder().encode

DIFFERENCE_STEPS: Final = "difference_steps"
"""The limit of a comparison, after which values are replaced whole: its name in metrics."""

PATCH_WORK: Final = "patch_work"
"""Any limit of ``PatchLimits``, likewise."""

_LARGE: Final = 16_384
"""Bytes of a change that is large: a smaller one takes some 2 ms in all."""

_HEAVY: Final = STEPS // 10
"""Steps of a difference that is heavy, some 5 ms; and those that each change has, whatever the changes before took."""

_REVIEW_STEPS: Final = 5 * STEPS
"""Steps of the differences of all changes of one review, some 0.3 s. Twenty policies with a thousand operations each
need a third."""


class AppliedChange(Struct, frozen=True, kw_only=True):
    """The object after a change, and the difference; no operations if nothing changed. ``large``: what is done with it
    takes long.
    """

    after: Any
    operations: tuple[Operation, ...]
    large: bool = False


class ObjectState(Struct, eq=False):
    """The object of one review after the policies so far, and which policy changed what.

    ``changed``: a policy has changed it, even if another one undid that. ``after`` is the object if it differs from the
    original, else None: then documents hold the API server's own bytes. ``limits_hit``: the limits of work that changes
    have reached, by name, for the metrics.
    """

    _request: Request
    _limits: PatchLimits
    changed: bool = False
    after: Any = None
    _patch: tuple[Operation, ...] | None = ()
    _field_ownership: FieldOwnership | None = None
    _unrecorded: list[tuple[int, int, AppliedChange]] = []
    limits_hit: list[str] = []
    _fields: tuple[ChangedField, ...] | None = None
    _steps: int = _REVIEW_STEPS
    _large: bool = False

    @property
    def patch(self) -> tuple[Operation, ...]:
        """The difference between the original and the current object."""
        if self._patch is None:
            self._patch = difference(self._request.object, self.after)
        return self._patch

    def now(self) -> Any:
        """The current object."""
        return self._request.object if self.after is None else self.after

    def preview(self, change: Change, member: Member) -> Generator[None, None, AppliedChange | Failure]:
        """The object after this policy's change, without committing it. Yields while it works on a large change."""
        scope = Scope(
            visibility=member.inputs.object,
            writes=member.writes,
            sub_resource=self._request.sub_resource,
            limits=self._limits,
            steps=Steps(min(STEPS, max(_HEAVY, self._steps))),
            limits_hit=self.limits_hit,
        )
        try:
            before = self.now()
        except UnreadError as error:
            return Failure(reason=error.reason, message=str(error))
        given = scope.steps.left
        applied = yield from apply_change(before, change, scope)
        self._steps -= given - scope.steps.left
        if scope.steps.exhausted:
            self.limits_hit.append(DIFFERENCE_STEPS)
        return applied

    def overwritten(self, operations: tuple[Operation, ...], author: int) -> tuple[Overwrite, ...]:
        """The fields that other policies changed and that these operations of ``author`` would write again."""
        return self._ownership().overwritten(operations, author=author) if self.changed else ()

    def commit(self, applied: AppliedChange, *, author: int, order: int) -> None:
        """Apply a change. ``author`` is the policy's index in the plan, ``order`` the turn's index among all turns."""
        self._unrecorded.append((author, order, applied))
        self.changed = True
        self._fields = None
        self._large |= applied.large
        if self.after is None:
            # The object was the original one, so this change is the whole difference.
            self.after, self._patch = applied.after, applied.operations
        elif equal(self._request.object, applied.after):
            self.after, self._patch = None, ()
        else:
            self.after, self._patch = applied.after, None

    def conclude(self) -> Generator[None, None, None]:
        """Compute what a decision needs of the changes. Yields after each part, if the changes were large."""
        if not self._large or self.after is None:
            return
        if self._patch is None:
            _ = self.patch
            yield
        yield from self._recording()
        if self._fields is None:
            self.fields()
            yield

    def fields(self) -> tuple[ChangedField, ...]:
        """The fields that differ from the original object, and the turns that wrote them."""
        if self._fields is None:
            self._fields = () if self.after is None else self._ownership().changes(self.after)
        return self._fields

    def _ownership(self) -> FieldOwnership:
        """Which policy wrote which field; computed when needed, because most reviews have at most one change."""
        for _ in self._recording():
            pass
        return self._field_ownership or FieldOwnership(self._request.object)

    def _recording(self) -> Generator[None, None, None]:
        if self._field_ownership is None:
            self._field_ownership = FieldOwnership(self._request.object)
        while self._unrecorded:
            author, order, applied = self._unrecorded.pop(0)
            self._field_ownership.record(author, order, applied.operations, applied.after)
            yield


class Scope(Struct, frozen=True, kw_only=True):
    """The bounds of a change: the part of the object in the policy's inputs (None: all), what it may write, and how
    much work it may cause; ``limits_hit`` gets the limits that it reaches.
    """

    visibility: PointerSet | None
    writes: Writes
    sub_resource: str
    limits: PatchLimits
    steps: Steps
    limits_hit: list[str] = []


def apply_change(before: Any, change: Change, scope: Scope) -> Generator[None, None, AppliedChange | Failure]:
    """Apply ``change`` to the object ``before``. Yields while it works on a large change.

    Returns:
        The object after the change (``before`` itself if nothing changed) and the difference; or a failure
        ``INVALID_PATCH`` or ``WRITE_SCOPE``.
    """
    if before is None:
        # "attempted to modify the object, which is not supported for this operation"
        if b"".join(change.content.split()) in _NO_CHANGE[change.kind]:
            return AppliedChange(after=None, operations=())
        return _invalid("the request has no object to change (it is a DELETE); answer allow without a change")
    if len(change.content) > scope.limits.object_bytes:
        scope.limits_hit.append(PATCH_WORK)
        return _invalid(
            f"the {change.kind} has {len(change.content)} bytes, and an object may have {scope.limits.object_bytes}; "
            "answer with a JSON Patch of what differs"
        )
    try:
        large = len(change.content) > _LARGE
        if large:
            yield from count(change.content, _NAMES[change.kind], scope.limits)
            if change.kind is ChangeKind.KUBERNETES_PATCH:
                check_texts(change.content, scope.limits)
                yield
        after = _apply(before, change, scope, is_counted=large)
        if large:
            yield
        return (yield from _checked(before, after, change, scope))
    except ScopeError as error:
        return _outside(str(error))
    except PatchError as error:
        if isinstance(error, PatchLimitError):
            scope.limits_hit.append(PATCH_WORK)
        return _invalid(str(error))


def _checked(before: Any, after: Any, change: Change, scope: Scope) -> Generator[None, None, AppliedChange | Failure]:
    if not isinstance(after, dict):
        return _invalid(f"the {change.kind} leaves a {type(after).__name__} where the object was")
    if (fault := object_fault(before, after)) is not None:
        return _invalid(fault)
    given = scope.steps.left
    operations = difference(before, after, scope.steps)
    large = len(change.content) > _LARGE or given - scope.steps.left > _HEAVY
    if large:
        yield
        size = len(_encode(after))
        if size > scope.limits.object_bytes:
            scope.limits_hit.append(PATCH_WORK)
            return _invalid(f"the object may have {scope.limits.object_bytes} bytes, and with the change has {size}")
    outside = _beyond_writes(before, after, operations, change, scope)
    if outside is not None:
        return _outside(outside)
    if large:
        yield
    if not operations:
        return AppliedChange(after=before, operations=())
    return AppliedChange(after=after, operations=operations, large=large)


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
    if not operations:
        return None
    return out_of_scope(before, after, operations, scope.writes, scope.sub_resource)


def _apply(before: Any, change: Change, scope: Scope, *, is_counted: bool) -> Any:
    content, limits, visibility = change.content, scope.limits, scope.visibility
    match change.kind:
        case ChangeKind.MERGE_PATCH:
            return apply_merge_patch(before, content, limits=limits, visibility=visibility, is_counted=is_counted)
        case ChangeKind.OBJECT:
            return apply_object(before, content, limits=limits, visibility=visibility, is_counted=is_counted)
        case kind:
            dialect = _DIALECTS[kind]
            return apply_json_patch(
                before, content, limits=limits, dialect=dialect, visibility=visibility, is_counted=is_counted
            )


def _invalid(message: str) -> Failure:
    return Failure(reason=Reason.INVALID_PATCH, message=message)


def _outside(message: str) -> Failure:
    return Failure(reason=Reason.WRITE_SCOPE, message=message)
