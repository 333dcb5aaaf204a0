"""The descriptions of one worker, for one configuration: the availability of each policy under each description.

A worker may have many replicas, and during a rolling update they have different descriptions. Each distinct description
is **worked out** once: it gives every policy an availability (``description_validator``). Then

* the policy's availability is the one that most connections give it, of those under which it can be called; if two are
  even, or no replica is connected, it stays. If it can be called under none, its failure is that of the most;
* a call may go to each replica that holds the policy with the same inputs and writes as the call's version: its
  document was made for these;
* the version is **settled** while all connected replicas have it, and no answer was in another one lately
  (``version_skew``). While no replica is connected it is settled too, because none can have another version; then a
  cached verdict may replace that of an unavailable worker (``staleIfError``). It is also settled while no description
  of a connected replica is worked out: a worker that was restarted in another version is unavailable until then.

A configuration that replaces another one takes over the availability of equal policies.
"""

import asyncio
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Final, NoReturn

import structlog

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

KEPT: Final = 8
"""Descriptions that stay worked out. A call may have a version that no replica has any more."""

Question = tuple[Phase, str, bytes, Inputs, Writes]
"""A policy of the worker, with settings and grants: equal ones have equal availabilities under one description."""

_Named = tuple[Phase, str]


class WorkerDescriptions:
    """Knows a worker.

    Args:
        worker: the worker.
        configured: the same worker as the configuration has it.
        policies: which are put to it.
        characters: how much of the worker's own words is kept in one message.
        reported: takes a policy's availability.
        known: called when the availability of each policy is known.
        changed: called after the availability of some policies was reported.
        failed: told, in one sentence, why it cannot be described.
        before: what was known of the same worker before.
    """

    def __init__(  # noqa: PLR0913 - all by name
        self,
        *,
        worker: DescribableChannel,
        configured: Worker,
        policies: Sequence[Policy],
        characters: int,
        reported: Callable[[Policy, PolicyAvailability], object],
        known: Callable[[], object],
        changed: Callable[[], object],
        failed: Callable[[str], object],
        before: Sequence["WorkerDescriptions"] = (),
    ) -> None:
        self._worker = worker
        self._configured = configured
        self._policies = policies
        self._characters = characters
        self._reported = reported
        self._known = known
        self._changed = changed
        self._failed = failed
        self._worked: dict[Description, dict[Question, PolicyAvailability]] = {}
        self._elected: dict[_Named, PolicyAvailability] = {}
        self._fits: dict[_Named, dict[str, frozenset[Description]]] = {}
        self._woken = asyncio.Event()
        self._inherit(before)

    def fits(self, policy: Policy, version: str) -> frozenset[Description] | None:
        """The descriptions whose replicas may judge a policy in a version; None: the version is unknown, so all may."""
        versions = self._fits.get((policy.phase, policy.qualified_name))
        return None if versions is None else versions.get(version)

    def is_settled(self, policy: Policy, version: str) -> bool:
        """Whether all replicas that can answer are known to have this version."""
        availability = self._elected.get((policy.phase, policy.qualified_name))
        return (
            isinstance(availability, Described)
            and availability.version == version
            and self._worker.version_skew.settled
            and not self._worker.is_doubted
            and self._are_of(version, policy)
        )

    def _are_of(self, version: str, policy: Policy) -> bool:
        live = self._worker.live
        if all(description.version_of(policy.policy) == version for description in live):
            return True
        return not any(description in self._worked for description in live)

    def is_known(self, policy: Policy, version: str) -> bool:
        """Whether a connected replica has described this version."""
        return any(description.version_of(policy.policy) == version for description in self._worker.live)

    def disagreed(self) -> bool:
        """Record an answer in another version than the described one. Returns whether it is the first."""
        return self._worker.version_skew.disagreed()

    def elected(self) -> dict[Question, PolicyAvailability]:
        """The availability of each distinct policy."""
        return {
            _question(policy): availability
            for policy in self._policies
            if (availability := self._elected.get((policy.phase, policy.qualified_name))) is not None
        }

    async def keep(self) -> NoReturn:
        """Keep the descriptions up to date, until cancelled."""
        pause = RETRY_SECONDS[0]
        self._worker.listen(self._woken.set)
        try:
            while True:
                self._woken.clear()
                failed = await self._work_out_all()
                self._elect()
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

    async def _work_out_all(self) -> str:
        """Work out each description. Returns why one of them failed, or an empty text."""
        failed = ""
        for description in self._worker.live:
            why = ""
            for judge in self._worker.all_with(description):
                why = await self._tried(description, judge)
                if not why:
                    break
            failed = failed or why
        return failed

    async def _tried(self, description: Description, judge: SettingsValidator) -> str:
        """Work out a description with one replica. Returns why that failed, or an empty text."""
        try:
            await self._work_out(description, judge)
        except WorkerError as error:
            return str(error)
        except Exception as error:  # noqa: BLE001 - logged, and tried again
            _LOG.exception("describing a worker failed inside the gateway", worker=self._worker.name)
            return f"{type(error).__name__} in the gateway; see its log"
        return ""

    async def _work_out(self, description: Description, judge: SettingsValidator) -> None:
        """Work out a description: validate it for all policies.

        Raises:
            WorkerError: the worker cannot validate settings.
        """
        worked = self._worked.get(description, {})
        missing = [policy for policy in self._policies if _question(policy) not in worked]
        if description in self._worked and not missing:
            return
        calling = DescriptionValidator(judge, self._configured, description.message, self._characters)
        availabilities = await calling.availabilities(missing)
        found = dict(zip(map(_question, missing), availabilities, strict=True))
        self._worked[description] = worked | found
        _LOG.info(
            "a worker is described",
            worker=self._worker.name,
            version=calling.version,
            policies=calling.policies,
        )

    def _elect(self) -> None:
        """Choose the availability of each policy."""
        counted = {each: number for each, number in self._worker.described().items() if each in self._worked}
        # A connected replica that is not serving is better than none.
        counted = counted or {each: 1 for each in self._worker.live if each in self._worked}
        self._forget(counted)
        elected_anew = False
        for policy in self._policies:
            named, question = (policy.phase, policy.qualified_name), _question(policy)
            # A description that another configuration worked out has no availability of a policy that is new here.
            said = [
                (self._worked[each][question], number)
                for each, number in counted.items()
                if question in self._worked[each]
            ]
            if said:
                before = self._elected.get(named)
                availability = _most(said, before)
                if availability != before:
                    self._elected[named] = availability
                    self._reported(policy, availability)
                    elected_anew = True
            self._find_fits(policy)
        if counted and all((policy.phase, policy.qualified_name) in self._elected for policy in self._policies):
            self._known()
        if elected_anew:
            self._changed()

    def _forget(self, counted: dict[Description, int]) -> None:
        """Forget all descriptions except those of connected replicas, and the latest others."""
        for description in tuple(self._worked):
            if len(self._worked) <= max(KEPT, len(counted)):
                return
            if description not in counted and description not in self._worker.live:
                del self._worked[description]

    def _find_fits(self, policy: Policy) -> None:
        named, question = (policy.phase, policy.qualified_name), _question(policy)
        availabilities = {
            each: availability
            for each, worked in self._worked.items()
            if isinstance(availability := worked.get(question), Described)
        }
        own = self._elected.get(named)
        self._fits[named] = {
            availability.version: frozenset(
                each
                for each, other in availabilities.items()
                if (other.inputs, other.writes) == (availability.inputs, availability.writes)
            )
            for availability in sorted(availabilities.values(), key=lambda each: each == own)
        }

    def _inherit(self, before: Sequence["WorkerDescriptions"]) -> None:
        if not before:
            return
        questions = {_question(policy) for policy in self._policies}
        old: dict[Question, PolicyAvailability] = {}
        for each in before:
            self._learn(each._worked, questions)  # noqa: SLF001 - one of us
            old |= {question: said for question, said in each.elected().items() if isinstance(said, Described)}
        missing = False
        for policy in self._policies:
            availability = old.get(_question(policy))
            if availability is not None:
                self._elected[policy.phase, policy.qualified_name] = availability
                self._reported(policy, availability)
                self._find_fits(policy)
            else:
                missing = True
        if not missing:
            self._known()

    def _learn(
        self, worked: Mapping[Description, Mapping[Question, PolicyAvailability]], questions: Collection[Question]
    ) -> None:
        """Take over the availabilities of equal policies that can be called."""
        for description, meanings in worked.items():
            known: dict[Question, PolicyAvailability] = {
                question: availability
                for question, availability in meanings.items()
                if question in questions and isinstance(availability, Described)
            }
            if known:
                self._worked[description] = self._worked.get(description, {}) | known


def known_before(found: Iterable[WorkerDescriptions | None]) -> tuple[WorkerDescriptions, ...]:
    """The descriptions without None."""
    return tuple(each for each in found if each is not None)


def _question(policy: Policy) -> Question:
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
