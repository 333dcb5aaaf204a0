"""Which places a policy reads and writes: everything, exactly these, or not said. Three different things in the
contract.

A claim can only narrow what the operator granted. "Not said" is sent whatever was granted; "nothing" is an empty list.
What the gateway would refuse is refused here, where the author sees it.
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
"""As ``inputs`` or ``writes``: every place there is."""

Claim = tuple[str, ...] | Everything | None
"""JSON Pointers, ``EVERYTHING``, or None for what is not said."""


MEMBERS: Final = (
    *("kind", "resource", "subResource", "requestKind", "requestResource", "requestSubResource"),
    *("name", "namespace", "operation", "userInfo", "object", "oldObject", "dryRun", "options"),
    "namespaceObject",
)
"""What an input can begin with: the members of an AdmissionRequest (admission.k8s.io/v1) but ``uid``, and the
Namespace, which the gateway adds for whoever names it."""

KIND: Final = ("apiVersion", "kind")
"""Members of an object that nobody changes: another kind of object is no changed object."""


def inputs_claim(places: Iterable[str] | Everything | None, what: str) -> Claim:
    """An author's claim of what a policy reads, checked.

    Args:
        places: JSON Pointers over the AdmissionRequest (a segment ``*`` is every element or member), ``EVERYTHING`` or
            None.
        what: who claims it, for the error.

    Raises:
        TypeError: one text in place of a list.
        ValueError: something that is no JSON Pointer, or that no AdmissionRequest has, or its ``uid``.
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
    """An author's claim of what a policy changes, checked.

    Args:
        places: JSON Pointers over the object (a segment ``*`` is every element or member), ``EVERYTHING`` or None.
        what: as for ``inputs_claim``.

    Raises:
        TypeError: one text in place of a list.
        ValueError: something that is no JSON Pointer, or what kind of object it is.
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
    """The claim as the contract's message; None where it is not said, which leaves the field unset."""
    if places is None:
        return None
    if isinstance(places, Everything):
        return worker_pb2.Claim(everything=worker_pb2.Claim.Everything())
    return worker_pb2.Claim(pointers=worker_pb2.Claim.Pointers(pointers=places))
