"""The standing of each policy: what its worker said of it, or why it cannot be asked.

The log says of each policy what it is shown and what it may change, before the first request is put to it. Which
policies cannot be asked, says whoever serves them (``serving.degradation``), and of shadows ``Standings`` does.
"""

from collections.abc import Mapping
from typing import Final

import structlog

from gateway.engine.plan import Described, Standing
from gateway.policies.model import Phase, Policy
from gateway.transports.claims import shown_inputs, shown_writes
from gateway.transports.messages import one_line

_LOG: Final = structlog.get_logger(__name__)


class Standings:
    """The standings of one configuration's policies. One that has none is not described yet.

    Args:
        characters: how much of a worker's own words is repeated in the log.
        warns: whether the log says that a policy cannot be asked any more.
    """

    def __init__(self, characters: int, *, warns: bool = False) -> None:
        self._characters = characters
        self._warns = warns
        self._standings: dict[Phase, dict[str, Standing]] = {phase: {} for phase in Phase}

    def of(self, phase: Phase) -> Mapping[str, Standing]:
        """Those of a phase, by qualified name; changes as they do."""
        return self._standings[phase]

    def get(self, policy: Policy) -> Standing | None:
        """That of a policy."""
        return self._standings[policy.phase].get(policy.qualified_name)

    def described(self, policy: Policy) -> Described | None:
        """That of a policy, if it can be asked."""
        standing = self.get(policy)
        return standing if isinstance(standing, Described) else None

    def set(self, policy: Policy, standing: Standing, *, told: bool = True) -> None:
        """Take down that of a policy; ``told``: in the log."""
        before = self.get(policy)
        if standing == before:
            return
        self._standings[policy.phase][policy.qualified_name] = standing
        if isinstance(standing, Described):
            self._log_described(policy, standing)
        elif self._warns and before is not None and told:
            # Before the first contact nobody can be asked: that is no news.
            _LOG.warning(
                "a policy cannot be asked", policy=policy.qualified_name, place=str(policy.place), why=standing.message
            )

    def _log_described(self, policy: Policy, standing: Described) -> None:
        inputs = policy.inputs if standing.inputs is None else standing.inputs
        writes = policy.writes if standing.writes is None else standing.writes
        changes = {"may_change": shown_writes(writes)} if policy.phase is Phase.MUTATING else {}
        _LOG.info(
            "a policy can be asked",
            policy=policy.qualified_name,
            version=one_line(standing.version, self._characters),
            shown=shown_inputs(inputs),
            **changes,
        )
