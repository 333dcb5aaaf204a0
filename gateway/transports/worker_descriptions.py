"""The descriptions of one worker, for one configuration: the availability of each policy under each description.

A worker may have many replicas, and during a rolling update they have different descriptions. Each distinct description
is **validated** once: that gives every policy an availability (``description_validator``). Then

* the policy's availability is the one that most connections give it, of those under which it can be called; in a tie,
  or if no replica is connected, it stays. If it can be called under none, its failure is the most frequent one;
* a call may go to each replica that has the policy with the same inputs and writes as the call's version, because its
  document was made for these;
* the version is **settled** while all connected replicas have it, and no answer was in another one lately
  (``version_skew``). While no replica is connected it is settled too, because none can have another version; then a
  cached verdict may replace that of an unavailable worker (``staleIfError``). It is also settled while no description
  of a connected replica is validated: a worker that was restarted in another version is unavailable until then.

A configuration that replaces another one takes over the availability of equal policies.
"""

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final, NoReturn

import structlog
from msgspec import Struct

from gateway.engine.plan import Described, PolicyAvailability
from gateway.policies.model import Phase, Policy
from gateway.policies.workers.targets import Worker
from gateway.scopes.inputs import Inputs
from gateway.scopes.writes import Writes
from gateway.transports.description_validator import DescriptionValidator
from gateway.transports.descriptions import Description
from gateway.transports.worker_channel import DescribableChannel, SettingsValidator, WorkerError

_LOG: Final = structlog.get_logger(__name__)

RETRY_SECONDS: Final = (0.25, 5.0)
"""First and longest pause before the settings are validated again after a failure."""

AT_ONCE: Final = 250
"""Different policies for which an availability is chosen in one iteration of the loop: some 3 ms."""

KEPT: Final = 8
"""Validated descriptions that are kept. A call may have a version that no replica has any more."""

PolicyKey = tuple[Phase, str, bytes, Inputs, Writes]
"""The properties of a policy that determine its availability under one description."""

_QualifiedPolicy = tuple[Phase, str]


class _Chosen(Struct, frozen=True, kw_only=True, eq=False):
    """What is chosen for equal policies: their availability, if any, and the descriptions that fit each version."""

    availability: PolicyAvailability | None
    fits: Mapping[str, frozenset[Description]]


