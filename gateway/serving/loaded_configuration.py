"""A loaded configuration: its entries, plans and workers, and the number of reviews that use it.

One loaded configuration decides a review from start to end, however often the configuration changes meanwhile: plan,
workers and namespaces belong together. So a replaced configuration lives until its last review is decided.
"""

import asyncio
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import UTC, datetime
from typing import Optional, Protocol

from msgspec.structs import replace

from gateway.engine.availability import UnavailablePolicy, unavailable_policies
from gateway.engine.plan import Described, Plan
from gateway.engine.policy_caller import PolicyCaller
from gateway.hooks.configuration.paths import HookPath, hook_entries
from gateway.policies.decoding.texts import SourceText
from gateway.policies.model import Configuration, Phase, Policy
from gateway.registration.entries import Entries, make_entries
from gateway.registration.former_entries import FormerEntry, former_entries, learnt_entries
from gateway.registration.registered_entries import RegisteredEntries
from gateway.serving.driver import FactSource, NotInCluster
from gateway.serving.last_good import LastGood, PolicyVersion
from gateway.serving.plans import UNKNOWN_REVISION, Plans, PoliciesInForce, Target
from gateway.transports.limits import TransportLimits
from gateway.transports.worker_pool import WorkerPool
from gateway.transports.workers import Workers


