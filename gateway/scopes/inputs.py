"""Inputs: which parts of the AdmissionRequest a policy is shown.

``inputs`` in the configuration is the grant. What the worker claims can only narrow it. Of the top-level members:

| member | without ``inputs`` | with |
| --- | --- | --- |
| ``uid`` | never | never |
| ``kind``, ``resource``, ``subResource``, ``operation``, ``dryRun`` | all of it | all of it |
| ``namespaceObject``, which is no member of the request | nothing | what is declared |
| every other one, unknown ones included | all of it | what is declared |
"""

from collections.abc import Mapping
from functools import cached_property
from typing import ClassVar, Final

from msgspec import Struct

from gateway.scopes.pointer import Pointer, format_pointer
from gateway.scopes.pointer_set import ANY, PointerSet

UID: Final = "uid"
"""The member that no policy is shown: "UID is an identifier for the individual request/response", so no verdict may
depend on it."""

ALWAYS: Final = frozenset({"kind", "resource", "subResource", "operation", "dryRun"})
"""The members that each policy is shown: the resource and the operation."""

NAMESPACE: Final = "namespaceObject"
"""What ValidatingAdmissionPolicy calls "The namespace object that the incoming object belongs to"."""

OBJECT: Final = "object"

WHOLE: Final = PointerSet([()])
"""All of a value."""


class Inputs(Struct, frozen=True, kw_only=True, dict=True):
    """``places`` over the AdmissionRequest; None: every member that it has, but ``uid``."""

    places: PointerSet | None = None

    EVERYTHING: ClassVar["Inputs"]
    """What a policy without ``inputs`` is shown."""

    @cached_property
    def members(self) -> Mapping[str, PointerSet | None]:
        """What is shown of the top-level members that have a rule of their own, by name; ``others``: of each other one.

        Made once for a configuration, and looked up for each member of each request.
        """
        own: dict[str, PointerSet | None] = {UID: None, **dict.fromkeys(ALWAYS, WHOLE)}
        if self.places is None:
            return {NAMESPACE: None, **own}
        return {**{name: self.places.below(name) for name in self.places.named}, **own}

    @cached_property
    def others(self) -> PointerSet | None:
        """What is shown of every member that is not in ``members``."""
        return WHOLE if self.places is None else self.places.every

    def shown(self, member: str) -> PointerSet | None:
        """What is shown of a top-level member, as places over its value; None: nothing."""
        return self.members.get(member, self.others)

    @cached_property
    def object(self) -> PointerSet | None:
        """What is shown of ``object``, as places over it, empty if nothing; None: all of it."""
        shown = self.shown(OBJECT)
        if shown is None:
            return PointerSet()
        return None if shown.whole else shown

    @cached_property
    def needs_namespace(self) -> bool:
        """Whether anything of ``namespaceObject`` is shown: then the namespace must be looked up."""
        return self.shown(NAMESPACE) is not None

    @cached_property
    def key(self) -> tuple[Pointer, ...] | None:
        """What equal inputs have in common: the places, None for everything."""
        return None if self.places is None else self.places.pointers

    @cached_property
    def pointers(self) -> tuple[str, ...]:
        """The places as JSON Pointers, sorted; empty where nothing is shown, and where everything is."""
        return () if self.places is None else tuple(format_pointer(pointer) for pointer in self.places.pointers)

    def beyond(self, claim: "Inputs") -> tuple[str, ...]:
        """The claimed places that are not granted, as JSON Pointers; ``everything`` if that is what is claimed."""
        if claim.places is None:
            return () if self.places is None or self.places.covers((ANY,)) else ("everything",)
        return tuple(format_pointer(each) for each in claim.places.pointers if not self._grants(each))

    def _grants(self, pointer: Pointer) -> bool:
        if not pointer or pointer[0] == ANY:
            # That is the Namespace too, which "everything" is not, and the uid has no place in a claim.
            return self.places is not None and self.places.covers(pointer)
        shown = self.shown(pointer[0])
        return shown is not None and shown.covers(pointer[1:])


Inputs.EVERYTHING = Inputs()
