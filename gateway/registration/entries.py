"""Registration entries: how the policies of a configuration are called by kube-apiserver.

An entry is one webhook in the configuration that registers the gateway, and one path: ``/mutate/ENTRY/REVISION`` or
``/validate/ENTRY/REVISION``. As few as may be, because each mutating one costs the API server more than a millisecond:

* Mutating: a run of policies, consecutive in chain order, that can share an entry (``grouping``). Entries stand in the
  order of their runs, so the API server walks the chain.
* Validating: a set that can, wherever its members stand; order means nothing among them. A policy joins the first set
  that takes it.
* An isolated policy is an entry by itself: its rules, selectors and conditions are registered as they are, and the API
  server judges them. Between two mutating policies it ends the run.

A policy with a fault is in an entry like any other, in its strictest reading; so an error never takes a policy out of
the chain. Only a policy without rules is in none: it matches nothing, and would be a call, or split a run, for nothing.

How long an entry may take. A mutating entry calls its policies one after another, and again if a reinvocation is
needed, hence twice the sum (once where it has one policy, which no later one can invalidate); a validating entry calls
all at once. The API server rounds its remaining time *up* to whole seconds before it sends it, so one second is added.
"""

import hashlib
import math
from collections.abc import Iterable
from functools import cached_property
from typing import Final

import msgspec
from msgspec import Struct

from gateway.policies.model import (
    Configuration,
    FailurePolicy,
    MatchCondition,
    MatchPolicy,
    Mode,
    Phase,
    Policy,
    ReinvocationPolicy,
    Rule,
    SideEffects,
)
from gateway.registration.entry_names import entry_names
from gateway.registration.grouping import NEARNESS, Difference, EntryGroup, RulesReading, agreed_values
from gateway.registration.narrowing import narrowed

MAX_TIMEOUT_SECONDS: Final = 30
"""admissionregistration.k8s.io/v1: "the timeout value must be between 1 and 30 seconds"."""

_ROUNDED_SECONDS: Final = 1
"""kube-apiserver sends ``?timeout=Ns`` rounded up: its true deadline lies up to a second earlier."""

ISOLATE: Final = "isolate"

REVISION_DIGITS: Final = 8
"""32 bits in hexadecimal: of 1,000 revisions of one entry, two are equal once in 8,600 times."""


class Entry(Struct, frozen=True, kw_only=True, dict=True):
    """One call of the API server, and its policies.

    ``name`` is unique over both phases, a legal webhook name and a legal segment of a path. ``policies`` are in chain
    order, at least one. ``split`` is why the entry is separate from an earlier one (None: it is the first of its
    kind, or isolated).
    """

    name: str
    phase: Phase
    policies: tuple[Policy, ...]
    isolated: bool = False
    split: Difference | None = None

    @property
    def path(self) -> str:
        """Where the gateway serves it, and the API server is to call it."""
        return f"/{'mutate' if self.phase is Phase.MUTATING else 'validate'}/{self.name}/{self.revision}"

    @cached_property
    def revision(self) -> str:
        """Which policies it has: a digest of their names and of what the API server alone matches for them.

        Entries that differ in it are different for the API server and for the gateway: when one of the same name loses
        a policy to another entry, an API server with the old registration still calls the old path for both.
        """
        about: list[object] = [*sorted(policy.qualified_name for policy in self.policies)]
        conditions = [(each.name, each.condition.expression) for each in self.match_conditions]
        if not self.isolated:
            about += conditions
        else:
            (policy,) = self.policies
            about += [policy.rules, policy.namespace_selector, policy.object_selector, conditions, policy.match_policy]
        return hashlib.sha256(msgspec.json.encode((self.isolated, about))).hexdigest()[:REVISION_DIGITS]

    @property
    def rules(self) -> tuple[Rule, ...]:
        """The narrowest rules that cover its policies; an isolated policy's are left as they are."""
        if self.isolated:
            return self.policies[0].rules
        return narrowed(rule for policy in self.policies for rule in policy.rules)

    @cached_property
    def match_conditions(self) -> tuple[MatchCondition, ...]:
        """What the API server is to check besides rules and selectors (``shared_conditions``)."""
        if self.isolated or not all(policy.match_conditions for policy in self.policies):
            return self.policies[0].match_conditions if self.isolated else ()
        # It loads CEL, which no policy without conditions needs.
        from gateway.registration.shared_conditions import shared_conditions  # noqa: PLC0415

        return shared_conditions(self.policies)

    @property
    def enforcing(self) -> bool:
        """Whether its policies can refuse or change anything."""
        return self.policies[0].mode is Mode.ENFORCE

    @property
    def failure_policy(self) -> FailurePolicy:
        """What the API server does if the gateway does not answer. What enforces nothing must not refuse either."""
        return self.policies[0].failure_policy if self.enforcing else FailurePolicy.IGNORE

    @property
    def match_policy(self) -> MatchPolicy:
        """Its policies' matchPolicy."""
        return self.policies[0].match_policy

    @property
    def reinvocation_policy(self) -> ReinvocationPolicy:
        """Its policies' reinvocationPolicy; Never in the validating phase."""
        return self.policies[0].reinvocation_policy

    @property
    def side_effects(self) -> SideEffects:
        """None if no member has any, else NoneOnDryRun: the gateway refuses a dry run that a member does not permit."""
        pure = all(policy.side_effects is SideEffects.NONE for policy in self.policies)
        return SideEffects.NONE if pure else SideEffects.NONE_ON_DRY_RUN

    @property
    def worst_seconds(self) -> float:
        """The longest that its policies may take by their own timeouts."""
        timeouts = [policy.timeout for policy in self.policies]
        if self.phase is Phase.VALIDATING:
            return max(timeouts)
        again = self.reinvocation_policy is ReinvocationPolicy.IF_NEEDED and len(timeouts) > 1
        return math.fsum(timeouts) * (2 if again else 1)

    @property
    def timeout_seconds(self) -> int:
        """What is registered as timeoutSeconds."""
        return min(MAX_TIMEOUT_SECONDS, _ROUNDED_SECONDS + math.ceil(self.worst_seconds))


