"""``writes``: which parts of the object a policy may change, "judged on the difference between before and after".

* JSON Pointers over the object, as a JSON Patch has them: ``/metadata/labels``, where an input is
  ``/object/metadata/labels``. A token ``*`` is every element or member.
* Absent: everything but identity and ownership of the object (see scopes/writes.py). ``[]``: nothing.
* ``apiVersion`` and ``kind`` cannot be granted: another kind of object is no changed object, and kube-apiserver takes
  none.
"""

from collections.abc import Mapping
from typing import Final

from gateway.policies import field_errors
from gateway.policies.decoding.field import Field
from gateway.policies.errors import ConfigurationError, Findings
from gateway.policies.fields.pointers import Named, places_of, read_pointers
from gateway.quoting import quoted
from gateway.scopes.pointer import format_pointer
from gateway.scopes.pointer_set import ANY
from gateway.scopes.writes import Writes

_WHOLE_OBJECT: Final = (
    "would be the whole object, its kind included; leave writes out for everything that a policy can be trusted with, "
    "or name members"
)
_NO_KIND: Final = "what kind of object it is cannot be changed; remove it"
_EVERY_MEMBER: Final = "every member of the object includes apiVersion and kind; name the members instead"

_OF_REQUESTS: Final[Mapping[str, str]] = {
    "object": "writes are places in the object itself",
    "oldObject": "the old object cannot be changed, and writes are places in the object itself",
}
"""First tokens that look like an input's. Some kinds do have such members, so they are no errors."""


def read_writes(field: Field, warnings: Findings) -> Writes:
    """The writes that stand here; the default ones if they are absent, none if they cannot be read."""
    named = read_pointers(field, _refused, warnings, example="/metadata/labels")
    if named is None:
        return Writes.DEFAULT
    for each in named:
        if each.pointer[0] in _OF_REQUESTS:
            warnings.append(ConfigurationError(place=each.field.place, message=_looks_like_input(each)))
    return Writes(granted=places_of(named))


def _refused(named: Named) -> str | None:
    pointer = named.pointer
    if not pointer:
        return field_errors.invalid(named.text, _WHOLE_OBJECT)
    if pointer[0] in {"apiVersion", "kind"}:
        return field_errors.invalid(named.text, _NO_KIND)
    return field_errors.invalid(named.text, _EVERY_MEMBER) if pointer == (ANY,) else None


def _looks_like_input(named: Named) -> str:
    first, *rest = named.pointer
    spelling = quoted(format_pointer(rest)) if rest else "its members, such as /metadata/labels"
    return (
        f"{quoted(named.text)} looks like an input: {_OF_REQUESTS[first]}; if that is what is meant, write {spelling}"
    )
