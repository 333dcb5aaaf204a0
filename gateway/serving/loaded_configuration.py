"""One configuration, at work: its entries, its plans, its workers; and who still holds it.

A review is decided by one loaded configuration from its first moment to its last, however often the configuration
changes meanwhile: plan, workers and namespaces are of one piece. So one that is followed by another lives on until its
last review is decided.

A target is a path: all policies of a phase (``/mutate``), or those of one entry (``/mutate/ENTRY``). Which targets
there are is the configuration's to say; nobody else's words make one.
"""

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import NamedTuple, Optional

from gateway.deciding.asking import Asker
from gateway.deciding.plan import Described, Plan, Standing, make_plan
from gateway.deciding.verdicts import Failure
from gateway.policies.document import SourceText
from gateway.policies.entries import Entries, make_entries
from gateway.policies.model import Configuration, Phase, Policy
from gateway.policies.shadows import shadow_of
from gateway.serving.driver import Namespaces
from gateway.serving.hook_paths import HookPath, hook_entries
from gateway.transports.limits import TransportLimits
from gateway.transports.pool import WorkerPool
from gateway.transports.workers import Workers


class Target(NamedTuple):
    """What a request is put to: the phase, and the name of an entry, or None for all policies of the phase."""

    phase: Phase
    entry: str | None = None


class Blocker(NamedTuple):
    """A policy that could be asked before and cannot be now, and why. ``policy`` is its qualified name."""

    phase: Phase
    policy: str
    why: str

    def __str__(self) -> str:
        """One line for people."""
        return f"{self.phase} policy {self.policy}: {self.why}"


class LoadedConfiguration:
    """Serves one configuration.

    Args:
        configuration: complete (not ``fatal``).
        pool: has the workers, for this configuration and those before and after it.
        limits: of the calls.
        texts: what the configuration was read from.
        before: the one that this one is to follow, if any.
        asking: puts a cache in front of the workers; None: there is none.
        changed: called in the loop whenever the standing of a policy may have changed.
    """

    def __init__(  # noqa: PLR0913 - all but the first two by name
        self,
        configuration: Configuration,
        pool: WorkerPool,
        *,
        limits: TransportLimits | None = None,
        texts: Sequence[SourceText] = (),
        before: Optional["LoadedConfiguration"] = None,
        asking: Callable[[Workers], Asker] | None = None,
        changed: Callable[[], object] = lambda: None,
    ) -> None:
        if configuration.fatal:
            raise ValueError("a configuration whose chain is not known must not be served")
        self.configuration = configuration
        self.texts = tuple(texts)
        self.loaded = datetime.now(UTC)
        self.entries: Entries = make_entries(configuration)
        self.workers: Workers = Workers(
            configuration,
            limits,
            changed=self._standings_changed,
            pool=pool,
            before=None if before is None else before.workers,
        )
        self.asker: Asker = self.workers if asking is None else asking(self.workers)
        self._changed = changed
        self._plans: dict[Target, Plan] = {}
        self._shadows = tuple(
            (policy, shadow) for policy in self.policies() if (shadow := shadow_of(policy)) is not None
        )
        self._shadow_plans: dict[int, Plan] = {}
        self._hooks = {path: Target(*entry) for path, entry in hook_entries(configuration, self.entries).items()}
        self._reviews = 0
        self._idle = asyncio.Event()
        self._idle.set()
        self._make_plans()

    # --------------------------------------------------------------------------------------------- for a review

    @property
    def namespaces(self) -> Namespaces:
        """The labels of the namespaces that are known, by name."""
        return self.configuration.namespaces

    def knows(self, target: Target) -> bool:
        """Whether there is such a target."""
        return target in self._plans

    def hook(self, path: HookPath) -> Target | None:
        """What a path of shell-operator's leads to; None: nothing."""
        return self._hooks.get(path)

    def plan(self, target: Target) -> Plan | None:
        """Who judges there, as of this moment; None if there is no such target."""
        return self._plans.get(target)

    @property
    def shadows(self) -> Asker:
        """Asks the workers of the policies' shadows."""
        return self.workers.shadows

    def shadow_plan(self, policy: Policy) -> Plan | None:
        """The policy's shadow, alone, as of this moment; None: it has none, or is not one of the policies here."""
        return self._shadow_plans.get(id(policy))

    def begin(self) -> None:
        """One more review is decided here."""
        self._reviews += 1
        self._idle.clear()

    def end(self) -> None:
        """One review less is."""
        self._reviews -= 1
        if not self._reviews:
            self._idle.set()

    # ---------------------------------------------------------------------------------------------- for its life

    async def start(self, *, wait_seconds: float) -> None:
        """Reach the workers, and wait at most so long until all of them are described."""
        await self.workers.start(wait_seconds=wait_seconds)

    async def idle(self) -> None:
        """Wait until no review is decided here."""
        await self._idle.wait()

    async def close(self) -> None:
        """Let go of the workers."""
        self._changed = lambda: None
        await self.workers.close()

    def entry_names(self) -> Iterator[Target]:
        """The targets that are entries."""
        return (Target(phase, entry.name) for phase in Phase for entry in self.entries.of(phase))

    def policies(self) -> tuple[Policy, ...]:
        """All policies."""
        return (*self.configuration.mutating, *self.configuration.validating)

    def blockers(self, before: "LoadedConfiguration") -> tuple[Blocker, ...]:
        """The policies that can be asked in ``before``, are here too, and cannot be asked here.

        "A policy that is invalid, or whose worker is unknown, undescribed or rejects its settings, keeps its last good
        version": as long as there is one of them, this configuration must not follow that one. What is new, or could
        not be asked before, has no good version to lose, and holds nobody up.
        """
        return tuple(
            Blocker(phase, policy.qualified_name, _why(self.workers.standings(phase).get(policy.qualified_name)))
            for phase in Phase
            for policy in self.configuration.policies(phase)
            if _can_be_asked(before.workers.standings(phase), policy)
            and not _can_be_asked(self.workers.standings(phase), policy)
        )

    def _standings_changed(self) -> None:
        self._make_plans()
        self._changed()

    def _make_plans(self) -> None:
        for policy, shadow in self._shadows:
            standings = self.workers.shadows.standings(policy.phase)
            # Whatever its policy judges it judges: nobody asks again whether it is meant.
            self._shadow_plans[id(policy)] = make_plan(policy.phase, (shadow,), standings, registered=True)
        for phase in Phase:
            standings = self.workers.standings(phase)
            self._plans[Target(phase)] = make_plan(phase, self.configuration.policies(phase), standings)
            for entry in self.entries.of(phase):
                plan = make_plan(phase, entry.policies, standings, registered=entry.isolated)
                self._plans[Target(phase, entry.name)] = plan


def _can_be_asked(standings: Mapping[str, Standing], policy: Policy) -> bool:
    return isinstance(standings.get(policy.qualified_name), Described)


def _why(standing: Standing | None) -> str:
    return standing.message if isinstance(standing, Failure) else "its worker has not been described yet"
