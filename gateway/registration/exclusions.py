"""What is never sent to the gateway, whatever the policies' rules are.

=========================  ==================================================================================
excluded                   because
=========================  ==================================================================================
admission-gateway.dev      the gateway's own policies: a wrong one must remain removable
authentication.k8s.io      TokenReviews carry tokens in clear, and a failing webhook for them would stop every
                           login
authorization.k8s.io       SubjectAccessReviews likewise; Kubernetes 1.37 excludes both by itself
the gateway's namespace    its own Pods must come up while it is down
namespaces by choice       such as kube-system
=========================  ==================================================================================

A registered webhook is never sent the kinds of admissionregistration.k8s.io that configure webhooks and policies; one
of a manifest file is. There a rule must name the group to be sent them: for ``*`` they are excluded, so that ``*``
means the same in both, and that nothing which matches everything must be up for a webhook to be removed.

Namespaces are excluded by ``namespaceSelector``. API groups that a rule names are left out of the rule. Where a rule
is ``*``, a matchCondition excepts them, if the rule can match what they hold; API servers before 1.28 have none, and
for them all that can be done is a warning.

An isolated policy may have as many conditions as Kubernetes permits. Then ours goes into its last one, whose meaning
stays: false wins over an error both between conditions and in ``&&``.
"""

from collections.abc import Iterable, Sequence
from typing import Any, Final

from gateway.policies.metadata import NAME_LABEL
from gateway.policies.model import ANY, MatchCondition, Requirement, Rule, Selector

MAX_MATCH_CONDITIONS: Final = 64
"""admissionregistration.k8s.io/v1: "There are a maximum of 64 match conditions allowed." """

EXCLUDED_GROUPS: Final = {
    "admission-gateway.dev": frozenset({"workers", "mutatingpolicyconfigurations", "validatingpolicyconfigurations"}),
    "authentication.k8s.io": frozenset({"tokenreviews", "selfsubjectreviews"}),
    "authorization.k8s.io": frozenset(
        {
            "subjectaccessreviews",
            "localsubjectaccessreviews",
            "selfsubjectaccessreviews",
            "selfsubjectrulesreviews",
        }
    ),
}
"""The excluded API groups, and the resources in them."""

CONFIGURATION_GROUP: Final = "admissionregistration.k8s.io"
_CONFIGURATION_RESOURCES: Final = frozenset(
    {
        "validatingwebhookconfigurations",
        "mutatingwebhookconfigurations",
        "validatingadmissionpolicies",
        "validatingadmissionpolicybindings",
        "mutatingadmissionpolicies",
        "mutatingadmissionpolicybindings",
    }
)
"""rules.IsExemptAdmissionConfigurationResource: what registered webhooks are never sent."""

_CONDITION: Final = "admission-gateway.dev/exclusions"


def groups_within_reach(rules: Iterable[Rule], *, manifest: bool = False) -> list[str]:
    """The excluded groups of which a rule for all groups can match something.

    Args:
        rules: of an entry.
        manifest: the entry is for a manifest file.
    """
    rules = list(rules)
    excluded = dict(EXCLUDED_GROUPS)
    if manifest and not any(CONFIGURATION_GROUP in rule.api_groups for rule in rules):
        excluded[CONFIGURATION_GROUP] = _CONFIGURATION_RESOURCES
    wide = [rule for rule in rules if ANY in rule.api_groups]
    return [group for group, resources in excluded.items() if any(_reaches(rule, resources) for rule in wide)]


def without_namespaces(selector: Selector, namespaces: Sequence[str]) -> Selector:
    """The selector for all that it selected, but in these namespaces."""
    if not namespaces:
        return selector
    excluded = Requirement(key=NAME_LABEL, operator="NotIn", values=tuple(namespaces))
    return Selector(requirements=(*selector.requirements, excluded))


def registered_conditions(own: Sequence[MatchCondition], excluded: Sequence[str]) -> list[dict[str, Any]]:
    """Conditions as they are registered: ``own``, and one that excepts these API groups."""
    conditions = [{"name": each.name, "expression": each.condition.expression} for each in own]
    if not excluded:
        return conditions
    # request.resource is the client's own, before any conversion; its group is there even where it is "".
    words = ", ".join(f"'{group}'" for group in excluded)
    expression = f"!(request.resource.group in [{words}])"
    if len(conditions) >= MAX_MATCH_CONDITIONS:
        # The line break ends a comment that the expression may end with.
        last = conditions[-1]
        return [*conditions[:-1], last | {"expression": f"{expression} && ({last['expression']}\n)"}]
    return [{"name": _unused_name(own), "expression": expression}, *conditions]


def _reaches(rule: Rule, resources: Iterable[str]) -> bool:
    named = {text.partition("/")[0] for text in rule.resources}
    return ANY in named or not named.isdisjoint(resources)


def _unused_name(own: Sequence[MatchCondition]) -> str:
    taken = {each.name for each in own}
    name, number = _CONDITION, 2
    while name in taken:
        name, number = f"{_CONDITION}-{number}", number + 1
    return name
