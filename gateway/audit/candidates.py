"""What is to be judged, part by part: all objects of a resource, or those that a log names.

A part yields pages of candidates, each page with the token from which the part goes on after it: that is what a state
file keeps.
"""

from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any, Final

from msgspec import Struct

from gateway.audit.api_reader import PAGE, ApiReader
from gateway.audit.targets import ServedResource, Target, has_rule
from gateway.audit.unjudged_lines import ALL, Unjudged, UnjudgedObject
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
    """A review of a candidate: as which operation, by which policies, of which user (None: the audit's own).

    ``lost``: what is not known of the request (``lost_inputs``).
    """

    operation: str
    policies: tuple[Policy, ...]
    user: Mapping[str, Any] | None = None
    lost: tuple[str, ...] = ()


class Candidate(Struct, frozen=True, kw_only=True):
    """An object to judge. With a ``path`` it is read from there, and not judged if it has another ``uid`` now."""

    obj: Any = None
    served: ServedResource
    reviews: tuple[Review, ...]
    path: str = ""
    uid: str = ""

    async def read(self, reader: ApiReader) -> Any:
        """The object, or (text) why it is not judged. Raises ApiError."""
        if not self.path:
            return self.obj
        obj = await reader.object(self.path)
        if obj is None:
            return GONE
        return REPLACED if self.uid and self.uid != obj["metadata"].get("uid") else obj


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
    """The objects that a log names. They are read one by one, when they are judged.

    ``served`` are all resources by what a request names, ``policies`` those that are audited by CONFIGURATION/NAME;
    ``targets`` those of an audit of everything, for an object that no policy has judged.
    """

    objects: Sequence[UnjudgedObject]
    served: Mapping[GroupVersionResource, ServedResource]
    policies: Mapping[str, Policy]
    targets: Sequence[Target]

    name = "unjudged admissions"

    async def pages(self, reader: ApiReader, token: str) -> AsyncIterator[CandidatePage]:
        """See the module."""
        del reader
        for start in range(int(token or 0), len(self.objects), PAGE):
            candidates: list[Candidate] = []
            skipped: dict[str, int] = {}
            for each in self.objects[start : start + PAGE]:
                found = self._candidates(each)
                if isinstance(found, str):
                    skipped[found] = skipped.get(found, 0) + 1
                else:
                    candidates += found
            end = start + PAGE
            following = str(end) if end < len(self.objects) else ""
            yield CandidatePage(candidates=candidates, token=following, skipped=skipped)

    def _candidates(self, each: UnjudgedObject) -> list[Candidate] | str:
        """The candidates of an object: usually one; or why there are none."""
        resource = GroupVersionResource(group=each.group, version=each.version, resource=each.resource)
        if ALL in each.policies:
            same = {(one.group, one.resource) for one in in_all_groups(resource)}
            chosen = [
                (target.resource, _about(target, each))
                for target in self.targets
                if (target.resource.group, target.resource.name) in same
            ]
        else:
            policies = [self.policies[name] for name in each.policies if name in self.policies]
            served = self.served.get(resource)
            if policies and served is None:
                return NOT_SERVED
            chosen = [] if served is None else [(served, policies)]
        found = [_candidate(each, served, policies) for served, policies in chosen if policies]
        return found or NOT_AUDITED


def _about(target: Target, each: UnjudgedObject) -> list[Policy]:
    """The policies of a target that are about what was done: not those about a CREATE only, if it was an UPDATE."""
    return [
        policy
        for own in target.policies.values()
        for policy in own
        if (how := each.by(policy.qualified_name)) is not None and has_rule(policy, target.resource, how.operation)
    ]


def _candidate(each: UnjudgedObject, served: ServedResource, policies: Sequence[Policy]) -> Candidate:
    """The object, to be judged by each policy as it was not judged by it."""
    reviews: list[tuple[Unjudged, list[Policy]]] = []
    for policy in policies:
        how = each.by(policy.qualified_name)
        assert how is not None  # noqa: S101 - it was chosen by this
        own = next((chosen for same, chosen in reviews if same == how), None)
        if own is None:
            reviews.append((how, [policy]))
        else:
            own.append(policy)
    namespace = each.namespace if served.namespaced else ""
    return Candidate(
        served=served,
        reviews=tuple(
            Review(operation=how.operation, policies=tuple(own), user=how.user, lost=how.lost) for how, own in reviews
        ),
        path=object_path(served.group, served.version, served.name, each.name, namespace),
        uid=each.uid,
    )


AuditPart = ListPart | UnjudgedPart
"""A part of an audit."""
