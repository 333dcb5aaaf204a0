"""Which resources are the same objects in another version or group: k8s.io/apimachinery's EquivalentResourceRegistry.

Resources are registered one after another, each with the kind of its objects, subresources on their own ("main
resources are stored with subresource empty"). Those of one group and resource in several versions are equivalent;
across groups, those that share an identity (deployments of apps and of extensions once did). Order of registration is
the order in which they are tried.

The API server's own table is in its memory. Here it is a value: from a test's case, from discovery in a cluster, or
empty if it is not known.
"""

from collections.abc import Iterable, Mapping
from typing import Final

from msgspec import Struct

from gateway.review.request import GroupVersionKind, GroupVersionResource

GroupResource = tuple[str, str]
"""Group and resource."""


class ServedResource(Struct, frozen=True, kw_only=True):
    """One registration: a resource, or a subresource of it, and the kind of its objects (None: not known)."""

    resource: GroupVersionResource
    kind: GroupVersionKind | None
    sub_resource: str = ""


class Equivalents:
    """The table. ``served`` is in order of registration; ``identities`` gives the same name to equivalent resources of
    different groups.
    """

    __slots__ = ("_families", "_identities", "_known")

    def __init__(
        self, *, served: Iterable[ServedResource] = (), identities: Mapping[GroupResource, str] | None = None
    ) -> None:
        self._identities = identities or {}
        self._known: set[GroupResource] = set()
        self._families: dict[tuple[str | GroupResource, str], list[ServedResource]] = {}
        for each in served:
            self._known.add(_group_resource(each.resource))
            self._families.setdefault((self._identity(each.resource), each.sub_resource), []).append(each)

    def knows(self, resource: GroupVersionResource) -> bool:
        """Whether the table has this group's resource in any version: then other versions of it are not served."""
        return _group_resource(resource) in self._known

    def of(self, resource: GroupVersionResource, sub_resource: str) -> tuple[ServedResource, ...]:
        """The equivalents of ``resource`` and its subresource, in order of registration, without ``resource`` itself.

        "exclude attr.GetResource(), which we already checked"
        """
        if not self.knows(resource):
            return ()
        family = self._families.get((self._identity(resource), sub_resource), ())
        return tuple(each for each in family if each.resource != resource)

    def _identity(self, resource: GroupVersionResource) -> str | GroupResource:
        # Without a name of its own, "GroupResource#String is used as the identity".
        return self._identities.get(_group_resource(resource)) or _group_resource(resource)


def _group_resource(resource: GroupVersionResource) -> GroupResource:
    return resource.group, resource.resource


EMPTY: Final = Equivalents()
"""No resource is known to be equivalent to another."""
