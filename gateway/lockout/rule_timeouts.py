"""How long all webhooks of one request may take together, for the requests that the gateway's rules name.

kube-apiserver calls mutating webhooks one after another, and a second time under IfNeeded if another one has changed
the object; validating ones in parallel. It ends the request after ``REQUEST_SECONDS``, also if all of them fail open.
Selectors and conditions are left aside: this is the most that a request of the kind can take.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import product

from gateway.lockout.configurations import Webhook
from gateway.lockout.findings import Code, Finding, Remedy, Severity, listed, place
from gateway.lockout.probes import REQUEST_SECONDS
from gateway.matching.rules import matches_any_version
from gateway.policies.model import ANY, Phase, Policy, ReinvocationPolicy
from gateway.review.request import GroupVersionResource

_OPERATIONS = ("CREATE", "UPDATE", "DELETE")

_Combination = tuple[str, str, str]
"""Operation, group, resource with its subresource."""


def worst_seconds(policies: Sequence[Policy]) -> float:
    """The longest that kube-apiserver waits for these webhooks, all of one request."""
    mutating = [policy for policy in policies if policy.phase is Phase.MUTATING]
    validating = [policy.timeout for policy in policies if policy.phase is Phase.VALIDATING]
    again = len(mutating) > 1
    return sum(
        policy.timeout * (2 if again and policy.reinvocation_policy is ReinvocationPolicy.IF_NEEDED else 1)
        for policy in mutating
    ) + max(validating, default=0.0)


def slow_rules(webhooks: Sequence[Webhook]) -> Iterator[Finding]:
    """A warning about the slowest request, if it may take longer than kube-apiserver gives it."""
    combinations = dict.fromkeys(each for webhook in webhooks if webhook.own for each in _combinations(webhook.policy))
    slowest: tuple[float, _Combination, list[Webhook]] | None = None
    slow = 0
    for each in combinations:
        called = [webhook for webhook in webhooks if _matches(webhook.policy, each)]
        seconds = worst_seconds([webhook.policy for webhook in called])
        if seconds > REQUEST_SECONDS:
            slow += 1
            slowest = max(slowest or (seconds, each, called), (seconds, each, called), key=lambda found: found[0])
    if slowest is None:
        return
    seconds, (operation, group, resource), called = slowest
    more = f", and so may {slow - 1} more kinds of request" if slow > 1 else ""
    yield Finding(
        severity=Severity.WARN,
        code=Code.SLOW,
        message=f"{operation} {resource}{f'.{group}' if group else ''} may take {seconds:g} s by the timeoutSeconds of "
        f"{listed([place(webhook) for webhook in called])}{more}; kube-apiserver ends a request after "
        f"{REQUEST_SECONDS:g} s, even if all of them fail open",
        remedy=Remedy(
            text="shorten their timeoutSeconds, or let more policies share an entry (check says what splits them)"
        ),
    )


def _combinations(policy: Policy) -> Iterator[_Combination]:
    """What the rules name; a wildcard is represented by what every cluster has."""
    for rule in policy.rules:
        operations = _OPERATIONS if ANY in rule.operations else rule.operations
        groups = [""] if ANY in rule.api_groups else rule.api_groups
        yield from product(operations, groups, _resources(rule.resources))


def _resources(texts: Iterable[str]) -> Iterator[str]:
    for text in texts:
        resource, _, sub = text.partition("/")
        named = "pods" if resource == ANY else resource
        yield f"{named}/{sub}" if sub and sub != ANY else named


def _matches(policy: Policy, combination: _Combination) -> bool:
    operation, group, text = combination
    name, _, sub = text.partition("/")
    resource = GroupVersionResource(group=group, version="v1", resource=name)
    return any(
        matches_any_version(rule, operation, resource, sub, namespaced=namespaced)
        for rule in policy.rules
        for namespaced in (True, False)
    )
