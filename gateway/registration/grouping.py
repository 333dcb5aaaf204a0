"""Grouping: which policies can share a registration entry, and if not, because of what.

Kubernetes calls an entry as a whole: one failurePolicy, one reinvocationPolicy, one matchPolicy, one list of rules. So
its policies agree in these, and in whether they enforce (an entry that enforces nothing is registered with Ignore).

And they name the same groups and versions wherever two of them can match the same request. Kubernetes, of a webhook
whose rules name apps/v1: "a request to apps/v1beta1 or extensions/v1beta1 would be converted to apps/v1 and sent to the
webhook". But a rule that matches directly wins before any conversion: in one entry with a policy on apps/v1beta1, the
policy on apps/v1 would be handed that request as it came. Two policies can match the same request if some operation,
scope, resource and subresource is covered by rules of both; what they name for it are the (group, version) pairs of all
their rules that cover it. A wildcard equals only a wildcard: the versions of a cluster are unknown here. Groups
count as versions do, because the same resource can be served by several (events, and ingresses once).

All members of an entry that cover a request name the same pairs for it, so comparing with the union of their rules is
comparing with each of them.
"""

from collections.abc import Collection, Iterable, Iterator
from typing import Final

from msgspec import Struct

from gateway.gotypes.meta import group_version
from gateway.policies.model import ANY, Mode, Phase, Policy, Rule, Scope

_OPERATIONS: Final = ("CREATE", "UPDATE", "DELETE", "CONNECT")

_Pair = tuple[str, str]


class Difference(Struct, frozen=True, kw_only=True):
    """Why ``policy`` is not in the entry of ``other``: the field, what each of them has there, for which resource.

    ``resource`` is set where the field is ``rules`` (``*``: any that neither names), and ``operation`` with it.
    """

    field: str
    policy: Policy
    other: Policy
    value: str
    other_value: str
    resource: str = ""
    operation: str = ""

    def __str__(self) -> str:
        """One line: the policy, its value, and the other policy with its own."""
        where = f" for {self.operation} of {self.resource}" if self.resource else ""
        return (
            f"{self.policy.qualified_name}: {self.field}: {self.value}{where}, where {self.other.qualified_name} has "
            f"{self.other_value}"
        )


class _Question(Struct, frozen=True):
    """What rules are compared for: one operation, scope, resource and subresource. ``*`` is one that no rule names."""

    operation: str
    namespaced: bool
    resource: str
    sub_resource: str


class RulesReading:
    """What a policy's rules name for each question that they cover, worked out once for all groups that it may join.

    ``questions`` is None where the rules have wildcards for resources: then it depends on what the others name.
    """

    __slots__ = ("questions", "rules")

    def __init__(self, rules: tuple[Rule, ...]) -> None:
        self.rules = rules
        self.questions: list[tuple[_Question, frozenset[_Pair]]] | None = None
        resources = dict.fromkeys(pair for rule in rules for pair in _resources(rule))
        if not any(ANY in pair for pair in resources):
            called = (
                _Question(operation, namespaced, *pair)
                for pair in resources
                for operation in _OPERATIONS
                for namespaced in (True, False)
            )
            self.questions = [(question, named) for question in called if (named := _named(rules, question))]


