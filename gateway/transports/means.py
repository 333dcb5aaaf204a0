"""What the process has been given to reach workers with, whatever the configuration says."""

from dataclasses import dataclass, field

from gateway.redis.addresses import RedisAddress
from gateway.transports.webhook.access import WebhookAccess


@dataclass(frozen=True, kw_only=True, slots=True)
class Means:
    """``redis`` is where the queues are, None where there is none; ``webhooks`` is how existing webhooks are found, and
    what the gateway proves itself with there.
    """

    redis: RedisAddress | None = None
    webhooks: WebhookAccess = field(default_factory=WebhookAccess)
