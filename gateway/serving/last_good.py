"""The last good versions of policies that cannot be asked as they are configured.

"A policy that is invalid, or whose worker is unknown, undescribed or rejects its settings, keeps its last good version,
else stands in the chain as a failure CONFIGURATION under its failurePolicy."

A version is a policy as an earlier configuration had it, and the Worker that it named then. All that the gateway
itself does with the policy follows that version: rules, selectors, conditions, timeout, failurePolicy, settings,
inputs, writes, mode, cache. Where the policy stands follows the configuration in force: its place in the chain, and its
entry, because that is what is registered. (What comes through the entry of an isolated policy, the API server has
matched, by what is registered.)

Each version is asked through workers of its own: a Worker of the same name may be another one in each of them. A worker
that both have is one connection and one process all the same. A shadow is not asked about a last good version: what it
is to be compared with is not in force.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from gateway.engine.origin import Origin
from gateway.engine.plan import Described
from gateway.engine.policy_call import PolicyCall
from gateway.engine.policy_caller import CallWaiter, PolicyCaller
from gateway.engine.verdicts import Verdict
from gateway.policies.model import Configuration, Phase, Policy
from gateway.policies.workers.targets import Worker
from gateway.transports.workers import Workers


class PolicyVersion(Struct, frozen=True, kw_only=True):
    """A policy as one configuration has it, and its worker there."""

    policy: Policy
    worker: Worker


class LastGood:
    """Keeps versions of policies, and asks their workers.

    Args:
        versions: one of a policy at most.
        workers: makes the workers of a configuration.
        asking: puts a cache in front of them; None: there is none.
    """

    def __init__(
        self,
        versions: Iterable[PolicyVersion],
        workers: Callable[[Configuration], Workers],
        asking: Callable[[Workers], PolicyCaller] | None,
    ) -> None:
        by_worker: dict[Worker, list[Policy]] = {}
        for version in versions:
            by_worker.setdefault(version.worker, []).append(replace(version.policy, shadow=None))
        self._versions: dict[Phase, dict[str, tuple[PolicyVersion, Workers]]] = {phase: {} for phase in Phase}
        self._callers: dict[int, PolicyCaller] = {}
        self.workers: list[Workers] = []
        for worker, policies in by_worker.items():
            reaching = workers(_configuration(worker, policies))
            policy_caller = reaching if asking is None else asking(reaching)
            self.workers.append(reaching)
            for policy in policies:
                version = PolicyVersion(policy=policy, worker=worker)
                self._versions[policy.phase][policy.qualified_name] = version, reaching
                self._callers[id(policy)] = policy_caller

    async def start(self) -> None:
        """Hold their workers, which whoever is in force now holds too: what these have described is known at once."""
        for workers in self.workers:
            await workers.start()

    async def close(self) -> None:
        """Let go of the workers."""
        for workers in self.workers:
            await workers.close()

    def versions(self) -> tuple[PolicyVersion, ...]:
        """All of them, also those that cannot be asked any more."""
        return tuple(version for kept in self._versions.values() for version, _ in kept.values())

    def in_force(self, phase: Phase) -> dict[str, tuple[PolicyVersion, Described]]:
        """Those of a phase that can be asked, by qualified name, each with its standing."""
        return {name: kept for name in self._versions[phase] if (kept := self.version(phase, name)) is not None}

    def version(self, phase: Phase, name: str) -> tuple[PolicyVersion, Described] | None:
        """That of the policy of this qualified name, with its standing, if it can be asked."""
        kept = self._versions[phase].get(name)
        availability = None if kept is None else kept[1].availabilities(phase).get(name)
        return (kept[0], availability) if kept is not None and isinstance(availability, Described) else None

    def in_front_of(self, others: PolicyCaller) -> PolicyCaller:
        """Asks the right workers about each version, and ``others`` about all other policies."""
        return _Callers(self._callers, others)


class _Callers:
    """A PolicyCaller: each policy's own. Told apart as objects, because versions of one policy have one name."""

    __slots__ = ("_callers", "_others")

    def __init__(self, callers: dict[int, PolicyCaller], others: PolicyCaller) -> None:
        self._callers: Final = callers
        self._others: Final = others

    def known(self, call: PolicyCall) -> tuple[Verdict, Origin] | None:
        """What its own knows."""
        return self._of(call).known(call)

    def call(self, call: PolicyCall, waiter: CallWaiter) -> Callable[[], object]:
        """Call its own."""
        return self._of(call).call(call, waiter)

    def disagreed(self, call: PolicyCall, version: str) -> None:
        """Tell its own."""
        self._of(call).disagreed(call, version)

    def _of(self, call: PolicyCall) -> PolicyCaller:
        return self._callers.get(id(call.policy), self._others)


def _configuration(worker: Worker, policies: Sequence[Policy]) -> Configuration:
    return Configuration(
        workers={worker.name: worker},
        mutating=tuple(policy for policy in policies if policy.phase is Phase.MUTATING),
        validating=tuple(policy for policy in policies if policy.phase is Phase.VALIDATING),
    )
