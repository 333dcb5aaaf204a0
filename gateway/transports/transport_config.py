"""The settings of this process for connections to workers, from flags and not from the configuration."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Optional

from msgspec import Struct, field

from gateway.policies.workers.targets import HookTarget
from gateway.telemetry.events import Events
from gateway.transports.limits import TransportLimits
from gateway.transports.webhook.client_credentials import WebhookAccess
from gateway.transports.worker_channel import WorkerChannel

if TYPE_CHECKING:
    from gateway.redis.addresses import RedisAddress

HookWorkers = Callable[[str, HookTarget, TransportLimits, Events], WorkerChannel]
"""Makes the worker of a hook, from the Worker's name and target. (How hooks are run is the room ``hooks``, above.)"""


class TransportConfig(Struct, frozen=True, kw_only=True):
    """``redis`` has the queues, None: there are none; ``webhooks`` are addresses and credentials for existing webhooks;
    ``hooks`` makes the workers of hooks, None: the process runs none. ``starts_fixed_targets``: whether it starts
    workers with a ``command`` and a ``target``; of several processes only the first does: one can listen there.
    """

    redis: Optional["RedisAddress"] = None
    webhooks: WebhookAccess = field(default_factory=WebhookAccess)
    hooks: HookWorkers | None = None
    starts_fixed_targets: bool = True
