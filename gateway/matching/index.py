"""An index over the rules: which policies have a rule about a request.

The index is made when the configuration is loaded. A lookup has two steps:

* **Buckets** hold the policies by the API group and resource that their rules name (``r/s``, and ``*`` as in the
  rules). A request is looked up in at most eight of them: its own group or any, its own resource or any, its own
  subresource or any. ``by_rules`` then checks the policies found: operation, version, scope, matchPolicy.
* **Answers** hold the results by everything that they depend on: operation, group, version, resource, subresource,
  scope, and the same of the client's own request if a policy is Exact. A cluster has a few hundred such combinations,
  so nearly every review finds its policies with one lookup. Their number is bounded, because the keys come from
  requests.

The result is that of ``by_rules`` for each policy, without the policies that do not match.
"""

from collections.abc import Hashable, Iterator, Mapping, Sequence
from typing import Final

from gateway.matching.equivalents import EMPTY, Equivalents, in_all_groups
from gateway.matching.outcomes import MATCHED, NotMatched, Ruled
from gateway.matching.rules import ANY
from gateway.matching.versions import by_rules
from gateway.policies.model import MatchPolicy, Policy
from gateway.review.request import GroupVersionResource, Request

Concerned = Mapping[int, Ruled]
"""The indexes of the policies that have a rule about a request, in chain order, each with the result of its rules."""

KEPT: Final = 50_000
"""The size of all answers. Each counts 10, plus the number of its policies, plus 1 for each 100 characters of its key
(that of a Kubernetes resource has 200). At 60 to 100 bytes they take at most 5 MB: 4,000 combinations without a policy,
or 24 with 2,000 policies. A name of a megabyte, which only a client other than kube-apiserver sends, counts 10,000, so
such names take at most 20 MB (4 bytes for a character)."""

_ANSWER: Final = 10
_CHARACTERS: Final = 100

_Bucket = tuple[str, str, str]
"""Group, resource, subresource."""


class EveryPolicy:
    """The index of an entry that the API server has matched: each request concerns all of its ``count`` policies."""

    __slots__ = ("_concerned",)

    def __init__(self, count: int) -> None:
        self._concerned: Concerned = dict.fromkeys(range(count), MATCHED)

    def concerned(self, request: Request) -> Concerned:
        """All policies."""
        del request
        return self._concerned


class RuleIndex:
    """The index over the rules of some policies.

    Args:
        policies: in chain order.
        equivalents: the registered resources, if they are known.
        kept: the size of all answers.
    """

    __slots__ = ("_answers", "_buckets", "_equivalents", "_has_exact", "_kept", "_left", "_policies")

    def __init__(self, policies: Sequence[Policy], equivalents: Equivalents = EMPTY, *, kept: int = KEPT) -> None:
        self._policies = tuple(policies)
        self._equivalents = equivalents
        self._has_exact = any(policy.match_policy is MatchPolicy.EXACT for policy in policies)
        self._buckets: dict[_Bucket, dict[int, None]] = {}
        for place, policy in enumerate(policies):
            for bucket in _named(policy):
                self._buckets.setdefault(bucket, {})[place] = None
        self._kept = self._left = kept
        self._answers: dict[Hashable, Concerned] = {}

    def concerned(self, request: Request) -> Concerned:
        """The indexes of the policies that have a rule about the request, in chain order, each with the rules' result.

        Raises:
            ReviewError: a policy is Exact, and the request's requestResource or requestKind cannot be read.
        """
        key: Hashable = (request.operation, request.resource, request.sub_resource, bool(request.namespace))
        if self._has_exact:
            key = key, request.request_resource, request.request_sub_resource, request.request_kind
        found = self._answers.get(key)
        if found is None:
            found = self._looked_up(request)
            self._keep(key, found)
        return found

    def _looked_up(self, request: Request) -> dict[int, Ruled]:
        places: set[int] = set()
        for resource, sub_resource in self._resources(request):
            for group in (resource.group, ANY):
                for name in (resource.resource, ANY):
                    for sub in (sub_resource, ANY):
                        places.update(self._buckets.get((group, name, sub), ()))
        found: dict[int, Ruled] = {}
        for place in sorted(places):
            ruled = by_rules(self._policies[place], request, self._equivalents)
            if not isinstance(ruled, NotMatched):
                found[place] = ruled
        return found

    def _resources(self, request: Request) -> Iterator[tuple[GroupVersionResource, str]]:
        """The resources that rules are compared with: the delivered one, its equivalents, the client's own."""
        for resource in in_all_groups(request.resource):
            yield resource, request.sub_resource
        for each in self._equivalents.of(request.resource, request.sub_resource):
            yield each.resource, request.sub_resource
        if self._has_exact:
            yield request.request_resource, request.request_sub_resource

    def _keep(self, key: Hashable, found: Concerned) -> None:
        size = _ANSWER + len(found) + len(repr(key)) // _CHARACTERS
        if size > self._kept:
            return
        if size > self._left:
            self._answers.clear()
            self._left = self._kept
        self._left -= size
        self._answers[key] = found


PolicyIndex = RuleIndex | EveryPolicy
"""An index that finds the policies that a request concerns."""


def _named(policy: Policy) -> Iterator[_Bucket]:
    """The buckets that a policy is in."""
    for rule in policy.rules:
        for text in rule.resources:
            resource, _, sub_resource = text.partition("/")
            for group in rule.api_groups:
                yield group, resource, sub_resource
