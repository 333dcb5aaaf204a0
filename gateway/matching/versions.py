"""Whether a policy's rules match a resource and its version: rules and matchPolicy, as kube-apiserver's ShouldCallHook.

* **Exact**: the rules are compared only with the resource of the client's own request. If the API server has converted
  the object, the policy would receive another version than its rules name: WrongVersion.
* **Equivalent**: the rules are compared with the delivered resource ("a direct match wins"); else "see if the rule
  matches any of the equivalent resources": the rules in order, for each the equivalents in order of registration. The
  first match gives the resource and the kind. The delivered object is not of that kind, and only the API server can
  convert it: WrongVersion.
* If the table of equivalents does not have the resource, as in the gateway: the same resource in a version that the
  rules do not name is WrongVersion too, in each group that serves it, never "not matched", so that a client cannot
  bypass the policy with another version.
"""

from gateway.gotypes.meta import group_version
from gateway.matching.equivalents import Equivalents, in_all_groups
from gateway.matching.outcomes import MATCHED, RULES, Matched, NotMatched, WrongVersion
from gateway.matching.rules import Matcher, is_namespace, matches, matches_any_version
from gateway.policies.model import MatchPolicy, Policy, Rule
from gateway.review.request import GroupVersionKind, GroupVersionResource, Request


def by_rules(policy: Policy, request: Request, equivalents: Equivalents) -> Matched | NotMatched | WrongVersion:
    """Whether a rule of the policy matches the request, in the version of the delivered object."""
    if policy.match_policy is MatchPolicy.EXACT:
        return _exact(policy, request)
    if _any(policy.rules, request, request.resource, request.sub_resource):
        return MATCHED
    if equivalents.knows(request.resource):
        return _equivalent(policy, request, equivalents)
    for each in in_all_groups(request.resource):
        if _any(policy.rules, request, each, request.sub_resource, matcher=matches_any_version):
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
            f"policy {policy.name} was delivered {came}, {wanted}; add that group and version to its rules, or "
            "give it an entry of its own (isolate: true)"
        ),
    )


def _named(resource: GroupVersionResource) -> str:
    return f"{resource.resource} in {group_version(resource.group, resource.version)}"
