"""Validates a worker's description: determines the availability of each policy that the worker is configured for.

A policy can be called if the worker holds it, once, for the policy's phase, in a version, claims no more than is
granted, and accepts its settings. The worker validates each distinct settings text once.
"""

import asyncio
from collections import Counter
from collections.abc import Collection, Sequence
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
        validator: a replica of the worker with this description, which validates settings.
        configured: the same worker in the configuration.
        description: the answer to Describe.
        characters: how much of the worker's text one message keeps.
    """

    def __init__(
        self, validator: SettingsValidator, configured: Worker, description: pb.DescribeResponse, characters: int
    ) -> None:
        self._validator = validator
        self._configured = configured
        self._description = description
        self._characters = characters
        self._policies = {entry.name: entry for entry in description.policies}
        self._entries = Counter(entry.name for entry in description.policies)
        self._validated: dict[tuple[str, bytes], asyncio.Task[pb.ValidateSettingsResponse]] = {}

    @property
    def version(self) -> str:
        """The worker's version, for the log."""
        return one_line(self._description.version, self._characters)

    @property
    def policies(self) -> list[str]:
        """The names of the policies that the worker has, in order, for the log."""
        return sorted(one_line(name, self._characters) for name in self._policies)

    async def availabilities(self, alike: Collection[Sequence[Policy]]) -> list[PolicyAvailability]:
        """The availability of equal policies, for each of them; some are validated concurrently.

        Raises:
            WorkerError: the worker cannot validate the settings.
        """
        found: dict[int, PolicyAvailability] = {}
        to_do = iter(enumerate(alike))

        async def work() -> None:
            for number, policies in to_do:
                found[number] = await self._availability(policies[0], more=len(policies) - 1)

        tasks = [asyncio.ensure_future(work()) for _ in range(min(AT_ONCE, len(alike)))]
        try:
            await asyncio.gather(*tasks)
        finally:
            for task in (*tasks, *self._validated.values()):
                task.cancel()
        return [found[number] for number in range(len(alike))]

    async def _availability(self, policy: Policy, *, more: int) -> PolicyAvailability:
        described = self._policies.get(policy.policy)
        if described is None:
            return self._unknown(policy.policy)
        version = described.version or self._description.version
        mismatch = self._mismatch(policy, described, version)
        if mismatch is not None:
            return Unavailable(why=UnavailableReason.DESCRIPTION, message=mismatch)
        try:
            scopes = effective(policy, described)
        except ClaimError as error:
            message = f"worker {self._configured.name!r} cannot be called: {error}"
            return Unavailable(why=UnavailableReason.CLAIMS, message=message, field=error.field)
        errors = await self._settings_errors(policy, more)
        if errors is not None:
            return errors
        identity = verdict_identity(policy, self._configured)
        return Described(version=version, inputs=scopes.inputs, writes=scopes.writes, identity=identity)

    def _mismatch(self, policy: Policy, described: pb.PolicyDescription, version: str) -> str | None:
        name = self._configured.name
        if self._entries[policy.policy] > 1:
            return f"worker {name!r} describes policy {policy.policy!r} more than once; it must describe it once"
        if PHASES[policy.phase] not in described.phases:
            return f"policy {policy.policy!r} of worker {name!r} cannot be used for {policy.phase}"
        if not version:
            return f"worker {name!r} describes no version of policy {policy.policy!r}; every policy needs one"
        return None

    def _unknown(self, name: str) -> Unavailable:
        return Unavailable(
            why=UnavailableReason.UNKNOWN_POLICY,
            message=f"worker {self._configured.name!r} holds no policy {name!r}",
            hint=did_you_mean(name, self.policies, listed="it holds"),
            field="policy",
        )

    async def _settings_errors(self, policy: Policy, more: int) -> Unavailable | None:
        key = (policy.policy, policy.settings)
        if key not in self._validated:
            self._validated[key] = asyncio.ensure_future(self._validator.validate_settings(*key))
        response = await self._validated[key]
        for warning in islice(response.warnings, MOST_REPORTED):
            _LOG.warning(
                "a worker warns of settings",
                policy=policy.qualified_name,
                place=str(policy.place),
                warning=one_line(warning, self._characters),
                **({"more_policies": more} if more else {}),
            )
        if not response.errors:
            return None
        errors = tuple((error.pointer, error.message) for error in islice(response.errors, MOST_REPORTED))
        texts = "; ".join(f"settings{pointer}: {message}" for pointer, message in errors)
        return Unavailable(
            why=UnavailableReason.SETTINGS,
            message=f"worker {self._configured.name!r} refuses the settings: {one_line(texts, self._characters)}",
            field="settings",
            refused=tuple((pointer, one_line(message, self._characters)) for pointer, message in errors),
        )
