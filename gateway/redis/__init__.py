"""Redis for whoever uses it here: where it is, clients of it, what goes wrong with it; and files of seal keys.

Each user (verdicts between reviews in ``caching``, queues of asks in ``transports.queue``) decides for itself when to
ask, how long to wait, and what to do without it.
"""

from gateway.redis.addresses import OPTIONS, RedisAddress, redis_address
from gateway.redis.clients import Client, close_client, make_client
from gateway.redis.faults import RedisFault, fault_of, reason_of
from gateway.redis.key_files import KEYS, secrets_of
from gateway.redis.pipelines import Command, answers_to

__all__ = [
    "KEYS",
    "OPTIONS",
    "Client",
    "Command",
    "RedisAddress",
    "RedisFault",
    "answers_to",
    "close_client",
    "fault_of",
    "make_client",
    "reason_of",
    "redis_address",
    "secrets_of",
]
