"""A redis-server for each module, a key file, a queue, and what is logged."""

import base64
import os

import pytest

from tests.caching import servers
from tests.transports.queue.consumers import Queue


@pytest.fixture(scope="module")
def redis_server(tmp_path_factory):
    """One server for all tests of a module; it keeps what it is told through a restart."""
    folder = tmp_path_factory.mktemp("redis")
    with servers.server(folder, "--appendonly", "yes", "--appendfsync", "always") as made:
        yield made


@pytest.fixture
def key_file(tmp_path):
    """A file with one key."""
    file = tmp_path / "queue-keys"
    file.write_text(base64.b64encode(os.urandom(32)).decode() + "\n")
    return file


@pytest.fixture
async def queue(redis, key_file):
    """The other side of a queue, as a test plays it or looks at it."""
    made = Queue(redis.url, key_file)
    yield made
    await made.client.aclose()
