"""Is the policy about this resource, and in this version? Rules and matchPolicy, as kube-apiserver's ShouldCallHook.

* **Exact**: the rules are held against the resource of the client's own request, and nothing else. If the object was
  converted on its way here, the policy would be shown something else than it asked for: WrongVersion.
* **Equivalent**: against the resource delivered ("a direct match wins"); else "see if the rule matches any of the
  equivalent resources", rules in order, for each the equivalents in order of registration. The first hit decides the
  resource and the kind; the object in hand is not of that kind, and only the API server can convert it: WrongVersion.
* Where no table of equivalents speaks of the resource, the rule is: the same group and resource in a version that the
  rules do not name is WrongVersion too, and never "not matched", since a version would be a way around the policy.
"""

from gateway.gotypes.meta import group_version
from gateway.matching.equivalents import Equivalents
from gateway.matching.outcomes import MATCHED, RULES, Matched, NotMatched, WrongVersion
from gateway.matching.rules import Matcher, is_namespace, matches, matches_any_version
from gateway.policies.model import MatchPolicy, Policy, Rule
from gateway.review.request import GroupVersionKind, GroupVersionResource, Request


def by_rules(policy: Policy, request: Request, equivalents: Equivalents) -> Matched | NotMatched | WrongVersion:
    """Whether a rule of the policy is about the request, and about the object as it was delivered."""
    if policy.match_policy is MatchPolicy.EXACT:
        return _exact(policy, request)
    if _any(policy.rules, request, request.resource, request.sub_resource):
        return MATCHED
    if equivalents.knows(request.resource):
        return _equivalent(policy, request, equivalents)
    if _any(policy.rules, request, request.resource, request.sub_resource, matcher=matches_any_version):
        return _wrong_version(policy, request, request.resource, None)
    return RULES


def _exact(policy: Policy, request: Request) -> Matched | NotMatched | WrongVersion:
    resource = request.request_resource
    if not _any(policy.rules, request, resource, request.request_sub_resource):
        return RULES
    if resource == request.resource:
        return MATCHED
    return _wrong_version(policy, request, resource, request.request_kind)


def _equivalent(policy: Policy, request: Request, equivalents: Equivalents) -> NotMatched | WrongVersion:
    served = equivalents.of(request.resource, request.sub_resource)
    # "honor earlier rules first"
    for rule in policy.rules:
        for each in served:
            if _any((rule,), request, each.resource, request.sub_resource):
                return _wrong_version(policy, request, each.resource, each.kind)
    return RULES


def _any(
    rules: tuple[Rule, ...],
    request: Request,
    resource: GroupVersionResource,
    sub_resource: str,
    *,
    matcher: Matcher = matches,
) -> bool:
    namespaced = bool(request.namespace) and not is_namespace(resource)
    for rule in rules:  # noqa: SIM110 - any() over a generator costs as much again, and this runs for each policy
        if matcher(rule, request.operation, resource, sub_resource, namespaced=namespaced):
            return True
    return False


def _wrong_version(
    policy: Policy, request: Request, resource: GroupVersionResource, kind: GroupVersionKind | None
) -> WrongVersion:
    came = _named(request.resource)
    wanted = "which its rules do not name" if resource == request.resource else f"and is about {_named(resource)}"
    return WrongVersion(
        resource=resource,
        kind=kind,
        message=(
            f"policy {policy.name} was delivered {came}, {wanted}; add that version to its rules, or give it an entry "
            "of its own (isolate: true)"
        ),
    )


def _named(resource: GroupVersionResource) -> str:
    return f"{resource.resource} in {group_version(resource.group, resource.version)}"