class LoadedConfiguration:
    """Serves one configuration.

    Args:
        configuration: complete (not ``fatal``).
        pool: shares the workers between this configuration and those before and after it.
        limits: of the calls.
        texts: what the configuration was read from.
        loaded: the time at which it was loaded; None: now.
        before: the configuration that this one replaces, if any.
        caching: puts a cache in front of the workers; None: there is no cache.
        changed: called in the loop whenever the availability of a policy may have changed.
        facts: of the cluster; None: there is no cluster.
        keep: which former entries can still be called, of all; None: all of them.
        entries: of the configuration; None: they are made, which takes long for thousands of policies.
    """

    def __init__(  # noqa: PLR0913 - all but the first two by name
        self,
        configuration: Configuration,
        pool: WorkerPool,
        *,
        limits: TransportLimits | None = None,
        texts: Sequence[SourceText] = (),
        loaded: datetime | None = None,
        before: Optional["LoadedConfiguration"] = None,
        caching: Callable[[Workers], PolicyCaller] | None = None,
        changed: Callable[[], object] = lambda: None,
        facts: FactSource | None = None,
        keep: Callable[[tuple[FormerEntry, ...]], tuple[FormerEntry, ...]] | None = None,
        entries: Entries | None = None,
    ) -> None:
        if configuration.fatal:
            raise ValueError("a configuration whose chain is not known must not be served")
        self.configuration = configuration
        self.texts = tuple(texts)
        self.loaded = loaded or datetime.now(UTC)
        self.entries: Entries = entries or make_entries(configuration)
        self.workers: Workers = Workers(
            configuration,
            limits,
            changed=self._availabilities_changed,
            pool=pool,
            before=() if before is None else before.all_workers,
        )
        self._last_good: LastGood | None = None
        self._pool, self._limits, self._caching = pool, limits, caching
        self._names = {
            phase: {policy.qualified_name: policy for policy in configuration.policies(phase)} for phase in Phase
        }
        self.policy_caller: PolicyCaller = self.workers if caching is None else caching(self.workers)
        self.uncached: PolicyCaller = self.workers
        """Calls the workers of policies that have no cache."""
        self.facts: FactSource = facts or NotInCluster(configuration.namespaces)
        """Looks up what a review needs to know of the cluster."""
        self.namespaces = self.facts.namespaces
        """The labels of the namespaces that need no lookup, by name. In a cluster, Namespace documents are ignored."""
        self._changed = changed
        self.former: tuple[FormerEntry, ...] = () if before is None else self._former(before)
        """The entries of earlier configurations that can still be called, the newest first; then those learnt."""
        if keep is not None:
            self.former = keep(self.former)
        self._plans = Plans(
            configuration, self.entries, former=self.former, shadows=self.workers.shadows.availabilities
        )
        self.targets = self._plans.by_path()
        """What can be called, by path."""
        self.has_shadows = self._plans.has_shadows
        self._hooks = {path: Target(*entry) for path, entry in hook_entries(configuration, self.entries).items()}
        self._reviews = 0
        self._idle = asyncio.Event()
        self._idle.set()

    # --------------------------------------------------------------------------------------------- for a review

    def _former(self, before: "LoadedConfiguration") -> tuple[FormerEntry, ...]:
        return former_entries(before.former, (before.configuration, before.entries), (self.configuration, self.entries))

    def learn(self, registered: Iterable[tuple[Phase, RegisteredEntries]]) -> None:
        """Serve what is registered too, by phase, unless it is known: a registration from before this process."""
        known = {each.key for each in self.former}
        after = self.configuration, self.entries
        learnt = tuple(
            each
            for phase, entries in registered
            for each in learnt_entries(phase, entries, after)
            if each.key not in known
        )
        if learnt:
            self.former = (*self.former, *learnt)
            self._plans.add_former(self.configuration, learnt)
            self.targets = self._plans.by_path()

    def is_outdated(self, target: Target) -> bool:
        """Whether the target is called by a registration that is not the one of this configuration."""
        return target.revision == UNKNOWN_REVISION or target in self._plans.former

    def hook(self, path: HookPath) -> Target | None:
        """The target at one of shell-operator's paths; None if there is none."""
        return self._hooks.get(path)

    def plan(self, target: Target) -> Plan | None:
        """The current plan of the target; None if there is no such target."""
        plan = self._plans.made.get(target)
        return self._plans.of(target, self._in_force) if plan is None else plan

    @property
    def shadows(self) -> PolicyCaller:
        """Calls the workers of the policies' shadows."""
        return self.workers.shadows

    def shadow_plan(self, policy: Policy) -> Plan | None:
        """The current plan of the policy's shadow alone; None: it has none, or the policy is not configured here."""
        return self._plans.of_shadow(policy)

    def begin(self) -> None:
        """Count a review that this configuration decides."""
        self._reviews += 1
        self._idle.clear()

    def end(self) -> None:
        """Stop counting a review."""
        self._reviews -= 1
        if not self._reviews:
            self._idle.set()

    # ---------------------------------------------------------------------------------------------- for its life

    async def start(self, *, wait_seconds: float) -> None:
        """Connect to the workers, and wait at most ``wait_seconds`` until all of them are described."""
        await self.workers.start(wait_seconds=wait_seconds)
        await self._plans.make_all(self._in_force)

    async def follow(self, before: "LoadedConfiguration") -> None:
        """Keep, for each policy that cannot be called here, the version that ``before`` can call, if there is one.

        Call it once, after ``start`` and before this configuration is in force.
        """
        await asyncio.sleep(0)
        versions = [
            # Callers tell versions of a policy apart by identity, also that of this very configuration.
            replace(version, policy=replace(policy)) if version.policy is policy else version
            for policy in self.policies()
            if not self._can_be_called(policy) and (version := before.version(policy)) is not None
        ]
        if not versions:
            return
        await asyncio.sleep(0)

        def workers(configuration: Configuration) -> Workers:
            return Workers(
                configuration,
                self._limits,
                changed=self._availabilities_changed,
                pool=self._pool,
                before=before.all_workers,
            )

        self._last_good = LastGood(versions, workers, self._caching)
        await asyncio.sleep(0)
        await self._last_good.start()
        self.policy_caller = self._last_good.in_front_of(self.policy_caller)
        self.uncached = self._last_good.in_front_of(self.uncached)
        self._plans.availabilities_changed()
        await self._plans.make_all(self._in_force)

    async def idle(self) -> None:
        """Wait until this configuration decides no review."""
        await self._idle.wait()

    async def close(self) -> None:
        """Close the workers."""
        self._changed = lambda: None
        await self.workers.close()
        if self._last_good is not None:
            await self._last_good.close()

    def entry_names(self) -> Iterator[tuple[Phase, str]]:
        """The phase and name of each entry, and of each former entry."""
        yield from ((phase, entry.name) for phase in Phase for entry in self.entries.of(phase))
        yield from ((each.phase, each.name) for each in self.former)

    def policies(self) -> tuple[Policy, ...]:
        """All policies as they are configured."""
        return (*self.configuration.mutating, *self.configuration.validating)

    def policies_in_force(self) -> tuple[Policy, ...]:
        """All policies, each in the version that is called; as it is configured, if no version can be called."""
        versions = ((policy, self.version(policy)) for policy in self.policies())
        return tuple(policy if version is None else version.policy for policy, version in versions)

    def has(self, policy: Policy) -> bool:
        """Whether a policy of this name is configured."""
        return policy.qualified_name in self._names[policy.phase]

    @property
    def all_workers(self) -> tuple[Workers, ...]:
        """The workers of the configuration, and those of last good versions."""
        return (self.workers, *(() if self._last_good is None else self._last_good.workers))

    def version(self, policy: Policy) -> PolicyVersion | None:
        """The version of a policy that is called here: as it is configured here, else its last good one, else None.

        Args:
            policy: in any version.
        """
        own = self._names[policy.phase].get(policy.qualified_name)
        if own is None:
            return None
        if self._can_be_called(own):
            return PolicyVersion(policy=own, worker=self.configuration.workers[own.worker])
        kept = None if self._last_good is None else self._last_good.version(policy.phase, policy.qualified_name)
        return None if kept is None else kept[0]

    def unavailable(self) -> tuple[UnavailablePolicy, ...]:
        """The policies that cannot be called as they are configured."""
        return tuple(
            each
            for phase in Phase
            for each in unavailable_policies(
                self.configuration.policies(phase), self.workers.availabilities(phase), last_good=self._kept(phase)
            )
        )

    @property
    def is_superseding(self) -> bool:
        """Whether a last good version is kept of a policy that can now be called as it is configured."""
        kept = () if self._last_good is None else self._last_good.versions()
        return any(self._can_be_called(version.policy) for version in kept)

    def _can_be_called(self, policy: Policy) -> bool:
        """Whether the policy can be called as it is configured."""
        return isinstance(self.workers.availabilities(policy.phase).get(policy.qualified_name), Described)

    def _kept(self, phase: Phase) -> dict[str, tuple[PolicyVersion, Described]]:
        """The last good versions that are called, by qualified name."""
        found = {} if self._last_good is None else self._last_good.in_force(phase)
        return {name: kept for name, kept in found.items() if not self._can_be_called(kept[0].policy)}

    def _in_force(self, phase: Phase) -> PoliciesInForce:
        kept = self._kept(phase)
        availabilities = self.workers.availabilities(phase)
        if not kept:
            return PoliciesInForce(availabilities=availabilities, versions={})
        return PoliciesInForce(
            availabilities={**availabilities, **{name: availability for name, (_, availability) in kept.items()}},
            versions={name: version.policy for name, (version, _) in kept.items()},
        )

    def _availabilities_changed(self) -> None:
        self._plans.availabilities_changed()
        self._changed()


class Configurations(Protocol):
    """Holds the configuration in force."""

    @property
    def current(self) -> LoadedConfiguration:
        """The configuration that is in force now."""
