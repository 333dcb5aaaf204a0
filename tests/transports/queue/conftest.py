"""A redis-server for each module, a key file, and a queue."""

import base64
import os

import pytest

from tests.caching import servers
from tests.transports.queue.consumers import Queue


@pytest.fixture(scope="module")
def redis_server(tmp_path_factory):
    """One server for all tests of a module; it keeps its data through a restart."""
    folder = tmp_path_factory.mktemp("redis")
    with servers.server(folder, "--appendonly", "yes", "--appendfsync", "always") as started:
        yield started


@pytest.fixture
def key_file(tmp_path):
    """A file with one key."""
    file = tmp_path / "queue-keys"
    file.write_text(base64.b64encode(os.urandom(32)).decode() + "\n")
    return file


@pytest.fixture
async def queue(redis, key_file):
    """A gateway's side of a queue, and a look at its data in Redis."""
    opened = Queue(redis.url, key_file)
    yield opened
    await opened.client.aclose()
