"""What the workers of a configuration say of the policies that are put to them, without serving anything."""

from gateway.deciding.availability import UnavailablePolicy, unavailable_policies
from gateway.policies.model import Configuration, Phase
from gateway.transports.limits import TransportLimits
from gateway.transports.means import Means
from gateway.transports.pool import WorkerPool
from gateway.transports.workers import Workers


async def verified(
    configuration: Configuration, limits: TransportLimits, means: Means, *, wait_seconds: float
) -> tuple[UnavailablePolicy, ...]:
    """Reach the workers (start those with a ``command``), and hold what they describe against the policies.

    Args:
        configuration: not ``fatal``.
        limits: of the calls.
        means: what the workers are reached with.
        wait_seconds: how long the workers have to describe themselves.

    Returns:
        The policies that cannot be asked: ``answered`` are those of which the worker says so (it holds no such policy,
        refuses the settings, claims what is not granted); of the others either the worker was not heard in time, or
        there is a mistake in the files. Nothing is left running.
    """
    pool = WorkerPool(limits, means=means)
    workers = Workers(configuration, limits, pool=pool)
    try:
        await workers.start(wait_seconds=wait_seconds)
        return tuple(
            each
            for phase in Phase
            for each in unavailable_policies(configuration.policies(phase), workers.standings(phase))
        )
    finally:
        await workers.close()
        await pool.close()
