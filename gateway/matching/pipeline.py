"""Does this policy judge this request, on the object as it is now? Yes, no, cannot tell, or a fact is missing.

kube-apiserver asks namespaceSelector, objectSelector, rules, in that order, and reports a namespace that it cannot
find only if the rules match. Asking in the order of cost instead (rules, objectSelector, namespaceSelector) gives the
same outcome, and looks up a namespace only for a policy that is otherwise concerned.

matchPolicy decides which resource the rules are held against:

* Equivalent: the resource delivered. If all but the version matches, the policy is meant, but the object comes in a
  version that it does not know: ``WRONG_VERSION``, never "not matched", since that would be a way around it.
* Exact: the resource of the client's own request. If the object was converted on its way, the policy would be shown
  something else than it asked for: ``WRONG_VERSION`` as well.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from gateway.matching.rules import is_namespace, matches, matches_any_version
from gateway.matching.selectors import Labels, object_labels, object_selected, selects
from gateway.policies import MatchPolicy, Policy
from gateway.reasons import Reason
from gateway.review import GroupVersionResource, Request

NEVER_SENT: Final = frozenset(
    {
        "validatingwebhookconfigurations",
        "mutatingwebhookconfigurations",
        "validatingadmissionpolicies",
        "validatingadmissionpolicybindings",
        "mutatingadmissionpolicies",
        "mutatingadmissionpolicybindings",
    }
)
"""Resources of admissionregistration.k8s.io that kube-apiserver sends to no webhook, so that a bad one can be
repaired."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Matched:
    """The policy judges this request."""


@dataclass(frozen=True, kw_only=True, slots=True)
class NotMatched:
    """The policy has nothing to do with this request; ``why`` names the field that says so."""

    why: str


@dataclass(frozen=True, kw_only=True, slots=True)
class NeedsNamespace:
    """It depends on the labels of this namespace."""

    namespace: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Undecidable:
    """The policy is meant, or may be, but cannot judge: a failure under its failurePolicy."""

    reason: Reason
    message: str


Matching = Matched | NotMatched | NeedsNamespace | Undecidable

_MATCHED: Final = Matched()
_RULES: Final = NotMatched(why="rules")
_OBJECT: Final = NotMatched(why="objectSelector")
_NAMESPACE: Final = NotMatched(why="namespaceSelector")
_EXCLUDED: Final = NotMatched(why="kind never sent to webhooks")


def match(
    policy: Policy, request: Request, current: Callable[[], Any], namespaces: Mapping[str, Labels | None]
) -> Matching:
    """Decide whether ``policy`` judges ``request``.

    Args:
        policy: as configured.
        request: as it came.
        current: gives the object as the policies before this one left it; called only if a selector needs it.
        namespaces: the labels of the namespaces looked up so far; None for one that does not exist.
    """
    if request.resource.resource in NEVER_SENT and request.resource.group == "admissionregistration.k8s.io":
        return _EXCLUDED
    by_rules = _by_rules(policy, request)
    if by_rules is _RULES:
        return _RULES
    if policy.object_selector.requirements and not object_selected(
        policy.object_selector, current(), request.old_object
    ):
        return _OBJECT
    by_namespace = _by_namespace(policy, request, current, namespaces)
    # A wrong version is a failure only of a policy that would otherwise judge.
    return by_rules if by_namespace is _MATCHED else by_namespace


def _by_rules(policy: Policy, request: Request) -> Matching:
    exact = policy.match_policy is MatchPolicy.EXACT
    resource = request.request_resource if exact else request.resource
    sub_resource = request.request_sub_resource if exact else request.sub_resource
    namespaced = bool(request.namespace) and not is_namespace(resource)
    for rule in policy.rules:
        if matches(rule, request.operation, resource, sub_resource, namespaced=namespaced):
            if exact and resource != request.resource:
                return _wrong_version(policy, request.resource, "the API server converted the request to")
            return _MATCHED
    if not exact:
        for rule in policy.rules:
            if matches_any_version(rule, request.operation, resource, sub_resource, namespaced=namespaced):
                return _wrong_version(policy, resource, "the request is about")
    return _RULES


def _wrong_version(policy: Policy, resource: GroupVersionResource, what: str) -> Undecidable:
    group_version = f"{resource.group}/{resource.version}" if resource.group else resource.version
    return Undecidable(
        reason=Reason.WRONG_VERSION,
        message=(
            f"{what} {resource.resource} in {group_version}, which the rules of policy {policy.name} do not name; "
            "add that version to its rules, or give it an entry of its own"
        ),
    )


def _by_namespace(
    policy: Policy, request: Request, current: Callable[[], Any], namespaces: Mapping[str, Labels | None]
) -> Matching:
    about_namespaces = request.resource.resource == "namespaces"
    # "If the request is about a cluster scoped resource, and it is not a namespace, it is never exempted from
    # admission webhook."
    if not policy.namespace_selector.requirements or (not request.namespace and not about_namespaces):
        return _MATCHED
    if about_namespaces and not request.sub_resource and request.operation in {"CREATE", "UPDATE"}:
        # "If the request itself is creating or updating a namespace, then get the labels from attr.Object"
        labels = object_labels(current()) or {}
    else:
        name = request.namespace or request.name
        if name not in namespaces:
            return NeedsNamespace(namespace=name)
        found = namespaces[name]
        if found is None:
            return Undecidable(
                reason=Reason.NAMESPACE_UNKNOWN,
                message=(
                    f"the namespaceSelector of policy {policy.name} needs the labels of namespace {name!r}, which is "
                    "unknown here; add a Namespace document for it"
                ),
            )
        labels = found
    return _MATCHED if selects(policy.namespace_selector, labels) else _NAMESPACE
