"""Former entries: those of earlier configurations, which kube-apiserver calls until it has the new registration.

A path names an entry and its revision, which is a digest of its policies. So a path never comes to mean other policies
in silence: when a configuration gives an entry other policies, its path is another, and the old one belongs to a former
entry. A former entry is decided by the configuration in force, never by the one that it comes from. Its policies are:

=============================================  =====================================================================
a policy of the configuration in force         is in the former entry that had
=============================================  =====================================================================
with a qualified name as before                that policy
with the same name in another configuration    that policy, which has gone from its own
in the place of one that has gone (renamed)    the policy that has gone: the first new one for the first one gone,
                                               and so on, behind the same policy
else: new, in an entry with others             its nearest predecessor in its entry, or its nearest successor
else, in a new entry, while others have gone   a policy that has gone, in their order
else                                           none: it is new, and in an entry that is not registered yet
=============================================  =====================================================================

Each policy has one predecessor at most in the configuration before. So in whatever order entries are split, merged and
renamed, all paths of one registration together judge a policy once, after as many reloads as there may be (unless one
of its names comes back as another policy's).

The gateway matches what they judge. An isolated policy is matched by the API server, by its registered rules, selectors
and conditions; the gateway matches what has changed of these. If all policies of an entry were removed, none is left to
refuse what comes to its path.

A gateway that was not there when an entry was registered learns its policies from the registration
(``registered_entries``). It does not know what else they were, so it matches an isolated one as any other.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Protocol

from msgspec import Struct

from gateway.policies.model import Configuration, Phase, Policy
from gateway.registration.entries import Entries, Entry
from gateway.registration.registered_entries import RegisteredEntries


class FormerEntry(Struct, frozen=True, kw_only=True):
    """An entry of an earlier configuration. ``policies`` are qualified names in the configuration in force.

    ``isolated`` is the policy as it is registered, if the entry was that of an isolated one.
    """

    phase: Phase
    name: str
    revision: str
    policies: frozenset[str]
    isolated: Policy | None = None

    @property
    def key(self) -> tuple[Phase, str, str]:
        """Which path it is."""
        return self.phase, self.name, self.revision

    def members(self, policies: Iterable[Policy]) -> tuple[Policy, ...]:
        """Its policies among all of the phase, in chain order."""
        return tuple(policy for policy in policies if policy.qualified_name in self.policies)

    def has_registered_rules(self, policies: Sequence[Policy]) -> bool:
        """Whether the rules by which the API server calls it are still those of its policies."""
        return (
            self.isolated is not None and self._is_isolated(policies) and _rules(self.isolated) == _rules(policies[0])
        )

    def has_registered_conditions(self, policies: Sequence[Policy]) -> bool:
        """Whether the selectors and conditions by which the API server calls it are still those of its policies."""
        return (
            self.isolated is not None
            and self._is_isolated(policies)
            and _conditions(self.isolated) == _conditions(policies[0])
        )

    @staticmethod
    def _is_isolated(policies: Sequence[Policy]) -> bool:
        return len(policies) == 1 and policies[0].isolate


def former_entries(
    former: Iterable[FormerEntry], before: tuple[Configuration, Entries], after: tuple[Configuration, Entries]
) -> tuple[FormerEntry, ...]:
    """The former entries of a configuration, the newest first: those of the configuration before, and its own entries.

    Args:
        former: those of the configuration before.
        before: the configuration that is replaced, and its entries.
        after: the configuration that replaces it, and its entries.
    """
    current = {(phase, entry.name, entry.revision) for phase in Phase for entry in after[1].of(phase)}
    successors = {}
    for phase in Phase:
        # One without rules was in no entry: when it has some, it comes as a new one does.
        earlier = [policy for policy in before[0].policies(phase) if policy.rules]
        successors[phase] = _successors(earlier, after[0].policies(phase), after[1].of(phase))
    made: dict[tuple[Phase, str, str], FormerEntry] = {}
    for each in (*(_of(entry) for phase in Phase for entry in before[1].of(phase)), *former):
        if each.key not in current and each.key not in made:
            names = frozenset(name for policy in each.policies for name in successors[each.phase].get(policy, ()))
            made[each.key] = FormerEntry(
                phase=each.phase, name=each.name, revision=each.revision, policies=names, isolated=each.isolated
            )
    return tuple(made.values())


def learnt_entries(
    phase: Phase, registered: RegisteredEntries, after: tuple[Configuration, Entries]
) -> tuple[FormerEntry, ...]:
    """The registered entries of a phase that are not the configuration's, as if it had replaced theirs.

    Args:
        phase: the phase.
        registered: its registered entries.
        after: the configuration in force, and its entries.
    """
    successors = _successors(registered.policies, after[0].policies(phase), after[1].of(phase))
    current = {(entry.name, entry.revision) for entry in after[1].of(phase)}
    return tuple(
        FormerEntry(
            phase=phase,
            name=name,
            revision=revision,
            policies=frozenset(name for policy in members for name in successors.get(policy, ())),
        )
        for (name, revision), members in registered.entries.items()
        if (name, revision) not in current
    )


class _Named(Protocol):
    """A policy, as far as it is known of a registration."""

    @property
    def name(self) -> str:
        """Its name."""

    @property
    def qualified_name(self) -> str:
        """With that of its configuration."""


def _successors(
    before: Sequence[_Named], after: Sequence[Policy], entries: Iterable[Entry]
) -> Mapping[str, Sequence[str]]:
    """The qualified names after of each one before."""
    found: dict[str, list[str]] = {}
    for name, predecessor in predecessors(before, after, entries).items():
        found.setdefault(predecessor, []).append(name)
    return found


def predecessors(before: Sequence[_Named], after: Sequence[Policy], entries: Iterable[Entry]) -> Mapping[str, str]:
    """The predecessor of each policy that has one: qualified names after to those before.

    Args:
        before: the policies of a phase that were in an entry, in chain order.
        after: those that replace them.
        entries: the entries of these.
    """
    old, new = {policy.qualified_name for policy in before}, {policy.qualified_name for policy in after}
    found = {name: name for name in old & new}
    for grouped in (_by_name, _by_place):
        _pair(grouped, before, after, found)
    for entry in entries:
        _join(entry, found)
    _pair(_in_order, before, after, found)
    return found


def _of(entry: Entry) -> FormerEntry:
    return FormerEntry(
        phase=entry.phase,
        name=entry.name,
        revision=entry.revision,
        policies=frozenset(policy.qualified_name for policy in entry.policies),
        isolated=entry.policies[0] if entry.isolated else None,
    )


_Grouping = Callable[[Iterable[_Named], Mapping[str, str]], dict[str, list[str]]]


def _pair(grouped: _Grouping, before: Iterable[_Named], after: Iterable[_Named], found: dict[str, str]) -> None:
    """Make the first policy that has gone the predecessor of the first that has come, and so on, in each group."""
    gone, come = grouped(before, {name: name for name in found.values()}), grouped(after, found)
    for key, names in gone.items():
        found.update(zip(come.get(key, ()), names, strict=False))


def _in_order(policies: Iterable[_Named], known: Mapping[str, str]) -> dict[str, list[str]]:
    """The policies that are not known, in their order."""
    return {"": [policy.qualified_name for policy in policies if policy.qualified_name not in known]}


def _by_name(policies: Iterable[_Named], known: Mapping[str, str]) -> dict[str, list[str]]:
    """The policies that are not known, by their names, each of which only one of them has."""
    names: dict[str, list[str]] = {}
    for policy in policies:
        if policy.qualified_name not in known:
            names.setdefault(policy.name, []).append(policy.qualified_name)
    return {name: alike for name, alike in names.items() if len(alike) == 1}


def _by_place(policies: Iterable[_Named], known: Mapping[str, str]) -> dict[str, list[str]]:
    """The policies that are not known, in their order, by the known one that is nearest before them ("": none is)."""
    places: dict[str, list[str]] = {}
    place = ""
    for policy in policies:
        if policy.qualified_name in known:
            place = known[policy.qualified_name]
        else:
            places.setdefault(place, []).append(policy.qualified_name)
    return places


def _join(entry: Entry, found: dict[str, str]) -> None:
    """Give each policy of an entry that has no predecessor that of its neighbour."""
    names = [policy.qualified_name for policy in entry.policies]
    for order in (names, reversed(names)):
        neighbour = None
        for name in order:
            neighbour = found.get(name, neighbour)
            if neighbour is not None:
                found[name] = neighbour


def _rules(policy: Policy) -> tuple[object, ...]:
    return policy.match_policy, policy.rules


def _conditions(policy: Policy) -> tuple[object, ...]:
    conditions = tuple((each.name, each.condition.expression) for each in policy.match_conditions)
    return policy.object_selector, policy.namespace_selector, conditions
