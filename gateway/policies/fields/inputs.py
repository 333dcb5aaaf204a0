"""``inputs``: which parts of the AdmissionRequest a policy is shown. "``inputs`` in the configuration is the grant".

* JSON Pointers over the AdmissionRequest (admission.k8s.io/v1); a token ``*`` is every element or member.
* Absent: every member but ``uid``, unknown ones included. ``[]``: nothing but what is always shown (scopes/inputs.py).
* Members are known by name where the API defines them, so that a misspelt one is an error and not a policy that
  never sees what it judges. ``object``, ``oldObject`` and ``options`` can hold anything.
* ``uid`` is never shown ("no verdict may depend on them"), so neither it nor what would include it can be named.
* Of the namespace, this version knows name and labels.
"""

from collections.abc import Iterable, Mapping
from typing import Final, Optional

from msgspec import Struct, field

from gateway.policies import field_errors
from gateway.policies.decoding.field import Field
from gateway.policies.errors import Findings
from gateway.policies.fields.pointers import Named, places_of, read_pointers
from gateway.policies.suggestions import similar
from gateway.quoting import json_quoted, quoted
from gateway.scopes.inputs import NAMESPACE, UID, Inputs
from gateway.scopes.pointer import Pointer, format_pointer
from gateway.scopes.pointer_set import ANY

_WHOLE_REQUEST: Final = (
    "would be the whole request, its uid included, and no verdict may depend on that; leave inputs out to show "
    "everything else, or name members"
)
_NO_UID: Final = (
    "/uid cannot be shown: every request has its own, and no verdict may depend on it (it travels beside the document, "
    "for logs); remove it"
)


class _Shape(Struct, frozen=True, kw_only=True):
    """What can stand below a place: these ``members``, or any number of ``each``; ``anything``: anything at all."""

    members: Mapping[str, "_Shape"] = field(default_factory=dict)
    each: Optional["_Shape"] = None
    anything: bool = False

    def below(self, token: str) -> Iterable["_Shape"]:
        """What can stand at a member or element of this name; nothing if there is none."""
        if self.anything:
            return (self,)
        if self.each is not None:
            return (self.each,)
        if token == ANY:
            return self.members.values()
        return (self.members[token],) if token in self.members else ()


_VALUE: Final = _Shape()
"""A text, a number or a flag: it has nothing below it."""
_ANYTHING: Final = _Shape(anything=True)


def _values(*names: str) -> _Shape:
    return _Shape(members=dict.fromkeys(names, _VALUE))


_KIND: Final = _values("group", "version", "kind")
_RESOURCE: Final = _values("group", "version", "resource")
_TEXTS: Final = _Shape(each=_VALUE)

_REQUEST: Final = _Shape(
    members={
        "kind": _KIND,
        "resource": _RESOURCE,
        "subResource": _VALUE,
        "requestKind": _KIND,
        "requestResource": _RESOURCE,
        "requestSubResource": _VALUE,
        "name": _VALUE,
        "namespace": _VALUE,
        "operation": _VALUE,
        "userInfo": _Shape(members={"username": _VALUE, "uid": _VALUE, "groups": _TEXTS, "extra": _Shape(each=_TEXTS)}),
        "object": _ANYTHING,
        "oldObject": _ANYTHING,
        "dryRun": _VALUE,
        "options": _ANYTHING,
        # No member of an AdmissionRequest: it stands in the document besides.
        NAMESPACE: _Shape(members={"metadata": _Shape(members={"name": _VALUE, "labels": _TEXTS})}),
    }
)


def read_inputs(field: Field, warnings: Findings) -> Inputs:
    """The inputs that stand here; everything if they are absent, nothing if they cannot be read."""
    named = read_pointers(field, _refused, warnings, example="/object/metadata/labels")
    return Inputs.EVERYTHING if named is None else Inputs(places=places_of(named))


def _refused(named: Named) -> str | None:
    pointer = named.pointer
    if not pointer:
        return field_errors.invalid(named.text, _WHOLE_REQUEST)
    if pointer[0] == UID:
        return field_errors.forbidden(_NO_UID)
    if pointer[0] == ANY:
        return field_errors.invalid(
            named.text, "every member of the request includes its uid; name the members instead"
        )
    detail = _unknown(pointer)
    return None if detail is None else field_errors.invalid(named.text, detail)


def _unknown(pointer: Pointer) -> str | None:
    """Where the pointer leaves what there can be; None if it does not."""
    shapes: list[_Shape] = [_REQUEST]
    for index, token in enumerate(pointer):
        # What ``*`` can stand for has a name in the table, so there are never more than a few.
        found = [below for shape in shapes for below in shape.below(token)]
        if not found:
            return _no_member(pointer, index, {name for shape in shapes for name in shape.members})
        shapes = found
    return None


def _no_member(pointer: Pointer, index: int, known: Iterable[str]) -> str:
    known = set(known)
    names = ", ".join(sorted(known))
    close = similar(pointer[index], known)
    if not index:
        return (
            f"an AdmissionRequest has no member {json_quoted(pointer[0])} (it has {names}); "
            + (f"did you mean {json_quoted('/' + close)}? " if close else "")
            + 'what stands in the object under review begins with "/object"'
        )
    where = quoted(format_pointer(pointer[:index]))
    if not names:
        return f"{where} has no members"
    version = " in this version" if pointer[0] == NAMESPACE else ""
    meant = f"; did you mean {json_quoted(close)}?" if close else ""
    return f"{where} has no member {json_quoted(pointer[index])}{version}; it has {names}{meant}"
