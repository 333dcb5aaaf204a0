"""Validates a worker's description: determines the availability of each policy that the worker is configured for.

A policy can be called if the worker holds it, once, for the policy's phase, in a version, claims no more than is
granted, and accepts its settings. The worker validates each distinct settings text once.
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
"""Concurrent validations of settings: a worker that takes 5 ms for each validates those of 2,000 policies in less than
a second, and one with a single thread still begins each in time."""

WEBHOOK_VERSION: Final = "webhook"
"""The version of a webhook, which reports none. The gateway cannot notice a new version of a webhook; the operator's
``cache`` limits how long its verdicts are reused."""


def webhook_availability(policy: Policy, worker: Worker) -> Described:
    """The availability of a webhook's policy. A webhook sees and may change all that is granted."""
    timeout_failure = None
    if worker.webhook is not None:
        from gateway.transports.webhook import failures  # noqa: PLC0415 - only for webhooks
        from gateway.transports.webhook.endpoint import WebhookEndpoint  # noqa: PLC0415 - only for webhooks

        timeout_failure = failures.timeout_failure(
            policy.name, WebhookEndpoint(worker.webhook).with_timeout(policy.timeout)
        )
    return Described(
        version=WEBHOOK_VERSION, identity=verdict_identity(policy, worker), timeout_failure=timeout_failure
    )


def undescribed(message: str) -> Unavailable:
    """The availability of a policy that is not described yet."""
    return Unavailable(why=UnavailableReason.UNDESCRIBED, message=message)


class DescriptionValidator:
    """Compares one description of a worker with the policies that are configured for it.

    Args:
        judge: validates settings; a replica of the worker with this description.
        configured: the same worker in the configuration.
        description: the answer to Describe.
        characters: how much of the worker's text one message keeps.
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
        """The availability of each policy; some are validated concurrently.

        Raises:
            WorkerError: the worker cannot validate the settings.
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
