"""From what a worker says of itself to the standing of each policy that is put to it.

A policy can be asked if the worker holds it, once, for the policy's phase, in a version, claims no more than is
granted, and accepts its settings. The settings are put to the worker once for each distinct text of them.
"""

import asyncio
from collections import Counter
from collections.abc import Sequence
from itertools import islice
from typing import Final

import structlog

from gateway.documents.identity import verdict_identity
from gateway.engine.plan import Described, PolicyAvailability, Unavailable, UnavailableReason
from gateway.policies.model import Policy
from gateway.policies.suggestions import did_you_mean
from gateway.policies.workers.targets import Worker
from gateway.transports.claims import ClaimError, effective
from gateway.transports.messages import PHASES, one_line
from gateway.transports.proto.admission.worker.v1 import worker_pb2 as pb
from gateway.transports.worker_channel import SettingsValidator

_LOG: Final = structlog.get_logger(__name__)

MOST_REPORTED: Final = 20
"""Warnings of one policy's settings that are logged, and errors that its message repeats."""

AT_ONCE: Final = 16
"""Settings that are put to a worker at the same time: one that takes 5 ms for each has judged those of 2,000 policies
in less than a second, and one that has a single thread still begins with each in time."""

WEBHOOK_VERSION: Final = "webhook"
"""In which version a webhook is asked: it has none that it says, and one that changes its mind is not heard of. Its
verdicts are kept as long as the operator says (``cache``)."""


def webhook_availability(policy: Policy, worker: Worker) -> Described:
    """The standing of a policy that is put to a webhook, which sees and changes all that is granted."""
    timeout_failure = None
    if worker.webhook is not None:
        from gateway.transports.webhook import failures  # noqa: PLC0415 - nobody else needs it
        from gateway.transports.webhook.endpoint import WebhookEndpoint  # noqa: PLC0415 - nobody else needs it

        timeout_failure = failures.timeout_failure(
            policy.name, WebhookEndpoint(worker.webhook).with_timeout(policy.timeout)
        )
    return Described(
        version=WEBHOOK_VERSION, identity=verdict_identity(policy, worker), timeout_failure=timeout_failure
    )


def undescribed(message: str) -> Unavailable:
    """Why nothing is known of a policy yet, as its standing."""
    return Unavailable(why=UnavailableReason.UNDESCRIBED, message=message)


class DescriptionValidator:
    """One Describe of a worker, held against the policies that are configured for it.

    Args:
        judge: is asked about settings; one of those who said it.
        configured: the same worker as the configuration has it.
        description: what it said.
        characters: how much of the worker's own words is kept in one message.
    """

    def __init__(
        self, judge: SettingsValidator, configured: Worker, description: pb.DescribeResponse, characters: int
    ) -> None:
        self._judge = judge
        self._configured = configured
        self._description = description
        self._characters = characters
        self._held = {entry.name: entry for entry in description.policies}
        self._entries = Counter(entry.name for entry in description.policies)
        self._validated: dict[tuple[str, bytes], asyncio.Task[pb.ValidateSettingsResponse]] = {}

    @property
    def version(self) -> str:
        """The worker's version, for the log."""
        return one_line(self._description.version, self._characters)

    @property
    def policies(self) -> list[str]:
        """The names of the policies that it holds, in order, for the log."""
        return sorted(one_line(name, self._characters) for name in self._held)

    async def availabilities(self, policies: Sequence[Policy]) -> list[PolicyAvailability]:
        """What the worker says of each policy, or why the policy cannot be asked; some are looked at side by side.

        Raises:
            WorkerError: the worker cannot be asked about the settings.
        """
        found: dict[int, PolicyAvailability] = {}
        to_do = iter(enumerate(policies))

        async def work() -> None:
            for number, policy in to_do:
                found[number] = await self._availability(policy)

        tasks = [asyncio.ensure_future(work()) for _ in range(min(AT_ONCE, len(policies)))]
        try:
            await asyncio.gather(*tasks)
        finally:
            for task in (*tasks, *self._validated.values()):
                task.cancel()
        return [found[number] for number in range(len(policies))]

    async def _availability(self, policy: Policy) -> PolicyAvailability:
        described = self._held.get(policy.policy)
        if described is None:
            return self._unknown(policy.policy)
        version = described.version or self._description.version
        why_not = self._why_not(policy, described, version)
        if why_not is not None:
            return Unavailable(why=UnavailableReason.DESCRIPTION, message=why_not)
        try:
            scopes = effective(policy, described)
        except ClaimError as error:
            message = f"worker {self._configured.name!r} cannot be asked: {error}"
            return Unavailable(why=UnavailableReason.CLAIMS, message=message, field=error.field)
        refused = await self._refused_settings(policy)
        if refused is not None:
            return refused
        identity = verdict_identity(policy, self._configured)
        return Described(version=version, inputs=scopes.inputs, writes=scopes.writes, identity=identity)

    def _why_not(self, policy: Policy, described: pb.PolicyDescription, version: str) -> str | None:
        name = self._configured.name
        if self._entries[policy.policy] > 1:
            return f"worker {name!r} describes policy {policy.policy!r} more than once: which one is meant?"
        if PHASES[policy.phase] not in described.phases:
            return f"policy {policy.policy!r} of worker {name!r} cannot be used for {policy.phase}"
        if not version:
            return f"worker {name!r} describes no version, so nobody can tell whose verdict it is"
        return None

    def _unknown(self, name: str) -> Unavailable:
        return Unavailable(
            why=UnavailableReason.UNKNOWN_POLICY,
            message=f"worker {self._configured.name!r} holds no policy {name!r}",
            hint=did_you_mean(name, self.policies, listed="it holds"),
            field="policy",
        )

    async def _refused_settings(self, policy: Policy) -> Unavailable | None:
        question = (policy.policy, policy.settings)
        if question not in self._validated:
            self._validated[question] = asyncio.ensure_future(self._judge.validate_settings(*question))
        said = await self._validated[question]
        for warning in islice(said.warnings, MOST_REPORTED):
            _LOG.warning(
                "a worker warns of settings",
                policy=policy.qualified_name,
                place=str(policy.place),
                warning=one_line(warning, self._characters),
            )
        if not said.errors:
            return None
        refused = tuple((error.pointer, error.message) for error in islice(said.errors, MOST_REPORTED))
        texts = "; ".join(f"settings{pointer}: {message}" for pointer, message in refused)
        return Unavailable(
            why=UnavailableReason.SETTINGS,
            message=f"worker {self._configured.name!r} refuses the settings: {one_line(texts, self._characters)}",
            field="settings",
            refused=tuple((pointer, one_line(message, self._characters)) for pointer, message in refused),
        )
