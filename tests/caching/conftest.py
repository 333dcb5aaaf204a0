"""A redis-server for each module, and gateways that share it."""

import base64

import pytest
import structlog

from gateway.caching.limits import CacheLimits
from gateway.caching.redis import RedisStore
from gateway.redis.addresses import redis_address
from gateway.redis.sealing import SealKeys
from tests.caching import servers
from tests.caching.world import WAIT_SECONDS, Gateway

PATIENT = CacheLimits(redis_seconds=10.0, redis_answer_seconds=10.0, purge_poll_seconds=0.02)
"""For tests of Redis' answers, not of their time: on a loaded machine a hit must not become a miss."""

IMPATIENT = CacheLimits(redis_seconds=0.05, redis_answer_seconds=0.2, redis_failures=2, purge_poll_seconds=0.02)
"""For tests about a Redis that does not answer."""


@pytest.fixture
def logs():
    """What is logged in the meantime, in structlog's form."""
    with structlog.testing.capture_logs() as captured:
        yield captured


@pytest.fixture(scope="module")
def redis_server(tmp_path_factory):
    """One server for all tests of a module."""
    with servers.server(tmp_path_factory.mktemp("redis")) as made:
        yield made


@pytest.fixture
def seal_file(tmp_path):
    """A file with one key: always the same, so that the names of entries hold no word by chance."""
    file = tmp_path / "seal-keys"
    file.write_text(base64.b64encode(b"k" * 32).decode() + "\n")
    return file


@pytest.fixture
async def gateway(redis, seal_file):
    """Makes gateways that share one Redis and one seal key file, connected by default."""
    made: list[Gateway] = []

    async def make(verdict=None, *, limits=PATIENT, url=None, connected=True, now=None, file=seal_file):
        address = redis_address(url or redis.url)

        def store(limits, events, now):
            return RedisStore(address, SealKeys(file), limits, events, now)

        gateway = Gateway(verdict, limits=limits, redis=store, now=now)
        made.append(gateway)
        started = await gateway.cache.start(wait_seconds=WAIT_SECONDS if connected else 0.0)
        assert started is connected
        return gateway

    yield make
    for each in made:
        await each.cache.close()
