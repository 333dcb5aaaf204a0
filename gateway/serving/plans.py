"""The current plans of one configuration: the policies of each target, and the shadow of each policy.

A plan depends on the availability of the workers. It is made on its first use after a change, and not at each change:
when two thousand webhooks become available one by one, that would be two thousand plans of two thousand policies.

A target is a path: all policies of a phase (``/mutate``), or those of one entry (``/mutate/ENTRY/REVISION``; without a
revision, the entry of this name as it is now). Only the configuration, and those before it, define targets.
"""

import asyncio
from collections.abc import Callable, Iterable, Mapping
from typing import Final, NamedTuple

from msgspec import Struct

from gateway.engine.plan import Plan, PolicyAvailability, make_plan
from gateway.matching.index import EveryPolicy, PolicyIndex, RuleIndex
from gateway.policies.fields.shadows import shadow_of
from gateway.policies.model import Configuration, Phase, Policy
from gateway.policies.workers.targets import Worker
from gateway.registration.entries import Entries, Entry
from gateway.registration.former_entries import FormerEntry

PATHS: Final = {Phase.MUTATING: "/mutate", Phase.VALIDATING: "/validate"}
"""The path for all policies of a phase."""


UNKNOWN_REVISION: Final = "?"
"""The revision of a target whose entry this process knows by its name alone: it has not read what is registered."""


class Target(NamedTuple):
    """What a request calls: the phase, and the name of an entry, or None for all policies of the phase.

    ``revision``: which policies the entry had when it was registered; "": those that it has now.
    """

    phase: Phase
    entry: str | None = None
    revision: str = ""

    @property
    def path(self) -> str:
        """The path of the target."""
        return "/".join(filter(None, (PATHS[self.phase], self.entry, self.revision)))


class PoliciesInForce(NamedTuple):
    """What is in force in a phase: the availabilities, and the policies in another version than the configured one.

    Both by qualified name; a policy without an availability is not described yet.
    """

    availabilities: Mapping[str, PolicyAvailability]
    versions: Mapping[str, Policy]


class _Policies(Struct, eq=False):
    """The policies of some targets in chain order, and what of them the API server has checked.

    ``plan`` and ``index``: once they are made; the index is that of the policies as they are configured.
    """

    policies: tuple[Policy, ...]
    has_registered_rules: bool = False
    has_registered_conditions: bool = False
    plan: Plan | None = None
    index: PolicyIndex | None = None

    def make_plan(self, phase: Phase, in_force: PoliciesInForce, workers: Mapping[str, Worker]) -> Plan:
        availabilities, versions = in_force
        policies = tuple(versions.get(policy.qualified_name, policy) for policy in self.policies)
        index = self.index
        if index is None or versions:
            index = EveryPolicy(len(policies)) if self.has_registered_rules else RuleIndex(policies)
        if not versions:
            self.index = index
        registered = self.has_registered_conditions
        return make_plan(phase, policies, availabilities, registered=registered, index=index, workers=workers)


class Plans:
    """Keeps the plans.

    Args:
        configuration: has the policies.
        entries: of the configuration.
        former: the entries of earlier configurations that can still be called.
        shadows: returns the availabilities of a phase's shadows.
    """

    def __init__(
        self,
        configuration: Configuration,
        entries: Entries,
        *,
        former: Iterable[FormerEntry] = (),
        shadows: Callable[[Phase], Mapping[str, PolicyAvailability]],
    ) -> None:
        self._policies: dict[Target, _Policies] = {}
        self._workers = configuration.workers
        for phase in Phase:
            self._policies[Target(phase)] = _Policies(configuration.policies(phase))
            for entry in entries.of(phase):
                self._add(entry)
        self.former: frozenset[Target] = frozenset()
        self.add_former(configuration, former)
        self._shadows = {
            id(policy): shadow
            for phase in Phase
            for policy in configuration.policies(phase)
            if (shadow := shadow_of(policy)) is not None
        }
        self._shadow_availabilities = shadows
        self._known: dict[Phase, PoliciesInForce] = {}
        self.made: dict[Target, Plan] = {}
        """The plans that are up to date."""
        self._shadow_plans: dict[int, Plan] = {}

    def _add(self, entry: Entry) -> None:
        phase, name = entry.phase, entry.name
        policies = _Policies(entry.policies, entry.isolated, entry.isolated)
        self._policies[Target(phase, name)] = self._policies[Target(phase, name, entry.revision)] = policies
        # Of an unknown registration of an isolated policy: nothing is needed to know whether its rules match.
        unknown = _Policies(entry.policies, has_registered_conditions=True) if entry.isolated else policies
        self._policies[Target(phase, name, UNKNOWN_REVISION)] = unknown

    def add_former(self, configuration: Configuration, former: Iterable[FormerEntry]) -> None:
        """Add entries that can still be called, of earlier configurations or of a registration."""
        for each in former:
            policies = each.members(configuration.policies(each.phase))
            self._policies[Target(*each.key)] = _Policies(
                policies, each.has_registered_rules(policies), each.has_registered_conditions(policies)
            )
            self.former |= {Target(*each.key)}

    @property
    def has_shadows(self) -> bool:
        """Whether any policy has a shadow."""
        return bool(self._shadows)

    @property
    def targets(self) -> tuple[Target, ...]:
        """What can be called: the phases, each entry by its name, with its revision and an unknown one, and the former
        entries, the newest first.
        """
        return tuple(self._policies)

    def by_path(self) -> dict[str, Target]:
        """The targets by their paths. A former entry has that of its name too, if there is no entry of this name."""
        paths = {target.path: target for target in self._policies}
        for target in self._policies:
            paths.setdefault(Target(target.phase, target.entry).path, target)
        return paths

    def of(self, target: Target, in_force: Callable[[Phase], PoliciesInForce]) -> Plan | None:
        """The plan of the target; None if there is no such target. ``in_force`` returns what is in force in a phase."""
        plan = self.made.get(target)
        if plan is None and target in self._policies:
            plan = self.made[target] = self._made(target, in_force)
        return plan

    def of_shadow(self, policy: Policy) -> Plan | None:
        """The plan of the policy's shadow alone; None: it has no shadow, or the policy is not configured here."""
        plan, shadow = self._shadow_plans.get(id(policy)), self._shadows.get(id(policy))
        if plan is None and shadow is not None:
            # A shadow is called for each request that its policy has judged, so its rules are not matched again.
            plan = make_plan(policy.phase, (shadow,), self._shadow_availabilities(policy.phase), registered=True)
            self._shadow_plans[id(policy)] = plan
        return plan

    async def make_all(self, in_force: Callable[[Phase], PoliciesInForce]) -> None:
        """Make the plans now, so that no review does, each in an iteration of the loop."""
        for target, policies in tuple(self._policies.items()):
            if target.revision != UNKNOWN_REVISION:
                is_made = policies.plan is not None  # as that of another target
                self.of(target, in_force)
                if not is_made:
                    await asyncio.sleep(0)

    def availabilities_changed(self) -> None:
        """Drop all plans: the policies in force, or the availability of a shadow, have changed."""
        self._known.clear()
        self.made.clear()
        self._shadow_plans.clear()
        for each in self._policies.values():
            each.plan = None

    def _made(self, target: Target, in_force: Callable[[Phase], PoliciesInForce]) -> Plan:
        phase, policies = target.phase, self._policies[target]
        if phase not in self._known:
            self._known[phase] = in_force(phase)
        if policies.plan is None:
            policies.plan = policies.make_plan(phase, self._known[phase], self._workers)
        return policies.plan
