"""Claims: the parts that a policy reads and writes, as everything, JSON Pointers, or unset.

The three are different in the contract. A claim can only narrow the operator's grant: an unset claim gets all of the
grant, an empty list nothing. A claim that the gateway would reject raises here, at the author.
"""

from collections.abc import Iterable
from enum import Enum
from typing import Any, Final

from admission_worker.pointers import checked, tokens
from admission_worker.proto.admission.worker.v1 import worker_pb2


class Everything(Enum):
    """The type of ``EVERYTHING``."""

    EVERYTHING = "everything"


EVERYTHING: Final = Everything.EVERYTHING
"""A value of ``inputs`` or ``writes``: all parts."""

Claim = tuple[str, ...] | Everything | None
"""JSON Pointers, ``EVERYTHING``, or None for unset."""


MEMBERS: Final = (
    *("kind", "resource", "subResource", "requestKind", "requestResource", "requestSubResource"),
    *("name", "namespace", "operation", "userInfo", "object", "oldObject", "dryRun", "options"),
    "namespaceObject",
)
"""The first token of an input: a member of an AdmissionRequest (admission.k8s.io/v1) except ``uid``, or the Namespace,
which the gateway adds for policies that claim it."""

KIND: Final = ("apiVersion", "kind")
"""Members of an object that no policy may change: with another kind it is another object."""


def inputs_claim(places: Iterable[str] | Everything | None, what: str) -> Claim:
    """Check an author's ``inputs``.

    Args:
        places: JSON Pointers over the AdmissionRequest (a segment ``*`` is every element or member), ``EVERYTHING`` or
            None.
        what: the claim's name in an error.

    Raises:
        TypeError: a string instead of a list.
        ValueError: a value is not a JSON Pointer, is not in an AdmissionRequest, or is its ``uid``.
    """
    if places is None or isinstance(places, Everything):
        return places
    pointers = checked(places, what)
    for place in pointers:
        first = tokens(place)[0]
        if first == "uid":
            message = f"{what}: no verdict may depend on '/uid', which is not part of a document"
            raise ValueError(message)
        if first not in MEMBERS:
            message = f"{what}: {place!r} is no place in an AdmissionRequest, which has {', '.join(MEMBERS)}"
            raise ValueError(message)
    return pointers


def writes_claim(places: Iterable[str] | Everything | None, what: str) -> Claim:
    """Check an author's ``writes``.

    Args:
        places: JSON Pointers over the object (a segment ``*`` is every element or member), ``EVERYTHING`` or None.
        what: as for ``inputs_claim``.

    Raises:
        TypeError: a string instead of a list.
        ValueError: a value is not a JSON Pointer, or covers the object's kind.
    """
    if places is None or isinstance(places, Everything):
        return places
    pointers = checked(places, what)
    for place in pointers:
        if tokens(place)[0] in KIND or place == "/*":
            message = f"{what}: {place!r} is or holds the object's kind, which cannot be changed; name other members"
            raise ValueError(message)
    return pointers


def message_of(places: Claim) -> Any:
    """The claim as the contract's message; None leaves the field unset."""
    if places is None:
        return None
    if isinstance(places, Everything):
        return worker_pb2.Claim(everything=worker_pb2.Claim.Everything())
    return worker_pb2.Claim(pointers=worker_pb2.Claim.Pointers(pointers=places))