class WorkerDescriptions:
    """Keeps the availability of a worker's policies.

    Args:
        worker: the worker.
        configured: the same worker in the configuration.
        policies: its policies.
        characters: how much of the worker's text one message keeps.
        reported: called with equal policies and their availability.
        known: called when the availability of each policy is known.
        changed: called after the availability of some policies was reported.
        failed: called with the reason, one sentence, why the worker cannot be described.
        before: the descriptions of the same worker in previous configurations.
    """

    def __init__(  # noqa: PLR0913 - all by name
        self,
        *,
        worker: DescribableChannel,
        configured: Worker,
        policies: Sequence[Policy],
        characters: int,
        reported: Callable[[Sequence[Policy], PolicyAvailability], object],
        known: Callable[[], object],
        changed: Callable[[], object],
        failed: Callable[[str], object],
        before: Sequence["WorkerDescriptions"] = (),
    ) -> None:
        self._worker = worker
        self._configured = configured
        self._alike: dict[PolicyKey, list[Policy]] = {}
        for policy in policies:
            self._alike.setdefault(policy_key(policy), []).append(policy)
        self._characters = characters
        self._reported = reported
        self._known = known
        self._changed = changed
        self._failed = failed
        self._validated: dict[Description, dict[PolicyKey, PolicyAvailability]] = {}
        self._chosen: dict[PolicyKey, _Chosen] = {}
        self._chosen_of: dict[_QualifiedPolicy, _Chosen] = {}
        self._woken = asyncio.Event()
        self.last: tuple[Description, ...] = next((each.last for each in before if each.last), ())
        """The validated descriptions of the replicas that can be called; while there is none, of the last ones."""
        self._inherit(before)

    def fits(self, policy: Policy, version: str) -> frozenset[Description] | None:
        """The descriptions whose replicas may be called for a policy version; None: it is unknown, so all may."""
        chosen = self._chosen_of.get((policy.phase, policy.qualified_name))
        return None if chosen is None else chosen.fits.get(version)

    def is_settled(self, policy: Policy, version: str) -> bool:
        """Whether all replicas that can answer are known to have this version."""
        chosen = self._chosen_of.get((policy.phase, policy.qualified_name))
        return (
            chosen is not None
            and isinstance(chosen.availability, Described)
            and chosen.availability.version == version
            and self._worker.version_skew.settled
            and not self._worker.is_doubted
            and self._are_of(version, policy)
        )

    def _are_of(self, version: str, policy: Policy) -> bool:
        live = self._worker.live
        if all(description.version_of(policy.policy) == version for description in live):
            return True
        return not any(description in self._validated for description in live)

    def is_known(self, policy: Policy, version: str) -> bool:
        """Whether a connected replica has described this version."""
        return any(description.version_of(policy.policy) == version for description in self._worker.live)

    def disagreed(self) -> bool:
        """Record an answer in another version than the described one. Returns whether it is the first."""
        return self._worker.version_skew.disagreed()

    async def keep(self) -> NoReturn:
        """Keep the descriptions up to date, until cancelled."""
        pause = RETRY_SECONDS[0]
        self._worker.listen(self._woken.set)
        try:
            while True:
                self._woken.clear()
                failed = await self._validate_all()
                await self._choose()
                if failed:
                    _LOG.warning("a worker cannot be described", worker=self._worker.name, error=failed, again_in=pause)
                    self._failed(failed)
                    await asyncio.sleep(pause)
                    pause = min(2 * pause, RETRY_SECONDS[1])
                    continue
                pause = RETRY_SECONDS[0]
                if not self._worker.live and self._worker.why:
                    self._failed(self._worker.why)
                await self._woken.wait()
        finally:
            self._worker.unlisten(self._woken.set)

    async def _validate_all(self) -> str:
        """Validate each description. Returns why one of them failed, or an empty text."""
        failed = ""
        for description in self._worker.live:
            why = ""
            for validator in self._worker.all_with(description):
                why = await self._try_validate(description, validator)
                if not why:
                    break
            failed = failed or why
        return failed

    async def _try_validate(self, description: Description, validator: SettingsValidator) -> str:
        """Validate a description with one replica. Returns why that failed, or an empty text."""
        try:
            await self._validate(description, validator)
        except WorkerError as error:
            return str(error)
        except Exception as error:  # noqa: BLE001 - logged, and tried again
            _LOG.exception("describing a worker failed inside the gateway", worker=self._worker.name)
            return f"{type(error).__name__} in the gateway; see the gateway's log"
        return ""

    async def _validate(self, description: Description, validator: SettingsValidator) -> None:
        """Validate a description for all policies.

        Raises:
            WorkerError: the worker cannot validate settings.
        """
        validated = self._validated.get(description, {})
        missing = {key: policies for key, policies in self._alike.items() if key not in validated}
        if description in self._validated and not missing:
            return
        comparison = DescriptionValidator(validator, self._configured, description.message, self._characters)
        availabilities = await comparison.availabilities(missing.values())
        found = dict(zip(missing, availabilities, strict=True))
        self._validated[description] = validated | found
        _LOG.info(
            "a worker is described",
            worker=self._worker.name,
            version=comparison.version,
            policies=comparison.policies,
        )

    async def _choose(self) -> None:
        """Choose the availability of each policy: in slices, and for all of them at once."""
        counted = {each: number for each, number in self._worker.described().items() if each in self._validated}
        # A connected replica that is not serving is better than none.
        counted = counted or {each: 1 for each in self._worker.live if each in self._validated}
        self.last = tuple(counted) or self.last
        self._forget(counted)
        chosen: dict[PolicyKey, _Chosen] = {}
        for number, key in enumerate(self._alike, 1):
            # A description that another configuration validated has no availability of a policy that is new here.
            candidates = [
                (self._validated[each][key], count) for each, count in counted.items() if key in self._validated[each]
            ]
            before = self._availability(key)
            chosen[key] = self._fitting(key, _most(candidates, before) if candidates else before)
            if not number % AT_ONCE:
                await asyncio.sleep(0)
        has_changed = self._set(chosen)
        if counted and None not in map(self._availability, self._alike):
            self._known()
        if has_changed:
            self._changed()

    def _forget(self, counted: dict[Description, int]) -> None:
        """Forget all descriptions except those of connected replicas, and the latest others."""
        for description in tuple(self._validated):
            if len(self._validated) <= max(KEPT, len(counted)):
                return
            if description not in counted and description not in self._worker.live:
                del self._validated[description]

    def _availability(self, key: PolicyKey) -> PolicyAvailability | None:
        chosen = self._chosen.get(key)
        return None if chosen is None else chosen.availability

    def _set(self, chosen: Mapping[PolicyKey, "_Chosen"]) -> bool:
        """Set and report what is chosen. Returns whether any availability has changed."""
        has_changed = False
        for key, each in chosen.items():
            before, self._chosen[key] = self._availability(key), each
            for policy in self._alike[key]:
                self._chosen_of[policy.phase, policy.qualified_name] = each
            if each.availability is not None and each.availability != before:
                self._reported(self._alike[key], each.availability)
                has_changed = True
        return has_changed

    def _fitting(self, key: PolicyKey, availability: PolicyAvailability | None) -> "_Chosen":
        """This availability, and the descriptions whose replicas may be called, by version."""
        described = {
            each: found
            for each, validated in self._validated.items()
            if isinstance(found := validated.get(key), Described)
        }
        fits = {
            one.version: frozenset(
                each for each, other in described.items() if (other.inputs, other.writes) == (one.inputs, one.writes)
            )
            for one in sorted(described.values(), key=lambda each: each == availability)
        }
        return _Chosen(availability=availability, fits=fits)

    def _inherit(self, before: Sequence["WorkerDescriptions"]) -> None:
        if not before:
            return
        old: dict[PolicyKey, PolicyAvailability] = {}
        for each in before:
            self._take_over(each._validated)  # noqa: SLF001 - of the same class
            for key, chosen in each._chosen.items():  # noqa: SLF001
                if isinstance(chosen.availability, Described):
                    old[key] = chosen.availability
        inherited = {key: self._fitting(key, old[key]) for key in self._alike if key in old}
        self._set(inherited)
        if len(inherited) == len(self._alike):
            self._known()

    def _take_over(self, validated: Mapping[Description, Mapping[PolicyKey, PolicyAvailability]]) -> None:
        """Take over the availabilities of equal policies that can be called."""
        for description, availabilities in validated.items():
            known: dict[PolicyKey, PolicyAvailability] = {
                key: availability
                for key, availability in availabilities.items()
                if key in self._alike and isinstance(availability, Described)
            }
            if known:
                self._validated[description] = self._validated.get(description, {}) | known


def known_before(found: Iterable[WorkerDescriptions | None]) -> tuple[WorkerDescriptions, ...]:
    """The descriptions without None."""
    return tuple(each for each in found if each is not None)


def policy_key(policy: Policy) -> PolicyKey:
    """What determines a policy's availability."""
    return policy.phase, policy.policy, policy.settings, policy.inputs, policy.writes


def _most(
    availabilities: list[tuple[PolicyAvailability, int]], before: PolicyAvailability | None
) -> PolicyAvailability:
    """The availability that most connections give: callable ones first, and the one before if it is among the most."""
    usable = [
        (availability, count) for availability, count in availabilities if isinstance(availability, Described)
    ] or availabilities
    totals: list[tuple[PolicyAvailability, int]] = []
    for availability, _ in usable:
        if all(availability != other for other, _ in totals):
            totals.append((availability, sum(count for other, count in usable if other == availability)))
    most = max(count for _, count in totals)
    leading = [availability for availability, count in totals if count == most]
    return next((availability for availability in leading if availability == before), leading[0])
