"""Reports the policies that are not in force as they are configured: in the log, in metrics, on /readyz.

None of them makes the gateway unready: each of these policies runs in its last good version, or fails, and its
failurePolicy applies.
"""

from collections import Counter
from collections.abc import Sequence
from functools import partial
from itertools import product
from typing import Final

import structlog

from gateway.engine.availability import UnavailablePolicy
from gateway.engine.plan import UnavailableReason
from gateway.policies.model import Phase, Policy
from gateway.serving.loaded_configuration import LoadedConfiguration
from gateway.telemetry.events import Events
from gateway.telemetry.log_slices import LogSlices
from gateway.telemetry.table import DEGRADED_POLICIES, FAILURE, LAST_GOOD

_LOG: Final = structlog.get_logger(__name__)

LISTED: Final = 100
"""Policies that /readyz lists at most: 50 KB, with ``SHOWN``. The log and the gauge have all of them."""

SHOWN: Final = 500
"""Characters of a reason on /readyz, which is read in a terminal. The log has the whole reason."""

_Named = tuple[Phase, str]


class Degradation:
    """Tracks the policies that are not in force as they are configured.

    Args:
        events: counts them.
    """

    def __init__(self, events: Events) -> None:
        self._events = events
        self._known: dict[_Named, UnavailablePolicy] = {}
        self._lines = LogSlices()

    def update(self, configuration: LoadedConfiguration) -> None:
        """Log what has changed with this configuration, which is now in force, and set the gauge."""
        found = {(each.policy.phase, each.policy.qualified_name): each for each in configuration.unavailable()}
        for named, each in found.items():
            before = self._known.get(named)
            if before is None or _kind(before) != _kind(each):
                self._lines.write(partial(_log_begin, each))
        for named, each in self._known.items():
            if named not in found:
                self._lines.write(partial(_log_end, each.policy, configured=configuration.has(each.policy)))
        self._known = found
        numbers = Counter(_kind(each) for each in found.values())
        for reason, last_good in product(UnavailableReason, (False, True)):
            self._events.set(DEGRADED_POLICIES, numbers[reason, last_good], reason, _effect(last_good=last_good))

    @property
    def lines(self) -> Sequence[str]:
        """One line for each policy, for /readyz; the first ``LISTED`` of them, and how many more there are."""
        listed = [shortened(str(each)) for each in tuple(self._known.values())[:LISTED]]
        more = len(self._known) - len(listed)
        return (
            [*listed, f"{more} more policies are not in force as they are configured; see the log"] if more else listed
        )


def shortened(text: str) -> str:
    """A text on one line, as /readyz shows it."""
    line = " ".join(text.split())
    return line if len(line) <= SHOWN else f"{line[:SHOWN]}..."


def _kind(each: UnavailablePolicy) -> tuple[UnavailableReason, bool]:
    return each.availability.why, each.last_good


def _effect(*, last_good: bool) -> str:
    return LAST_GOOD if last_good else FAILURE


def _log_begin(each: UnavailablePolicy) -> None:
    _LOG.warning(
        "a policy is not in force as it is configured",
        policy=each.policy.qualified_name,
        phase=each.policy.phase.value,
        place=str(each.policy.place),
        reason=each.availability.why.value,
        effect=_effect(last_good=each.last_good),
        why=each.message,
    )


def _log_end(policy: Policy, *, configured: bool) -> None:
    event = (
        "a policy is in force as it is configured, again or at last"
        if configured
        else "a policy that was not in force as it was configured is no longer configured"
    )
    _LOG.info(event, policy=policy.qualified_name, phase=policy.phase.value)