class Entries(Struct, frozen=True, kw_only=True):
    """All entries, each phase's in the order of registration; ``idle`` are the policies in none: they have no rules."""

    mutating: tuple[Entry, ...]
    validating: tuple[Entry, ...]
    idle: tuple[Policy, ...] = ()

    def of(self, phase: Phase) -> tuple[Entry, ...]:
        """The entries of one phase."""
        return self.mutating if phase is Phase.MUTATING else self.validating

    def find(self, phase: Phase, name: str) -> Entry | None:
        """The entry of this name in this phase."""
        return next((entry for entry in self.of(phase) if entry.name == name), None)

    def worst_seconds(self, phase: Phase) -> float:
        """The longest that one request may be with the policies of a phase, each entry being called once.

        Kubernetes calls mutating webhooks one after another, and validating ones all at once.
        """
        seconds = [entry.worst_seconds for entry in self.of(phase)]
        return math.fsum(seconds) if phase is Phase.MUTATING else max(seconds, default=0.0)

    def wait_seconds(self, phase: Phase) -> int:
        """The longest that the API server waits for the entries of a phase, each being called once."""
        seconds = [entry.timeout_seconds for entry in self.of(phase)]
        return sum(seconds) if phase is Phase.MUTATING else max(seconds, default=0)


class _Draft(Struct, frozen=True, kw_only=True):
    """An entry without a name, in the making."""

    group: EntryGroup
    isolated: bool = False
    split: Difference | None = None


def make_entries(configuration: Configuration) -> Entries:
    """The entries of a configuration. The order of its files means nothing, as for the chain itself."""
    mutating = _runs(policy for policy in configuration.mutating if policy.rules)
    validating = _sets(policy for policy in configuration.validating if policy.rules)
    drafts = mutating + validating
    names = entry_names([(draft.group.policies[0], draft.isolated) for draft in drafts])
    entries = [_entry(draft, name) for draft, name in zip(drafts, names, strict=True)]
    return Entries(
        mutating=tuple(entries[: len(mutating)]),
        validating=tuple(entries[len(mutating) :]),
        idle=tuple(policy for policy in configuration.mutating + configuration.validating if not policy.rules),
    )


def _entry(draft: _Draft, name: str) -> Entry:
    policies = tuple(draft.group.policies)
    return Entry(name=name, phase=policies[0].phase, policies=policies, isolated=draft.isolated, split=draft.split)


def _runs(policies: Iterable[Policy]) -> list[_Draft]:
    drafts: list[_Draft] = []
    for policy in policies:
        if policy.isolate:
            drafts.append(_Draft(group=EntryGroup(policy), isolated=True))
            continue
        split = None
        if drafts:
            split = _behind(policy, drafts[-1]) if drafts[-1].isolated else drafts[-1].group.difference(policy)
            if split is None:
                drafts[-1].group.add(policy)
                continue
        drafts.append(_Draft(group=EntryGroup(policy), split=split))
    return drafts


def _behind(policy: Policy, before: _Draft) -> Difference:
    """Why a policy after an isolated one begins an entry."""
    other = before.group.policies[0]
    return Difference(field=ISOLATE, policy=policy, other=other, value="false", other_value="true")


def _sets(policies: Iterable[Policy]) -> list[_Draft]:
    drafts: list[_Draft] = []
    # Groups that agree in all but the rules. One that refuses rules refuses them for ever, since its own only grow: so
    # equal rules are in the same group, however many policies have them.
    alike: dict[tuple[str, ...], list[EntryGroup]] = {}
    joined: dict[tuple[tuple[str, ...], tuple[Rule, ...]], EntryGroup] = {}
    for policy in policies:
        if policy.isolate:
            drafts.append(_Draft(group=EntryGroup(policy), isolated=True))
            continue
        values = agreed_values(policy)
        group = joined.get((values, policy.rules))
        if group is None:
            reading = RulesReading(policy.rules)
            group = next((each for each in alike.get(values, ()) if each.takes(policy, reading)), None)
        if group is None:
            split = _nearest(policy, [same[0] for same in ([alike[values]] if values in alike else alike.values())])
            group = EntryGroup(policy)
            alike.setdefault(values, []).append(group)
            drafts.append(_Draft(group=group, split=split))
        else:
            group.add(policy)
        joined[values, policy.rules] = group
    return drafts


def _nearest(policy: Policy, groups: Iterable[EntryGroup]) -> Difference | None:
    """Why the policy is not in the group that it is nearest to; None: there is no group."""
    differences = [difference for group in groups if (difference := group.difference(policy)) is not None]
    return max(differences, key=lambda each: NEARNESS.index(each.field), default=None)
