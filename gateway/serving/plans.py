"""The current plans of one configuration: the policies of each target, and the shadow of each policy.

A plan depends on the availability of the workers. It is made on its first use after a change, and not at each change:
when two thousand webhooks become available one by one, that would be two thousand plans of two thousand policies.

A target is a path: all policies of a phase (``/mutate``), or those of one entry (``/mutate/ENTRY``). Only the
configuration defines targets.
"""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final, NamedTuple

from gateway.engine.plan import Plan, PolicyAvailability, make_plan
from gateway.policies.fields.shadows import shadow_of
from gateway.policies.model import Configuration, Phase, Policy
from gateway.registration.entries import Entries

if TYPE_CHECKING:
    from gateway.matching.index import PolicyIndex

PATHS: Final = {Phase.MUTATING: "/mutate", Phase.VALIDATING: "/validate"}
"""The path for all policies of a phase."""


class Target(NamedTuple):
    """What a request calls: the phase, and the name of an entry, or None for all policies of the phase."""

    phase: Phase
    entry: str | None = None

    @property
    def path(self) -> str:
        """The path of the target."""
        return PATHS[self.phase] if self.entry is None else f"{PATHS[self.phase]}/{self.entry}"


class PoliciesInForce(NamedTuple):
    """What is in force in a phase: the availabilities, and the policies in another version than the configured one.

    Both by qualified name; a policy without an availability is not described yet.
    """

    availabilities: Mapping[str, PolicyAvailability]
    versions: Mapping[str, Policy]


class Plans:
    """Keeps the plans.

    Args:
        configuration: has the policies.
        entries: of the configuration.
        shadows: returns the availabilities of a phase's shadows.
    """

    def __init__(
        self,
        configuration: Configuration,
        entries: Entries,
        *,
        shadows: Callable[[Phase], Mapping[str, PolicyAvailability]],
    ) -> None:
        self._policies = {Target(phase): configuration.policies(phase) for phase in Phase}
        self._registered: set[Target] = set()
        for phase in Phase:
            for entry in entries.of(phase):
                target = Target(phase, entry.name)
                self._policies[target] = entry.policies
                if entry.isolated:
                    self._registered.add(target)
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
        # Indexes of the policies as they are configured, which do not change.
        self._indexes: dict[Target, PolicyIndex] = {}
        self._shadow_plans: dict[int, Plan] = {}

    @property
    def has_shadows(self) -> bool:
        """Whether any policy has a shadow."""
        return bool(self._shadows)

    @property
    def targets(self) -> tuple[Target, ...]:
        """What can be called."""
        return tuple(self._policies)

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

    def make_all(self, in_force: Callable[[Phase], PoliciesInForce]) -> None:
        """Make the plans now, so that no review does."""
        for target in self._policies:
            self.of(target, in_force)

    def availabilities_changed(self) -> None:
        """Drop all plans: the policies in force, or the availability of a shadow, have changed."""
        self._known.clear()
        self.made.clear()
        self._shadow_plans.clear()

    def _made(self, target: Target, in_force: Callable[[Phase], PoliciesInForce]) -> Plan:
        phase = target.phase
        if phase not in self._known:
            self._known[phase] = in_force(phase)
        availabilities, versions = self._known[phase]
        policies = self._policies[target]
        registered = target in self._registered
        if versions:
            policies = tuple(versions.get(policy.qualified_name, policy) for policy in policies)
            return make_plan(phase, policies, availabilities, registered=registered)
        plan = make_plan(phase, policies, availabilities, registered=registered, index=self._indexes.get(target))
        self._indexes[target] = plan.index
        return plan
