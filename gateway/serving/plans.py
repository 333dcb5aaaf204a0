"""The plans of one configuration: who judges at each target, and what each policy's shadow is, as of this moment.

A plan depends on what the workers say. It is made when it is first wanted after that has changed, and not at each
change: where two thousand webhooks are reached one after another, that would be two thousand plans of two thousand
policies.

A target is a path: all policies of a phase (``/mutate``), or those of one entry (``/mutate/ENTRY``). Which targets
there are is the configuration's to say; nobody else's words make one.
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
"""Where all policies of a phase are put to."""


class Target(NamedTuple):
    """What a request is put to: the phase, and the name of an entry, or None for all policies of the phase."""

    phase: Phase
    entry: str | None = None

    @property
    def path(self) -> str:
        """Where it is."""
        return PATHS[self.phase] if self.entry is None else f"{PATHS[self.phase]}/{self.entry}"


class PoliciesInForce(NamedTuple):
    """What is in force in a phase: the standings, and the policies that run in another version than the configured one.

    Both by qualified name; a policy without a standing is not described yet.
    """

    availabilities: Mapping[str, PolicyAvailability]
    versions: Mapping[str, Policy]


class Plans:
    """Keeps the plans.

    Args:
        configuration: whose policies they are of.
        entries: of the same.
        shadows: gives the standings of a phase's shadows.
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
        """Those that hold as they are."""
        # Of the policies as they are configured: these do not change.
        self._indexes: dict[Target, PolicyIndex] = {}
        self._shadow_plans: dict[int, Plan] = {}

    @property
    def has_shadows(self) -> bool:
        """Whether any policy has a shadow."""
        return bool(self._shadows)

    @property
    def targets(self) -> tuple[Target, ...]:
        """What can be asked."""
        return tuple(self._policies)

    def of(self, target: Target, in_force: Callable[[Phase], PoliciesInForce]) -> Plan | None:
        """Who judges there; None if there is no such target. ``in_force`` tells what is in force in a phase."""
        plan = self.made.get(target)
        if plan is None and target in self._policies:
            plan = self.made[target] = self._made(target, in_force)
        return plan

    def of_shadow(self, policy: Policy) -> Plan | None:
        """The policy's shadow, alone; None: it has none, or is not one of the policies here."""
        plan, shadow = self._shadow_plans.get(id(policy)), self._shadows.get(id(policy))
        if plan is None and shadow is not None:
            # Whatever its policy judges it judges: nobody asks again whether it is meant.
            plan = make_plan(policy.phase, (shadow,), self._shadow_availabilities(policy.phase), registered=True)
            self._shadow_plans[id(policy)] = plan
        return plan

    def make_all(self, in_force: Callable[[Phase], PoliciesInForce]) -> None:
        """Make the plans now, so that no review does."""
        for target in self._policies:
            self.of(target, in_force)

    def availabilities_changed(self) -> None:
        """What is in force has changed, or a shadow's standing has."""
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
