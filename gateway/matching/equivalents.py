"""Which resources are the same objects in another version or group: k8s.io/apimachinery's EquivalentResourceRegistry.

Resources are registered one after another, each with the kind of its objects, subresources on their own ("main
resources are stored with subresource empty"). Those of one group and resource in several versions are equivalent;
across groups, those that share an identity, which is where the API server stores them. Order of registration is the
order in which they are tried.

The API server has this table, converts, and calls each entry in a version that its rules name. The gateway cannot
convert. If it gets another version, because the registration does not fit its policies, it must only not take that for
"not matched". For this it needs no table of the cluster:

* **Another version** is equivalent, whichever versions there are (``versions``).
* **Another group** is equivalent if ``SHARED_STORAGE`` has it. That list is compiled into kube-apiserver
  (``AddCohabitatingResources``). Custom resources have a table for each definition, hence no other group.

Discovery is no source for the table. It lists the versions that are *served*, and the API server converts to all
versions of a CustomResourceDefinition: a policy that names one that is not served would be bypassed. And it is read
after a version is added, which would be a bypass until then.
"""

from collections.abc import Iterable, Mapping
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from gateway.review.request import GroupVersionKind, GroupVersionResource

GroupResource = tuple[str, str]
"""Group and resource."""

SHARED_STORAGE: Final[Mapping[str, tuple[str, ...]]] = {
    "events": ("", "events.k8s.io"),
    "ingresses": ("extensions", "networking.k8s.io"),
}
"""The groups that serve the same objects, by resource. (The others of kube-apiserver's list left ``extensions`` with
1.16, the oldest release that the gateway registers with; ingresses left it with 1.22.)"""


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
        """The registered equivalents of ``resource`` and its subresource, in their order, without ``resource`` itself.

        "exclude attr.GetResource(), which we already checked"
        """
        if not self.knows(resource):
            return ()
        family = self._families.get((self._identity(resource), sub_resource), ())
        return tuple(each for each in family if each.resource != resource)

    def _identity(self, resource: GroupVersionResource) -> str | GroupResource:
        # Without a name of its own, "GroupResource#String is used as the identity".
        return self._identities.get(_group_resource(resource)) or _group_resource(resource)


def in_all_groups(resource: GroupVersionResource) -> tuple[GroupVersionResource, ...]:
    """The resource, then the same objects in the other groups that serve them, in the same version."""
    shared = SHARED_STORAGE.get(resource.resource, ())
    others = (group for group in shared if resource.group in shared and group != resource.group)
    return (resource, *(replace(resource, group=group) for group in others))


def _group_resource(resource: GroupVersionResource) -> GroupResource:
    return resource.group, resource.resource


EMPTY: Final = Equivalents()
"""No resource is registered."""
