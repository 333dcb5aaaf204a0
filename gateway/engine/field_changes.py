"""Who changed what: for every field that differs in the end, the policy that wrote it last, and those before it.

It is made of what ``FieldOwnership`` has followed: array elements and not indexes, so ``path`` is where the field is in
the object that goes on (where it was in the one that came, if it is gone). An element that one policy added and another
one changed inside are two entries; the first has the value as it is in the end.

Values may be secret. ``hidden`` says that whoever shows an entry must show ``digest`` in their place: for those of a
Secret, and for those that the policy itself was not shown.
"""

import hashlib
import hmac
from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec
from msgspec import Struct

from gateway.engine.invocation_record import InvocationRecord
from gateway.engine.object_state import ObjectState
from gateway.engine.origin import Source
from gateway.patching.difference import Operation
from gateway.patching.field_ownership import ChangedField
from gateway.review.request import Request
from gateway.scopes.pointer import parse_pointer

DIGEST_CHARACTERS: Final = 16
"""Of a digest: 64 bits. Two of the few thousand values that anybody compares agree by accident once in 10^12 times."""

_encode: Final = msgspec.json.Encoder(order="sorted").encode


class FieldChange(Struct, frozen=True, kw_only=True):
    """One field that changed, and whose change it is.

    ``path`` is a JSON Pointer over the object; ``op`` is add, replace or remove. ``before`` and ``after`` are decoded
    values, ``msgspec.UNSET`` where there was or is none. ``policy`` is the label of the last writer, ``qualified_name``
    its CONFIGURATION/NAME; ``worker`` and ``version`` are who answered. ``order`` is the turn's place among the
    decision's ``calls``, ``source`` where the answer came from. ``earlier`` are the turns that wrote the field before,
    in order. ``hidden``: see above.
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
    """One FieldChange for each of ``fields``, whose turns are places in ``calls``."""
    secret = _is_secret(request)
    return tuple(_field_change(calls[each.order], each, secret=secret) for each in fields)


def changed_by(
    calls: Sequence[InvocationRecord], patch: tuple[Operation, ...], object_state: ObjectState
) -> Mapping[str, Sequence[Operation]]:
    """What of ``patch`` each policy has written last, by its label, as operations without values."""
    writers = [record for record in calls if record.changes]
    if len(writers) == 1:
        return {writers[0].label: patch}
    changed: dict[str, list[Operation]] = {}
    for each in object_state.fields():
        changed.setdefault(calls[each.order].label, []).append(Operation(op=each.op, path=each.pointer))
    return changed


def hides(request: Request, calls: Sequence[InvocationRecord], operation: Operation) -> bool:
    """Whether whoever shows an operation of what ``calls`` changed must show ``digest`` in its value's place.

    So it is for those of a Secret; and for a container at a place of which a policy was not shown all: the difference
    may have taken elements of an array for others, and replaces a long one whole, hidden parts included. (A simple
    value is what the worker wrote: no hidden one ever changes its place.)
    """
    if _is_secret(request):
        return True
    if type(operation.value) is not dict and type(operation.value) is not list:
        return False
    visibilities = [record.inputs.object for record in calls if record.changes or record.would_change]
    return not all(
        visibility is None or visibility.covers(parse_pointer(operation.path)) for visibility in visibilities
    )


def digest(value: Any, key: bytes) -> str:
    """What stands for a hidden value: HMAC-SHA-256 of its JSON text, the first 16 hexadecimal digits.

    Equal values have the same digest under the same key, whatever the order of their members; without the key nobody
    can try out values.
    """
    return hmac.new(key, _encode(value), hashlib.sha256).hexdigest()[:DIGEST_CHARACTERS]


def _is_secret(request: Request) -> bool:
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
