"""Verifies a configuration against its workers' descriptions, without serving it.

A shadow is verified like a policy: if its worker does not hold it, or rejects its settings, that is an error at the
shadow's place.
"""

from collections.abc import Sequence

from msgspec import Struct
from msgspec.structs import replace

from gateway.engine.availability import UnavailablePolicy, unavailable_policies
from gateway.policies.fields.shadows import shadow_of
from gateway.policies.model import Configuration, Phase, Policy
from gateway.policies.workers.targets import Worker
from gateway.transports.limits import TransportLimits
from gateway.transports.messages import one_line
from gateway.transports.transport_config import TransportConfig
from gateway.transports.worker_pool import WorkerPool
from gateway.transports.workers import Workers


class WorkerReport(Struct, frozen=True, kw_only=True):
    """The description of one worker.

    ``why`` is the reason why there is none, "" if there is one. ``versions`` and ``policies`` are those that its
    connected replicas describe, in order; ``unused`` are the policies that the configuration does not name.
    """

    worker: Worker
    why: str = ""
    versions: tuple[str, ...] = ()
    policies: tuple[str, ...] = ()
    unused: tuple[str, ...] = ()


class Verification(Struct, frozen=True, kw_only=True):
    """The result for all workers.

    ``refused`` are the policies that a worker's description excludes: the worker has no such policy, rejects the
    settings, or claims more than is granted. ``workers`` are those that describe themselves: all but webhooks.
    """

    refused: tuple[UnavailablePolicy, ...]
    workers: tuple[WorkerReport, ...]


async def verified(
    configuration: Configuration, limits: TransportLimits, config: TransportConfig, *, wait_seconds: float
) -> Verification:
    """Connect to the workers (start those with a ``command``), and compare their descriptions with the policies.

    Nothing is left running.

    Args:
        configuration: not ``fatal``.
        limits: of the calls.
        config: settings and credentials for connections to workers.
        wait_seconds: how long the workers have to describe themselves.
    """
    configuration = replace(
        configuration,
        mutating=_and_shadows(configuration.mutating),
        validating=_and_shadows(configuration.validating),
    )
    pool = WorkerPool(limits, config=config)
    workers = Workers(configuration, limits, pool=pool)
    try:
        await workers.start(wait_seconds=wait_seconds)
        unavailable = (
            each
            for phase in Phase
            for each in unavailable_policies(configuration.policies(phase), workers.availabilities(phase))
        )
        return Verification(
            refused=tuple(each for each in unavailable if each.answered),
            workers=tuple(
                _report(worker, workers, configuration, limits.message_characters)
                for worker in configuration.workers.values()
                if worker.webhook is None
            ),
        )
    finally:
        await workers.close()
        await pool.close()


def _and_shadows(policies: Sequence[Policy]) -> tuple[Policy, ...]:
    found: list[Policy] = []
    for policy in policies:
        found.append(replace(policy, shadow=None))
        shadow = shadow_of(policy)
        if shadow is not None:
            found.append(replace(shadow, place=replace(policy.place, path=f"{policy.place.path}.shadow")))
    return tuple(found)


def _report(worker: Worker, workers: Workers, configuration: Configuration, characters: int) -> WorkerReport:
    messages = [description.message for description in workers.descriptions(worker.name)]
    held = {one_line(entry.name, characters) for message in messages for entry in message.policies}
    policies = (*configuration.mutating, *configuration.validating)
    used = {policy.policy for policy in policies if policy.worker == worker.name}
    return WorkerReport(
        worker=worker,
        why=workers.why_undescribed(worker.name),
        versions=tuple(sorted({one_line(message.version, characters) for message in messages})),
        policies=tuple(sorted(held)),
        unused=tuple(sorted(held - used)),
    )
