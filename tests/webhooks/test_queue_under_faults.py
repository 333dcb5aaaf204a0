"""A queue under faults: 300 reviews at once, while bridges and Redis die and come back.

Each part is its own process: ``serve``, bridges, the worker, a redis-server with an append-only file. Each review
calls two policies over the queue: ``read`` under Ignore, and ``enter``, which has side effects, under Fail.
"""

import asyncio
import json
import re
import tempfile
from collections import Counter

import pytest
import redis as client_library

from gateway.reasons import Reason
from tests.integration.client import AsyncClient, post
from tests.integration.process import WAIT_SECONDS
from tests.integration.redis_process import RedisProcess
from tests.integration.running import PODS, policy, source, until
from tests.traffic import recording
from tests.webhooks.native import text
from tests.webhooks.queue_processes import bridge, key_file, ledger_worker

pytestmark = [pytest.mark.faults, pytest.mark.timeout(300)]

CONNECTIONS = 300
STREAM = "admission:ledger"
BRIDGES = 2

REASONS = {
    Reason.WORKER_UNAVAILABLE,
    Reason.WORKER_TIMEOUT,
    Reason.WORKER_FAILURE,
    Reason.BUDGET_EXHAUSTED,
    Reason.OVERLOADED,
}
"""The reasons for which calls may fail here; none of them is an invalid answer or configuration."""

REQUEST = json.loads(recording("pod-create.1v").body)

READ, ENTER = "read.test.example.com", "enter.test.example.com"


def _review(uid):
    body = REQUEST | {"request": REQUEST["request"] | {"uid": uid}}
    return post(json.dumps(body).encode(), "/validate?timeout=30s")


class Traffic:
    """Reviews on kept connections, each sent when the one before it is answered, until ``ending`` is set.

    ``judged`` counts the reviews in which all were judged, ``failures`` the others by policy and reason; ``entered``
    are the reviews that ``enter`` has allowed. ``last`` has for each connection whether its last review was judged.
    """

    def __init__(self):
        self.judged = 0
        self.failures = Counter()
        self.entered = set()
        self.last = [False] * CONNECTIONS
        self.ending = False
        self._changed = asyncio.Condition()

    async def run(self, number, port, context):
        client = await AsyncClient.connect(port, context)
        try:
            turn = 0
            while not self.ending:
                turn += 1
                await self._count(number, f"{number}-{turn}", await client.send(_review(f"{number}-{turn}")))
        finally:
            await client.close()

    async def _count(self, number, uid, answered):
        failures = _failures(answered, uid)
        self.failures.update(failures)
        self.last[number] = not failures
        self.judged += not failures
        if answered.response["allowed"]:
            self.entered.add(uid)
        async with self._changed:
            self._changed.notify_all()

    async def until(self, condition):
        """Wait until something holds of what was counted."""
        async with asyncio.timeout(2 * WAIT_SECONDS), self._changed:
            await self._changed.wait_for(condition)

    async def until_judged_again(self):
        """Wait until every connection has had a review judged that it sent after this."""
        self.last = [False] * CONNECTIONS
        await self.until(lambda: all(self.last))


def _failures(answered, uid):
    """The policies that failed, and why; the rest of the answer follows their failurePolicy."""
    assert answered.status == 200, answered
    response = answered.response
    assert response["uid"] == uid
    annotations = response["auditAnnotations"]
    failures = []
    if f"{READ}_failed-open" in annotations:
        failures.append((READ, annotations[f"{READ}_failed-open"]))
    else:
        assert annotations[f"{READ}_judged"] == "yes"
    if response["allowed"]:
        assert annotations[f"{ENTER}_entered"] == "yes"
    else:
        status = response["status"]
        reason = re.match(rf"{ENTER}: ([A-Z_]+): ", status["message"])[1]
        assert status["reason"] == ("TooManyRequests" if status["code"] == 429 else "InternalError")
        failures.append((ENTER, reason))
    return failures


@pytest.fixture
def folder():
    """A folder whose name is short enough for sockets."""
    with tempfile.TemporaryDirectory() as folder:
        yield folder


@pytest.fixture
def started():
    """Processes, all of which are stopped at the end."""
    every = []
    yield every
    for process in every:
        process.stop()


