"""Whether a policy judges a request with the current object: yes, no, undecidable, or a fact is missing.

kube-apiserver checks namespaceSelector, objectSelector and rules, in this order, and reports a namespace that it cannot
find only if the others match. Checking in the order of cost (rules, objectSelector, namespaceSelector) has the same
outcome, and needs a namespace lookup only for a policy that otherwise matches. The rules come first, for all policies
together (``index``). matchConditions come last, and only for an object in the version that the policy judges: "only
after all of that, on the object converted".
"""

from collections.abc import Callable
from typing import Any, Final

from msgspec import Struct

from gateway.cel.authorization import Authorization, AuthorizationCheck
from gateway.matching.conditions import FINISHED_AT_ONCE, Evaluations, by_conditions
from gateway.matching.outcomes import MATCHED, Matching, NeedsNamespace, NotMatched, Ruled, Undecidable, Unknown
from gateway.matching.selectors import Labels, object_labels, object_selected, selects
from gateway.matching.status_messages import not_found
from gateway.policies.metadata import NAME_LABEL, selects_by_name
from gateway.policies.model import Policy
from gateway.reasons import Reason
from gateway.review.request import Request


class Facts(Struct, frozen=True, kw_only=True):
    """The results of lookups so far. If one is missing, matching returns the need; call it again with the result.

    ``namespaces``: labels by name, None for a namespace that does not exist, an Unknown for one that could not be
    looked up. ``authorizations``: the results of ``authorizer`` checks. ``request``: the variable of this name, once
    an expression has named it. ``evaluations``: those of the conditions.
    """

    namespaces: dict[str, Labels | Unknown | None] = {}
    authorizations: dict[AuthorizationCheck, Authorization | Unknown] = {}
    request: dict[str, Any] = {}
    evaluations: Evaluations = FINISHED_AT_ONCE


_OBJECT: Final = NotMatched(why="objectSelector")
_NAMESPACE: Final = NotMatched(why="namespaceSelector")


def match(policy: Policy, ruled: Ruled, request: Request, current: Callable[[], Any], facts: Facts) -> Matching:
    """Decide whether ``policy``, which has a rule about ``request``, judges it.

    Args:
        policy: as configured.
        ruled: the result of its rules (``RuleIndex``).
        request: the request of the review.
        current: returns the object after the policies before this one; called only if needed.
        facts: the results of lookups so far.
    """
    wanted = policy.object_selector
    if wanted.requirements and not object_selected(wanted, current(), request.old_object):
        return _OBJECT
    if policy.namespace_selector.requirements:
        selected = _by_namespace(policy, request, current, facts)
        if selected is not MATCHED:
            return selected
    # A wrong version is a failure only of a policy that would otherwise judge.
    if ruled is not MATCHED or not policy.match_conditions:
        return ruled
    return by_conditions(policy, request, current, facts.authorizations, facts.request, facts.evaluations)


def _by_namespace(policy: Policy, request: Request, current: Callable[[], Any], facts: Facts) -> Matching:
    about_namespaces = request.resource.resource == "namespaces"
    # "If the request is about a cluster scoped resource, and it is not a namespace, it is never exempted from
    # admission webhook."
    if not request.namespace and not about_namespaces:
        return MATCHED
    if about_namespaces and not request.sub_resource and request.operation in {"CREATE", "UPDATE"}:
        # "If the request itself is creating or updating a namespace, then get the labels from attr.Object"
        labels = object_labels(current()) or {}
    else:
        # Also for requests about the namespace itself: ``namespace`` is its name there.
        name = request.namespace
        if name and name not in facts.namespaces:
            if not selects_by_name(policy.namespace_selector):
                return NeedsNamespace(namespace=name)
            found: Labels | Unknown | None = {NAME_LABEL: name}
        else:
            found = facts.namespaces.get(name)
        if found is None:
            return _not_found(policy, name)
        if isinstance(found, Unknown):
            return Undecidable(reason=Reason.NAMESPACE_UNKNOWN, message=found.message)
        labels = found
    return MATCHED if selects(policy.namespace_selector, labels) else _NAMESPACE


def _not_found(policy: Policy, name: str) -> Undecidable:
    message, details = not_found("", "namespaces", name)
    return Undecidable(
        reason=Reason.NAMESPACE_UNKNOWN,
        message=message,
        details=details,
        hint=(
            f"the namespaceSelector of policy {policy.name} needs the labels of namespace {name!r}, which is unknown "
            "here; serve with --cluster, or add a Namespace document for it"
        ),
        # An error of matching, not of a call: kube-apiserver refuses with it under Ignore as well.
        ignorable=False,
    )
