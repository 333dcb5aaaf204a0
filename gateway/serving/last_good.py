"""The last good versions of policies that cannot be called as they are configured.

"A policy that is invalid, or whose worker is unknown, undescribed or rejects its settings, keeps its last good version,
else stands in the chain as a failure CONFIGURATION under its failurePolicy."

A version is a policy as an earlier configuration had it, and the Worker that it named there. The gateway applies the
rules, selectors, conditions, timeout, failurePolicy, settings, inputs, writes, mode and cache of that version. The
policy's position in the chain and its entry are those of the configuration in force, because that is registered. (For
the entry of an isolated policy, the API server matches by what is registered.)

Each version has workers of its own, because a Worker of the same name may differ between configurations. Equal workers
still share one connection and one process. A last good version has no shadow: the policy that the shadow is to be
compared with is not in force.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from gateway.engine.answer_source import Origin
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
    """Keeps versions of policies, and calls their workers.

    Args:
        versions: at most one version of each policy.
        workers: creates the workers of a configuration.
        caching: puts a cache in front of the workers; None: there is no cache.
    """

    def __init__(
        self,
        versions: Iterable[PolicyVersion],
        workers: Callable[[Configuration], Workers],
        caching: Callable[[Workers], PolicyCaller] | None,
    ) -> None:
        by_worker: dict[Worker, list[Policy]] = {}
        for version in versions:
            policy = version.policy
            by_worker.setdefault(version.worker, []).append(
                policy if policy.shadow is None else replace(policy, shadow=None)
            )
        self._versions: dict[Phase, dict[str, tuple[PolicyVersion, Workers]]] = {phase: {} for phase in Phase}
        self._callers: dict[int, PolicyCaller] = {}
        self.workers: list[Workers] = []
        for worker, policies in by_worker.items():
            version_workers = workers(_configuration(worker, policies))
            caller = version_workers if caching is None else caching(version_workers)
            self.workers.append(version_workers)
            for policy in policies:
                version = PolicyVersion(policy=policy, worker=worker)
                self._versions[policy.phase][policy.qualified_name] = version, version_workers
                self._callers[id(policy)] = caller

    async def start(self) -> None:
        """Start the workers. The configuration in force shares them, so their descriptions are known at once."""
        for workers in self.workers:
            await workers.start()

    async def close(self) -> None:
        """Close the workers."""
        for workers in self.workers:
            await workers.close()

    def versions(self) -> tuple[PolicyVersion, ...]:
        """All versions, also those that cannot be called any more."""
        return tuple(version for kept in self._versions.values() for version, _ in kept.values())

    def in_force(self, phase: Phase) -> dict[str, tuple[PolicyVersion, Described]]:
        """The versions of a phase that can be called, by qualified name, each with its availability."""
        return {name: kept for name in self._versions[phase] if (kept := self.version(phase, name)) is not None}

    def version(self, phase: Phase, name: str) -> tuple[PolicyVersion, Described] | None:
        """The version of the policy with this qualified name, and its availability, if it can be called."""
        kept = self._versions[phase].get(name)
        availability = None if kept is None else kept[1].availabilities(phase).get(name)
        return (kept[0], availability) if kept is not None and isinstance(availability, Described) else None

    def in_front_of(self, others: PolicyCaller) -> PolicyCaller:
        """A caller that calls each version's own workers, and ``others`` for all other policies."""
        return _Callers(self._callers, others)


class _Callers:
    """Delegates to each policy's own caller, looked up by identity: versions of one policy have the same name."""

    __slots__ = ("_callers", "_others")

    def __init__(self, callers: dict[int, PolicyCaller], others: PolicyCaller) -> None:
        self._callers: Final = callers
        self._others: Final = others

    def known(self, call: PolicyCall) -> tuple[Verdict, Origin] | None:
        """See PolicyCaller."""
        return self._of(call).known(call)

    def call(self, call: PolicyCall, waiter: CallWaiter) -> Callable[[], object]:
        """See PolicyCaller."""
        return self._of(call).call(call, waiter)

    def disagreed(self, call: PolicyCall, version: str) -> None:
        """See PolicyCaller."""
        self._of(call).disagreed(call, version)

    def _of(self, call: PolicyCall) -> PolicyCaller:
        return self._callers.get(id(call.policy), self._others)


def _configuration(worker: Worker, policies: Sequence[Policy]) -> Configuration:
    return Configuration(
        workers={worker.name: worker},
        mutating=tuple(policy for policy in policies if policy.phase is Phase.MUTATING),
        validating=tuple(policy for policy in policies if policy.phase is Phase.VALIDATING),
    )
