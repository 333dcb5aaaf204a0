"""Which policy changed which field: for each changed field, its last writer and the writers before it.

``FieldOwnership`` tracks array elements, not indexes, so ``path`` is the field's place in the final object (in the
original object if the field was removed). An element that one policy added and another changed inside makes two
entries; the first has the final value.

Values may be secret. If ``hidden`` is set, logs and reports must show ``digest`` instead of the values: for a Secret,
and for fields that the policy's inputs do not include.
"""

import hashlib
import hmac
from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec
from msgspec import Struct

from gateway.engine.answer_source import Source
from gateway.engine.invocation_record import InvocationRecord
from gateway.engine.object_state import ObjectState
from gateway.patching.difference import Operation
from gateway.patching.field_ownership import ChangedField
from gateway.review.request import Request
from gateway.scopes.pointer import parse_pointer

DIGEST_CHARACTERS: Final = 16
"""The length of a digest: 64 bits. Two of a few thousand values collide with a probability of about 10^-12."""

_encode: Final = msgspec.json.Encoder(order="sorted").encode


class FieldChange(Struct, frozen=True, kw_only=True):
    """One changed field and the policy that changed it.

    ``path`` is a JSON Pointer over the object; ``op`` is add, replace or remove. ``before`` and ``after`` are decoded
    values, ``msgspec.UNSET`` where there was or is none. ``policy`` is the label of the last writer, ``qualified_name``
    its CONFIGURATION/NAME; ``worker`` and ``version`` are those that answered. ``order`` is the turn's index among the
    decision's ``calls``, ``source`` the answer's source. ``earlier`` are the indexes of the turns that wrote the field
    before, in order. ``hidden``: see the module.
    """

    path: str
    op: str
    before: Any
    after: Any
    policy: str
    qualified_name: str
    worker: str
    version: str
    round: int
    order: int
    source: Source
    earlier: tuple[int, ...]
    hidden: bool


def field_changes(
    request: Request, calls: Sequence[InvocationRecord], fields: Sequence[ChangedField]
) -> tuple[FieldChange, ...]:
    """One FieldChange for each of ``fields``; their ``order`` is an index of ``calls``."""
    secret = is_secret(request)
    return tuple(_field_change(calls[each.order], each, secret=secret) for each in fields)


def changed_by(
    calls: Sequence[InvocationRecord], patch: tuple[Operation, ...], object_state: ObjectState
) -> Mapping[str, Sequence[Operation]]:
    """The operations of ``patch`` by the label of the policy that wrote the field last; their values do not count."""
    writers = [record for record in calls if record.changes]
    if len(writers) == 1:
        return {writers[0].label: patch}
    changed: dict[str, list[Operation]] = {}
    for each in object_state.fields():
        changed.setdefault(calls[each.order].label, []).append(Operation(op=each.op, path=each.pointer))
    return changed


def hides(request: Request, calls: Sequence[InvocationRecord], operation: Operation) -> bool:
    """Whether an operation of the change that ``calls`` made must be shown with ``digest`` instead of its value.

    This holds for a Secret, and for an object or array that a policy's inputs do not include whole: the difference may
    match different elements of an array, and replaces a long array whole, hidden parts included. (A scalar value is
    always one that the worker wrote: hidden values never move.)
    """
    if is_secret(request):
        return True
    if type(operation.value) is not dict and type(operation.value) is not list:
        return False
    visibilities = [record.inputs.object for record in calls if record.changes or record.would_change]
    return not all(
        visibility is None or visibility.covers(parse_pointer(operation.path)) for visibility in visibilities
    )


def digest(value: Any, key: bytes) -> str:
    """What is shown instead of a hidden value: the first 16 hexadecimal digits of the HMAC-SHA-256 of its JSON text.

    Equal values have the same digest under the same key, whatever the order of their members. The key prevents a reader
    from guessing values by their digests.
    """
    return hmac.new(key, _encode(value), hashlib.sha256).hexdigest()[:DIGEST_CHARACTERS]


def is_secret(request: Request) -> bool:
    """Whether the request is about a Secret, in any version."""
    return request.kind.group == "" and request.kind.kind == "Secret"


def _field_change(record: InvocationRecord, field: ChangedField, *, secret: bool) -> FieldChange:
    visibility = record.inputs.object
    return FieldChange(
        path=field.pointer,
        op=field.op,
        before=field.before,
        after=field.after,
        policy=record.label,
        qualified_name=record.policy.qualified_name,
        worker=record.policy.worker,
        version=record.version,
        round=record.round,
        order=field.order,
        source=record.source,
        earlier=field.earlier,
        hidden=secret or (visibility is not None and not visibility.covers(parse_pointer(field.pointer))),
    )
