"""Which policies of a configuration are not in force as they are configured, and why: pure.

"A policy that is invalid, or whose worker is unknown, undescribed or rejects its settings, keeps its last good version,
else stands in the chain as a failure CONFIGURATION under its failurePolicy."
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from gateway.deciding.plan import ANSWERS, Standing, Unavailable, UnavailableReason, standing_of
from gateway.policies.model import ConfigurationError, Policy

_FIELDS: Final[Mapping[UnavailableReason, str]] = {
    UnavailableReason.UNKNOWN_POLICY: ".policy",
    UnavailableReason.SETTINGS: ".settings",
}
"""The field of a policy that an answer of its worker is about."""


@dataclass(frozen=True, kw_only=True, slots=True)
class UnavailablePolicy:
    """A policy that cannot be asked as it is configured. ``last_good``: an earlier version of it is asked instead."""

    policy: Policy
    standing: Unavailable
    last_good: bool = False

    @property
    def answered(self) -> bool:
        """Whether its worker was heard, and what it said is the reason."""
        return self.standing.why in ANSWERS

    @property
    def message(self) -> str:
        """Why, and what may help: for operators."""
        return f"{self.standing.message}; {self.standing.hint}" if self.standing.hint else self.standing.message

    @property
    def error(self) -> ConfigurationError:
        """The same as a mistake of the configuration, at its place."""
        place = self.policy.place
        path = f"{place.path}{_FIELDS.get(self.standing.why, '')}"
        return ConfigurationError(place=replace(place, path=path), message=self.message)

    def __str__(self) -> str:
        """One line for people: who, what becomes of it, of which kind the reason is, and the reason."""
        effect = "runs in its last good version" if self.last_good else "fails"
        return f"{self.policy.phase} policy {self.policy.qualified_name} {effect} ({self.standing.why}): {self.message}"


def unavailable_policies(
    policies: Sequence[Policy], standings: Mapping[str, Standing], *, last_good: Collection[str] = ()
) -> tuple[UnavailablePolicy, ...]:
    """Those of the policies of one phase that cannot be asked as they are configured, in their order.

    Args:
        policies: as configured.
        standings: by qualified name; a policy that is missing is not described yet.
        last_good: the qualified names of those that are asked in an earlier version.
    """
    return tuple(
        UnavailablePolicy(policy=policy, standing=standing, last_good=policy.qualified_name in last_good)
        for policy in policies
        if isinstance(standing := standing_of(policy, standings), Unavailable)
    )
