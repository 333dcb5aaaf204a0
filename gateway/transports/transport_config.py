"""What the process has been given to reach workers with, whatever the configuration says."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Optional

from msgspec import Struct, field

from gateway.policies.workers.targets import HookTarget
from gateway.telemetry.events import Events
from gateway.transports.limits import TransportLimits
from gateway.transports.webhook.access import WebhookAccess
from gateway.transports.worker_channel import WorkerChannel

if TYPE_CHECKING:
    from gateway.redis.addresses import RedisAddress

HookWorkers = Callable[[str, HookTarget, TransportLimits, Events], WorkerChannel]
"""Makes the worker of a hook, from the Worker's name and target. (How hooks are run is the room ``hooks``, above.)"""


class TransportConfig(Struct, frozen=True, kw_only=True):
    """``redis`` is where the queues are, None where there is none; ``webhooks`` is how existing webhooks are found, and
    what the gateway proves itself with there; ``hooks`` makes the workers of hooks, None where none is run.
    """

    redis: Optional["RedisAddress"] = None
    webhooks: WebhookAccess = field(default_factory=WebhookAccess)
    hooks: HookWorkers | None = None