@pytest.fixture
async def redis(folder):
    """With an append-only file: killing the process loses no acknowledged write."""
    server = await RedisProcess(folder, appendonly=True).start()
    yield server
    server.stop()


def _policies(path, key):
    fields = {"worker": "ledger", "rules": [PODS], "timeoutSeconds": 20}
    validating = [
        policy("read", failurePolicy="Ignore", **fields),
        policy("enter", failurePolicy="Fail", **fields | {"sideEffects": "NoneOnDryRun"}),
    ]
    document = {"apiVersion": "admission-gateway.dev/v1alpha1", "kind": "Worker", "metadata": {"name": "ledger"}}
    document |= {"spec": {"queue": {"stream": STREAM, "keyFile": str(key)}}}
    path.write_text(source(workers={}, validating=validating) + "---\n" + text(document))


async def _storm(traffic, redis, bridges, start):
    """What goes wrong, one thing after another; the next when all are judged again."""
    for number in range(BRIDGES):
        names = {await _consumer(each) for each in bridges}
        await until(lambda names=names: names <= _busy(redis.url))
        bridges[number].kill()
        await traffic.until_judged_again()
        bridges[number] = start()
    # The other bridge takes over whatever has no effect.
    assert READ not in {name for name, _ in traffic.failures}, traffic.failures
    redis.kill()
    seen = traffic.failures.total()
    await traffic.until(lambda: traffic.failures.total() > seen)
    await redis.start()
    await traffic.until_judged_again()
    for process in bridges:
        process.kill()
    bridges[:] = [start() for _ in range(BRIDGES)]
    await traffic.until_judged_again()
    for each in bridges:
        await _consumer(each)


async def test_nothing_is_lost_and_nothing_done_twice(serve, trust, redis, folder, started, tmp_path):
    """Each review is answered; what was not judged is the failurePolicy's; no effect is had twice; nothing is left."""
    key, ledger, policies = key_file(tmp_path), tmp_path / "ledger.txt", tmp_path / "policies.yaml"
    _policies(policies, key)
    target = f"unix:{folder}/worker.sock"
    started.append(ledger_worker(target, ledger))

    def start():
        started.append(bridge(STREAM, key, redis.url, target))
        return started[-1]

    bridges = [start() for _ in range(BRIDGES)]
    # A gateway that has stood still itself is not to find that Redis has.
    limits = ("--limit-queue-redis-seconds", 8)
    process = serve(
        "--policies", policies, "--queue-redis", redis.url, "--worker-startup-timeout", WAIT_SECONDS, *limits
    )
    await asyncio.to_thread(process.ready)
    traffic = Traffic()
    async with asyncio.TaskGroup() as group:
        for number in range(CONNECTIONS):
            group.create_task(traffic.run(number, process.port, trust))
        await traffic.until(lambda: all(traffic.last))
        assert not traffic.failures
        await _storm(traffic, redis, bridges, start)
        traffic.ending = True
    assert {reason for _, reason in traffic.failures} <= {*REASONS}, traffic.failures
    entries = ledger.read_text().splitlines()
    assert len(entries) == len(set(entries))
    assert traffic.entered <= set(entries)
    await until(lambda: _left(redis.url) == {})
    for each in bridges:
        assert await asyncio.to_thread(each.terminate) == 0
    await asyncio.to_thread(process.stop)
    assert process.internal_errors() == []


async def _consumer(process):
    """Under which name a bridge takes work, as soon as it does."""
    line = await asyncio.to_thread(process.err.find, lambda line: '"the bridge takes calls from the queue"' in line)
    return json.loads(line)["consumer"]


def _busy(url):
    """The names of the bridges that have work in hand; of dead ones, too, until others have taken it over."""
    with client_library.Redis.from_url(url) as connection:
        consumers = [
            each
            for lane in connection.scan_iter(match="*:calls:*")
            for each in connection.xinfo_consumers(lane, "workers")
        ]
    return {each["name"].decode() for each in consumers if each["pending"] > 0}


def _left(url):
    """How many entries each lane holds, and how many of its deliveries are open; nothing for one without any."""
    with client_library.Redis.from_url(url) as connection:
        lanes = list(connection.scan_iter(match="*:calls:*"))
        held = {lane: (connection.xlen(lane), connection.xpending(lane, "workers")["pending"]) for lane in lanes}
    assert held
    return {lane: counts for lane, counts in held.items() if any(counts)}
