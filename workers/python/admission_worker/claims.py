"""Which places a policy reads and writes: everything, exactly these, or not said. Three different things in the
contract.

A claim can only narrow what the operator granted. "Not said" is sent whatever was granted; "nothing" is an empty list.
"""

from collections.abc import Iterable
from enum import Enum
from typing import Any, Final

from admission_worker.pointers import checked
from admission_worker.proto.admission.worker.v1 import worker_pb2


class Everything(Enum):
    """The type of ``EVERYTHING``."""

    EVERYTHING = "everything"


EVERYTHING: Final = Everything.EVERYTHING
"""As ``inputs`` or ``writes``: every place there is."""

Claim = tuple[str, ...] | Everything | None
"""JSON Pointers, ``EVERYTHING``, or None for what is not said."""


def claim(places: Iterable[str] | Everything | None, what: str) -> Claim:
    """An author's claim, checked.

    Args:
        places: JSON Pointers (a segment ``*`` is every element or member), ``EVERYTHING`` or None.
        what: who claims it, for the error.

    Raises:
        TypeError: one text in place of a list.
        ValueError: something that is no JSON Pointer, or ``/uid``.
    """
    return places if places is None or isinstance(places, Everything) else checked(places, what)


def message_of(places: Claim) -> Any:
    """The claim as the contract's message; None where it is not said, which leaves the field unset."""
    if places is None:
        return None
    if isinstance(places, Everything):
        return worker_pb2.Claim(everything=worker_pb2.Claim.Everything())
    return worker_pb2.Claim(pointers=worker_pb2.Claim.Pointers(pointers=places))
