"""The availability of each policy: its worker's description, or the reason why it cannot be called.

The log reports for each policy its inputs and what it may change, before its first call. ``serving.degradation``
reports policies that cannot be called; ``PolicyAvailabilities`` reports shadows that cannot.
"""

from collections.abc import Iterable, Mapping
from functools import partial
from typing import Final

import structlog

from gateway.engine.plan import Described, PolicyAvailability, Unavailable
from gateway.policies.model import Phase, Policy
from gateway.telemetry.log_slices import LogSlices
from gateway.transports.claims import shown_inputs, shown_writes
from gateway.transports.messages import one_line

_LOG: Final = structlog.get_logger(__name__)


class PolicyAvailabilities:
    """The availabilities of one configuration's policies. A policy without one is not described yet.

    Args:
        characters: how much of a worker's text the log repeats.
        warns: whether the log reports that a policy cannot be called any more.
    """

    def __init__(self, characters: int, *, warns: bool = False) -> None:
        self._characters = characters
        self._warns = warns
        self._lines = LogSlices()
        self._availabilities: dict[Phase, dict[str, PolicyAvailability]] = {phase: {} for phase in Phase}
        self.before: tuple[PolicyAvailabilities, ...] = ()
        """Those of earlier configurations: what they have is not logged again."""

    def of(self, phase: Phase) -> Mapping[str, PolicyAvailability]:
        """The availabilities of a phase, by qualified name; a live view."""
        return self._availabilities[phase]

    def get(self, policy: Policy) -> PolicyAvailability | None:
        """The availability of a policy."""
        return self._availabilities[policy.phase].get(policy.qualified_name)

    def described(self, policy: Policy) -> Described | None:
        """The availability of a policy, if it can be called."""
        availability = self.get(policy)
        return availability if isinstance(availability, Described) else None

    def set(self, policies: Iterable[Policy], availability: PolicyAvailability, *, reported: bool = True) -> None:
        """Set that of some policies; ``reported``: log it."""
        for policy in policies:
            before = self.get(policy)
            if availability == before:
                continue
            self._availabilities[policy.phase][policy.qualified_name] = availability
            if isinstance(availability, Described):
                if all(each.get(policy) != availability for each in self.before):
                    self._lines.write(partial(self._log_described, policy, availability))
            elif self._warns and before is not None and reported:
                # Before the first description, no policy can be called: that is not worth a warning.
                self._lines.write(partial(_log_unavailable, policy, availability))

    def _log_described(self, policy: Policy, availability: Described) -> None:
        inputs = policy.inputs if availability.inputs is None else availability.inputs
        writes = policy.writes if availability.writes is None else availability.writes
        changes = {"may_change": shown_writes(writes)} if policy.phase is Phase.MUTATING else {}
        _LOG.info(
            "a policy can be called",
            policy=policy.qualified_name,
            version=one_line(availability.version, self._characters),
            shown=shown_inputs(inputs),
            **changes,
        )


def _log_unavailable(policy: Policy, availability: Unavailable) -> None:
    _LOG.warning(
        "a policy cannot be called",
        policy=policy.qualified_name,
        place=str(policy.place),
        why=availability.message,
    )
