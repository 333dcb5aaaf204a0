"""Writes: which parts of the object a policy may change. ``patching.write_check`` checks a change against them.

* ``writes`` in the configuration: these places and nothing else.
* Without it, for a policy of a gRPC worker or a queue: everything but identity and ownership of the object, and
  what kube-apiserver itself writes, and the status, which belongs to the controller that reports it. (A request for the
  subresource ``status`` is that report.)
* For a native webhook, and without it for a policy whose worker is an existing webhook or a shell-operator hook:
  everything.

What the worker claims can only narrow it.
"""

from typing import ClassVar, Final

from msgspec import Struct
from msgspec.structs import replace

from gateway.scopes.pointer import Pointer, format_pointer
from gateway.scopes.pointer_set import PointerSet

STATUS: Final = "status"
"""The member of the object, and the subresource."""

IDENTITY: Final[tuple[Pointer, ...]] = (
    ("apiVersion",),
    ("kind",),
    ("metadata", "name"),
    ("metadata", "generateName"),
    ("metadata", "namespace"),
    ("metadata", "uid"),
    ("metadata", "resourceVersion"),
    ("metadata", "managedFields"),
    ("metadata", "ownerReferences"),
    ("metadata", "finalizers"),
    ("metadata", "generation"),
    ("metadata", "creationTimestamp"),
    ("metadata", "deletionTimestamp"),
    ("metadata", "deletionGracePeriodSeconds"),
    ("metadata", "selfLink"),
)
"""What no policy changes unless it is granted by name: which object it is, who owns it, what keeps it from being
deleted, and what kube-apiserver writes."""

_PROTECTED: Final = PointerSet(IDENTITY)
_PROTECTED_AND_STATUS: Final = PointerSet([*IDENTITY, (STATUS,)])


class Writes(Struct, frozen=True, kw_only=True):
    """The places of the object that a policy may change (None: all), without those of ``protected``.

    ``granted``: those of the configuration. ``narrowed``: what the worker claims, where it claims less. ``protects``:
    nothing was granted by name, so what a policy changes only on purpose is not.
    """

    granted: PointerSet | None = None
    narrowed: PointerSet | None = None
    protects: bool = False

    EVERYTHING: ClassVar["Writes"]
    """A native webhook's."""
    DEFAULT: ClassVar["Writes"]
    """Those of a policy of ours without ``writes``."""

    def protected(self, subresource: str) -> PointerSet | None:
        """What may not be changed though it is granted; None: nothing."""
        if not self.protects:
            return None
        return _PROTECTED if subresource == STATUS else _PROTECTED_AND_STATUS

    def beyond(self, claim: PointerSet | None) -> tuple[str, ...]:
        """The claimed places (None: everything) that are not granted.

        Where nothing was granted by name, a claim is beyond that only if all of it is protected.
        """
        if claim is None:
            return () if self.granted is None else ("everything",)
        if self.granted is not None:
            return tuple(format_pointer(each) for each in claim.pointers if not self.granted.covers(each))
        if self.protects:
            return tuple(format_pointer(each) for each in claim.pointers if _PROTECTED.covers(each))
        return ()

    def narrowed_to(self, claim: PointerSet | None) -> "Writes":
        """The same, and nothing but what is claimed (None: everything)."""
        return self if claim is None else replace(self, narrowed=claim)


Writes.EVERYTHING = Writes()
Writes.DEFAULT = Writes(protects=True)