class EntryGroup:
    """The policies of an entry in the making: who may join them."""

    def __init__(self, first: Policy) -> None:
        self.policies: list[Policy] = []
        self._readings: set[tuple[Rule, ...]] = set()
        self._rules: dict[str, dict[Rule, Policy]] = {}
        self._named: dict[_Question, frozenset[_Pair]] = {}
        self.add(first)

    def add(self, policy: Policy) -> None:
        """Add a policy for which ``difference`` is None."""
        self.policies.append(policy)
        if policy.rules in self._readings:
            return
        self._readings.add(policy.rules)
        self._named.clear()
        for rule in policy.rules:
            for resource, _ in _resources(rule):
                self._rules.setdefault(resource, {}).setdefault(rule, policy)

    def difference(self, policy: Policy) -> Difference | None:
        """Why the policy cannot join, or None if it can."""
        other = self.policies[-1]
        for field, value, other_value in zip(_FIELDS, agreed_values(policy), agreed_values(other), strict=True):
            if value != other_value:
                return Difference(field=field, policy=policy, other=other, value=value, other_value=other_value)
        # Equal rules name equal things; with thousands of policies, most are equal to some.
        return None if policy.rules in self._readings else self._clash(policy)

    def takes(self, policy: Policy, reading: RulesReading) -> bool:
        """Whether a policy can join that agrees in all but the rules: as ``difference``, but faster."""
        if policy.rules in self._readings:
            return True
        if reading.questions is None:
            return self._clash(policy) is None
        for question, mine in reading.questions:
            named = self._named.get(question)
            if named is None:
                named = self._named[question] = _named(self._meeting(question.resource), question)
            if named and named != mine:
                return False
        return True

    def _meeting(self, resource: str) -> dict[Rule, Policy]:
        """The group's rules that may be about a resource, each with a policy that has it."""
        return self._rules.get(resource, {}) | self._rules.get(ANY, {})

    def _clash(self, policy: Policy) -> Difference | None:
        for resource in self._compared_with(policy.rules):
            theirs = self._meeting(resource)
            for question in _questions(resource, policy.rules, theirs):
                mine, named = _named(policy.rules, question), _named(theirs, question)
                if mine and named and mine != named:
                    return Difference(
                        field=RULES,
                        policy=policy,
                        other=next(owner for rule, owner in theirs.items() if _covers(rule, question)),
                        value=_show(mine),
                        other_value=_show(named),
                        resource=f"{resource}/{question.sub_resource}" if question.sub_resource else resource,
                        operation=question.operation,
                    )
        return None

    def _compared_with(self, rules: Iterable[Rule]) -> list[str]:
        """The resources for which these rules and those of the group are to be compared."""
        own = {resource: None for rule in rules for resource, _ in _resources(rule)}
        return list(own | dict.fromkeys(self._rules) if ANY in own else own)


RULES: Final = "rules"
"""The field of a Difference in groups and versions."""

_FIELDS: Final = ("failurePolicy", "reinvocationPolicy", "matchPolicy", "mode")

NEARNESS: Final = (*_FIELDS, RULES)
"""The fields in the order in which they are compared: of two differences, the later is between the nearer policies."""


def agreed_values(policy: Policy) -> tuple[str, ...]:
    """What the policies of an entry have in common besides their rules."""
    reinvocation = policy.reinvocation_policy.value if policy.phase is Phase.MUTATING else ""
    mode = "enforced" if policy.mode is Mode.ENFORCE else "not enforced"
    return policy.failure_policy.value, reinvocation, policy.match_policy.value, mode


def _questions(resource: str, mine: Iterable[Rule], theirs: Iterable[Rule]) -> Iterator[_Question]:
    # A subresource that none of them names is like "*": it is covered by wildcards only, and then "*" is among these.
    for sub in {sub: None for rules in (mine, theirs) for rule in rules for _, sub in _resources(rule)}:
        for operation in _OPERATIONS:
            for namespaced in (True, False):
                yield _Question(operation, namespaced, resource, sub)


def _named(rules: Iterable[Rule], question: _Question) -> frozenset[_Pair]:
    """The (group, version) pairs that the rules name for this; without those that a wildcard among them includes."""
    pairs = {
        (group, version)
        for rule in rules
        if _covers(rule, question)
        for group in rule.api_groups
        for version in rule.api_versions
    }
    return frozenset(pair for pair in pairs if not any(_includes(wider, pair) for wider in pairs if wider != pair))


def _covers(rule: Rule, question: _Question) -> bool:
    return (
        (ANY in rule.operations or question.operation in rule.operations)
        and (rule.scope is Scope.ALL or (rule.scope is Scope.NAMESPACED) == question.namespaced)
        and any(
            resource in {ANY, question.resource} and sub in {ANY, question.sub_resource}
            for resource, sub in _resources(rule)
        )
    )


def _includes(wider: _Pair, pair: _Pair) -> bool:
    return all(mine in {ANY, other} for mine, other in zip(wider, pair, strict=True))


def _resources(rule: Rule) -> Iterator[_Pair]:
    """``r/s`` as (r, s), ``r`` as (r, "")."""
    for text in rule.resources:
        resource, _, sub = text.partition("/")
        yield resource, sub


def _show(pairs: Collection[_Pair]) -> str:
    return ", ".join(group_version(*pair) for pair in sorted(pairs))
