"""A MutatingPolicyConfiguration or ValidatingPolicyConfiguration document: a name, and policies in their order.

A mistake in the document itself leaves open who is in the chain, and so refuses the whole source; a mistake within one
entry is that policy's alone. Hence two lists of findings: the document's, and one for each entry.
"""

from collections.abc import Collection, Iterator
from dataclasses import replace
from typing import Final

from gateway.policies import wording
from gateway.policies.fields import Field
from gateway.policies.metadata import read_name
from gateway.policies.model import Phase, Policy
from gateway.policies.names import fully_qualified
from gateway.policies.policy import Seat, Workers, read_policy

_DOCUMENT: Final = ("apiVersion", "kind", "metadata", "policies")


def read_configuration_name(document: Field) -> str | None:
    """The configuration's name, which decides its place in the chain; mistakes around it are reported."""
    document.mapping(_DOCUMENT)
    return read_name(document)


def read_policies(
    policies: Field, phase: Phase, configuration: str, workers: Workers
) -> Iterator[tuple[Policy, Field]]:
    """The policies in their order, each with its entry, whose own findings hold the mistakes in it.

    What is no list of policies at all is reported to the document's findings, and gives none.
    """
    if policies.absent:
        policies.refuse(wording.required("must be a list; write [] if there are no policies"))
    entries = [replace(item, findings=[]) for item in policies.items() or []]
    names = _names(entries)
    for index, (entry, name) in enumerate(zip(entries, names, strict=True)):
        seat = Seat(phase=phase, configuration=configuration, index=index)
        called = name or _stand_in(index, names)
        yield read_policy(entry, seat, name, called, workers), entry


def _names(entries: list[Field]) -> list[str | None]:
    """Each entry's name if it is usable; the second of two that are equal is not."""
    names: dict[str, int] = {}
    for index, entry in enumerate(entries):
        field = entry.get("name")
        name = field.name(fully_qualified) if entry.is_mapping else None
        if name is not None and names.setdefault(name, index) != index:
            field.refuse(wording.duplicate(name))
    owners = {index: name for name, index in names.items()}
    return [owners.get(index) for index in range(len(entries))]


def _stand_in(index: int, names: Collection[str | None]) -> str:
    """A legal name that nobody has, for a policy without one. RFC 2606 keeps ``invalid`` for such things."""
    name = f"policies-{index}.name.invalid"
    while name in names:
        name = "x" + name
    return name
