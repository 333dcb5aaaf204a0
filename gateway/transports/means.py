"""What the process has been given to reach workers with, whatever the configuration says."""

from typing import TYPE_CHECKING, Optional

from msgspec import Struct, field

from gateway.transports.webhook.access import WebhookAccess

if TYPE_CHECKING:
    from gateway.redis.addresses import RedisAddress


class Means(Struct, frozen=True, kw_only=True):
    """``redis`` is where the queues are, None where there is none; ``webhooks`` is how existing webhooks are found, and
    what the gateway proves itself with there.
    """

    redis: Optional["RedisAddress"] = None
    webhooks: WebhookAccess = field(default_factory=WebhookAccess)
