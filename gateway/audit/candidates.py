"""What is to be judged, part by part: all objects of a resource, or those that a log names.

A part yields pages of candidates, each page with the token from which the part goes on after it: that is what a state
file keeps.
"""

from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any, Final

from msgspec import Struct

from gateway.audit.api_reader import PAGE, ApiReader
from gateway.audit.targets import CREATE, UPDATE, ServedResource, Target
from gateway.audit.unjudged_lines import UnjudgedObject
from gateway.cluster.client import collection_path, object_path
from gateway.matching.equivalents import in_all_groups
from gateway.matching.rules import is_namespace
from gateway.policies.model import Policy
from gateway.review.request import GroupVersionResource

GONE: Final = "deleted since"
REPLACED: Final = "deleted since, and created again"
NOT_SERVED: Final = "of a resource that is not served"
NOT_AUDITED: Final = "of no policy that is audited"


class Review(Struct, frozen=True, kw_only=True):
    """A review of a candidate: as which operation, by which policies, of which user (None: the audit's own)."""

    operation: str
    policies: tuple[Policy, ...]
    user: Mapping[str, Any] | None = None


class Candidate(Struct, frozen=True, kw_only=True):
    """An object to judge."""

    obj: Any
    served: ServedResource
    reviews: tuple[Review, ...]


class CandidatePage(Struct, frozen=True, kw_only=True):
    """As ``Page``: candidates, and by reason how many objects are not to be judged."""

    candidates: list[Candidate]
    token: str
    restarted: bool = False
    skipped: Mapping[str, int] = {}


class ListPart(Struct, frozen=True, kw_only=True):
    """All objects of a target, in one namespace, or ("") in all but the excluded ones."""

    target: Target
    namespace: str = ""
    excluded: frozenset[str] = frozenset()

    @property
    def name(self) -> str:
        """What messages and the state file call it."""
        place = f" in {self.namespace}" if self.namespace else ""
        return f"{self.target.resource} {self.target.resource.version}{place}"

    async def pages(self, reader: ApiReader, token: str) -> AsyncIterator[CandidatePage]:
        """See the module. Raises ApiError."""
        served = self.target.resource
        reviews = tuple(Review(operation=name, policies=each) for name, each in self.target.policies.items())
        path = collection_path(served.group, served.version, served.name, self.namespace)
        async for page in reader.pages(path, token):
            candidates = [
                Candidate(obj=obj, served=served, reviews=reviews) for obj in page.items if not self._is_excluded(obj)
            ]
            yield CandidatePage(candidates=candidates, token=page.token, restarted=page.restarted)

    def _is_excluded(self, obj: Any) -> bool:
        metadata = obj["metadata"]
        # As the registered selector on kubernetes.io/metadata.name, which counts for a Namespace too.
        name = metadata["name"] if is_namespace(self.target.resource.resource) else metadata.get("namespace")
        return name in self.excluded


class UnjudgedPart(Struct, frozen=True, kw_only=True):
    """The objects that a log names.

    ``served`` are all resources by what a request names, ``policies`` those that are audited by CONFIGURATION/NAME;
    ``targets`` those of an audit of everything, for an object that no policy has judged.
    """

    objects: Sequence[UnjudgedObject]
    served: Mapping[GroupVersionResource, ServedResource]
    policies: Mapping[str, Policy]
    targets: Sequence[Target]

    name = "unjudged admissions"

    async def pages(self, reader: ApiReader, token: str) -> AsyncIterator[CandidatePage]:
        """See the module. Raises ApiError."""
        for start in range(int(token or 0), len(self.objects), PAGE):
            candidates: list[Candidate] = []
            skipped: dict[str, int] = {}
            for each in self.objects[start : start + PAGE]:
                chosen = self._chosen(each)
                found = [await self._candidate(reader, each, target) for target in chosen] or [NOT_AUDITED]
                candidates += [one for one in found if isinstance(one, Candidate)]
                if isinstance(found[0], str):
                    skipped[found[0]] = skipped.get(found[0], 0) + 1
            end = start + PAGE
            following = str(end) if end < len(self.objects) else ""
            yield CandidatePage(candidates=candidates, token=following, skipped=skipped)

    def _chosen(self, each: UnjudgedObject) -> list[Target | str]:
        """The targets of an object: usually one; or why there are none."""
        resource = GroupVersionResource(group=each.group, version=each.version, resource=each.resource)
        if each.policies is None:
            same = {(one.group, one.resource) for one in in_all_groups(resource)}
            return [one for one in self.targets if (one.resource.group, one.resource.name) in same]
        policies = tuple(self.policies[name] for name in each.policies if name in self.policies)
        served = self.served.get(resource)
        if not policies:
            return []
        if served is None:
            return [NOT_SERVED]
        return [Target(resource=served, policies={UPDATE if each.operation == UPDATE else CREATE: policies})]

    async def _candidate(self, reader: ApiReader, each: UnjudgedObject, target: Target | str) -> Candidate | str:
        """The candidate, or why there is none."""
        if isinstance(target, str):
            return target
        served = target.resource
        namespace = each.namespace if served.namespaced else ""
        obj = await reader.object(object_path(served.group, served.version, served.name, each.name, namespace))
        if obj is None:
            return GONE
        if each.uid and each.uid != obj["metadata"].get("uid"):
            return REPLACED
        reviews = (Review(operation=name, policies=own, user=each.user) for name, own in target.policies.items())
        return Candidate(obj=obj, served=served, reviews=tuple(reviews))


AuditPart = ListPart | UnjudgedPart
"""A part of an audit."""
