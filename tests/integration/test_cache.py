"""The cache between reviews, with everything real: TLS, gRPC, and a redis-server that is paused, killed and started."""

import asyncio
import base64
import json
import os
import signal
import subprocess
import tempfile
from collections import Counter
from contextlib import AsyncExitStack, asynccontextmanager
from time import monotonic

import pytest

from gateway.caching.limits import CacheLimits
from gateway.engine.answer_source import Source
from tests.integration.client import message
from tests.integration.process import COMMAND, WAIT_SECONDS
from tests.integration.redis_process import RedisProcess
from tests.integration.running import configuration, policy, source, until
from tests.integration.workers import ALLOW, deny, patch, scripted
from tests.traffic import recording

CREATE = recording("pod-create.0m")
REQUEST = json.loads(CREATE.body)["request"]
CACHE = {"cache": {"ttl": "5m", "staleIfError": "1h"}}
POLICY = "test/judge.test.example.com"
# Redis answers within these, however slow the machine: what becomes of late answers has tests of its own.
PATIENT = CacheLimits(redis_seconds=8.0, redis_answer_seconds=30.0)
QUICK = CacheLimits(**(vars(PATIENT) | {"purge_poll_seconds": 0.02}))

pytestmark = pytest.mark.timeout(120)


def about(uid="u", **metadata):
    """The recorded review with another uid, and other metadata in its object."""
    changed = REQUEST | {
        "uid": uid,
        "object": REQUEST["object"] | {"metadata": REQUEST["object"]["metadata"] | metadata},
    }
    body = json.dumps({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": changed}).encode()
    return message(CREATE, body=body)


class Judge:
    """A worker that gives this answer, and counts how often it was called."""

    def __init__(self, content=ALLOW):
        self.content = content
        self.called = 0

    async def __call__(self, request, context):
        self.called += 1
        return self.content


def known(target, **fields):
    return configuration(source(workers={"scripted": target}, mutating=[policy("judge", **CACHE | fields)]))


def origin(served, uid="u"):
    """Where the one answer of a review came from."""
    (call,) = served.decisions[uid].calls
    return call.source


@pytest.fixture
async def redis():
    with tempfile.TemporaryDirectory() as folder:
        server = RedisProcess(folder)
        yield await server.start()
        server.stop()


@pytest.fixture
def keys(tmp_path):
    """A file with one seal key."""
    path = tmp_path / "seal.keys"
    path.write_text("# the only one\n" + base64.b64encode(os.urandom(32)).decode() + "\n")
    return path


@pytest.fixture
def sharing(gateway, redis, keys):
    """A gateway that shares its verdicts by Redis."""

    @asynccontextmanager
    async def serve(configured, **settings):
        shared = {"redis": redis.url, "seal_key_file": keys, "cache_limits": PATIENT}
        async with gateway(configured, **(shared | settings)) as served:
            await until(lambda: served.gateway.cache.note is None)
            yield served

    return serve


# ------------------------------------------------------------------------------------------- in this process


@pytest.mark.parametrize(
    "content",
    [ALLOW, deny("not today"), patch('[{"op": "add", "path": "/metadata/labels", "value": {"a": "b"}}]')],
    ids=["allow", "deny", "patch"],
)
async def test_an_equal_question_is_called_once(gateway, content):
    """The second review, with a uid of its own, has the same answer, and its worker is not called."""
    judge = Judge(content)
    async with scripted("judge", review=judge) as target, gateway(known(target)) as served:
        first, second = [await served.send(about(uid)) for uid in ("u1", "u2")]
        assert judge.called == 1
        assert (origin(served, "u1"), origin(served, "u2")) == (Source.CALLED, Source.MEMORY)
        assert first.response | {"uid": ""} == second.response | {"uid": ""}
        labels = {"phase": "mutating", "policy": POLICY}
        assert served.metric("cache_lookups_total", **labels, result="miss") == 1
        assert served.metric("cache_lookups_total", **labels, result="memory") == 1
        assert served.metric("policy_answers_total", **labels, source="memory") == 1
        assert served.metric("cache_memory_entries") == 1


async def test_what_is_not_declared_is_another_review_and_the_same_question(gateway):
    """A field outside of inputs changes no document; one inside does."""
    judge = Judge()
    async with (
        scripted("judge", review=judge) as target,
        gateway(known(target, inputs=["/object/metadata/labels"])) as served,
    ):
        for uid, metadata in (("u1", {}), ("u2", {"name": "other"}), ("u3", {"labels": {"a": "b"}})):
            await served.send(about(uid, **metadata))
        assert [origin(served, uid) for uid in ("u1", "u2", "u3")] == [Source.CALLED, Source.MEMORY, Source.CALLED]
        assert judge.called == 2


async def test_without_a_cache_every_review_is_called(gateway):
    """No policy has one that does not say so."""
    judge = Judge()
    async with scripted("judge", review=judge) as target:
        chain = [policy("judge")]
        async with gateway(configuration(source(workers={"scripted": target}, mutating=chain))) as served:
            for uid in ("u1", "u2"):
                await served.send(about(uid))
            assert judge.called == 2
            assert (await served.admin("/readyz?verbose"))[1].count("cache") == 0


async def test_a_stale_verdict_stands_in_for_a_worker_that_is_gone(gateway):
    """Allowed, with a warning, an annotation and a metric that say so."""
    async with AsyncExitStack() as worker:
        target = await worker.enter_async_context(scripted("judge", review=Judge()))
        async with gateway(known(target, cache={"ttl": "1ms", "staleIfError": "1h"})) as served:
            await served.send(about("u1"))
            said = monotonic()
            await worker.aclose()
            await until(lambda: monotonic() - said > 0.01)
            response = (await served.send(about("u2"))).response
            assert response["allowed"] is True
            assert "WORKER_UNAVAILABLE" in response["warnings"][0]
            assert response["auditAnnotations"]["judge.test.example.com_stale"] == "WORKER_UNAVAILABLE"
            assert origin(served, "u2") is Source.STALE
            assert served.metric("policy_answers_total", phase="mutating", policy=POLICY, source="stale") == 1


async def test_past_its_time_a_verdict_is_unused(gateway):
    """Without staleIfError a worker that is gone is a failure at once."""
    async with AsyncExitStack() as worker:
        target = await worker.enter_async_context(scripted("judge", review=Judge()))
        async with gateway(known(target, cache={"ttl": "1ms"})) as served:
            await served.send(about("u1"))
            said = monotonic()
            await worker.aclose()
            await until(lambda: monotonic() - said > 0.01)
            assert (await served.send(about("u2"))).fails_with("WORKER_UNAVAILABLE")


async def test_another_configuration_with_the_same_question_has_its_answer(gateway):
    """The cache is the process's: a timeout that changes flushes nothing; settings that change are another question."""
    judge = Judge()
    async with scripted("judge", review=judge) as target, gateway(known(target)) as served:
        await served.send(about("u1"))
        for uid, fields in (("u2", {"timeoutSeconds": 3}), ("u3", {"settings": {"a": 1}})):
            before = served.gateway.configuration
            await served.gateway._rollout.propose(known(target, **fields), ())
            await until(lambda before=before: served.gateway.configuration is not before)
            await served.send(about(uid))
        assert [origin(served, uid) for uid in ("u1", "u2", "u3")] == [Source.CALLED, Source.MEMORY, Source.CALLED]


async def test_a_purged_policy_is_called_again(gateway):
    """Over the admin listener; and who is not known is a 404."""
    judge = Judge()
    async with scripted("judge", review=judge) as target, gateway(known(target)) as served:
        await served.send(about("u1"))
        status, text = await served.admin(f"/purge?policy={POLICY}x", method="POST")
        assert status == 404
        assert f"nothing is purged; those with one are {POLICY}\n" in text
        assert (await served.admin(f"/purge?policy={POLICY}", method="POST"))[0] == 200
        await served.send(about("u2"))
        assert judge.called == 2
        assert served.metric("cache_purged_policies_total") == 1


# ------------------------------------------------------------------------------------------------- with Redis


async def test_two_gateways_share_their_verdicts(sharing, redis):
    """What one replica has been reported, the other one knows; and Redis can read none of it."""
    judge = Judge(deny("because of a planted secret"))
    async with (
        scripted("judge", review=judge) as target,
        sharing(known(target)) as one,
        sharing(known(target)) as two,
    ):
        first = await one.send(about("u1"))
        await until(lambda: redis.size() == 1)
        second = await two.send(about("u2"))
        assert judge.called == 1
        assert origin(two, "u2") is Source.REDIS
        assert second.response["status"] == first.response["status"]
        dump = redis.everything()
        assert b"admission-gateway:v1:" in dump
        assert [plain for plain in (b"planted secret", b"judge", b"test.example.com") if plain in dump] == []


async def test_a_purge_reaches_the_other_gateway(sharing, redis):
    """Within a moment the other replica calls again, although it has the verdict in memory."""
    judge = Judge()
    async with (
        scripted("judge", review=judge) as target,
        sharing(known(target), cache_limits=QUICK) as one,
        sharing(known(target), cache_limits=QUICK) as two,
    ):
        await one.send(about("u1"))
        await until(lambda: redis.size() == 1)
        await two.send(about("u2"))
        assert judge.called == 1
        status, text = await one.admin(f"/purge?policy={POLICY}", method="POST")
        assert (status, json.loads(text)) == (200, {"purged": [POLICY], "replicasNotified": True})
        await until(lambda: two.metric("cache_purged_policies_total") == 1)
        await two.send(about("u3"))
        assert origin(two, "u3") is Source.CALLED


async def test_a_redis_that_refuses_is_noted(sharing, redis):
    """Ready all the same; a purge says that the others are not reported, and why, until Redis takes it again."""
    async with scripted("judge") as target, sharing(known(target), cache_limits=QUICK) as served:
        redis.command("ACL SETUSER default -set")
        status, text = await served.admin(f"/purge?policy={POLICY}", method="POST")
        said = json.loads(text)
        assert (status, said["replicasNotified"]) == (200, False)
        assert said["why"].startswith("Redis answers, but refuses SET (NoPermissionError: its ACL")
        status, text = await served.admin("/readyz?verbose")
        assert status == 200
        assert f"[+]cache ok: {said['why']}\n" in text
        redis.command("ACL SETUSER default +set")
        await until(lambda: served.gateway.cache.note is None)


async def test_other_keys_share_nothing(gateway, redis, keys, tmp_path):
    """A replica with another key calls its own worker."""
    other = tmp_path / "other.keys"
    other.write_text(base64.b64encode(os.urandom(32)).decode())
    judge = Judge()
    async with scripted("judge", review=judge) as target:
        for number, file in enumerate((keys, other), 1):
            async with gateway(known(target), redis=redis.url, seal_key_file=file, cache_limits=PATIENT) as served:
                await until(lambda served=served: served.gateway.cache.note is None)
                await served.send(about("u"))
                await until(lambda number=number: redis.size() == number)
        assert judge.called == 2


async def test_keys_are_read_again_while_serving(sharing, keys):
    """A rotation needs no restart: by looking at the file; and a broken one changes nothing."""
    async with scripted("judge") as target, sharing(known(target), reload_interval_seconds=0.01) as served:
        seals = served.gateway.cache._keys
        first = seals.keys
        keys.write_text("nonsense")
        keys.write_text(base64.b64encode(os.urandom(32)).decode() + "\n" + base64.b64encode(os.urandom(32)).decode())
        await until(lambda: len(seals.keys) == 2)
        assert first[0] not in seals.keys
        changed = seals.keys
        keys.write_text("nonsense")
        await served.send(about("u1"))
        served.gateway.reload()
        await served.send(about("u2"))
        assert seals.keys == changed


async def test_a_gateway_starts_without_redis_and_finds_it_later(sharing, gateway, redis, keys):
    """Ready from the first moment, with a note that says what is missing."""
    redis.kill()
    settings = {"redis": redis.url, "seal_key_file": keys, "cache_limits": PATIENT}
    async with scripted("judge") as target, gateway(known(target), **settings) as served:
        assert await served.admin("/readyz") == (200, "ok\n")
        status, text = await served.admin("/readyz?verbose")
        assert status == 200
        assert "[+]cache ok: Redis cannot be used" in text
        assert (await served.send(about("u1"))).response["allowed"]
        await redis.start()
        await until(lambda: served.gateway.cache.note is None)
        assert "[+]cache ok\n" in (await served.admin("/readyz?verbose"))[1]
        await served.send(about("u2", name="other"))
        await until(lambda: redis.size() == 1)


async def test_a_process_with_redis(serve, redis, keys, tmp_path):
    """The flags of serve, the command purge, and SIGHUP, as an operator uses them; no password is ever reported."""
    judge = policy("judge", **CACHE)
    text = source(workers={"scripted": f"unix:{tmp_path}/w.sock"}, mutating=[judge])
    (tmp_path / "policies.yaml").write_text(text)
    password = redis.url.replace("unix://", "unix://u:hunter2@")
    arguments = (
        "--policies",
        tmp_path / "policies.yaml",
        "--worker-startup-timeout",
        0,
        "--reload-interval",
        0,
        "--no-prefetch",
    )
    process = serve(*arguments, "--seal-key-file", keys, env={"ADMISSION_GATEWAY_REDIS": password}).ready()
    admin = f"http://127.0.0.1:{process.admin_port}"
    assert process.page("/readyz") == (200, "ok\n")
    process.logged("seal keys read", keys=1)
    process.logged("Redis cannot be used yet")

    async def purge(name):
        """The exit code."""
        done = await asyncio.to_thread(
            subprocess.run,
            [COMMAND, "purge", name, "--admin", admin],
            capture_output=True,
            check=False,
            timeout=WAIT_SECONDS,
        )
        return done.returncode

    assert await purge(f"{POLICY}x") == 1
    assert await purge(POLICY) == 2
    redis.command("ACL SETUSER u on >hunter2 ~* +@all")
    process.logged("Redis is used")
    codes = [await purge(POLICY)]
    while codes[-1] == 2 and len(codes) < 5:  # a Redis that stood still for a second is skipped for another
        codes.append(await purge(POLICY))
    assert codes[-1] == 0
    assert process.metric("cache_purged_policies_total") == 1 + len(codes)
    keys.write_text(f"{base64.b64encode(os.urandom(32)).decode()}\n{keys.read_text()}")
    process.process.send_signal(signal.SIGHUP)
    process.logged("seal keys read", keys=2)
    process.terminate()
    assert process.exit_code() == 0
    assert "hunter2" not in "\n".join([*process.err.all(), *process.out.all()])


async def test_nothing_that_happens_to_redis_fails_a_review(sharing, redis):
    """Paused, killed, filled and started again under load: each review is allowed, without a word about it."""
    judge = Judge()
    async with scripted("judge", review=judge) as target, sharing(known(target), cache_limits=CacheLimits()) as served:
        traffic = Traffic(served)
        async with asyncio.TaskGroup() as group:
            for number in range(8):
                group.create_task(traffic.run(number))
            for problem in (
                redis.pause,
                redis.go_on,
                lambda: redis.command("FLUSHALL"),
                lambda: redis.command("CONFIG SET maxmemory 1"),
                lambda: redis.command("CONFIG SET maxmemory 0"),
                redis.kill,
            ):
                await traffic.more()
                problem()
            await traffic.more()
            await redis.start()
            await until(lambda: served.gateway.cache.note is None)
            await traffic.more()
            traffic.ending = True
        assert set(traffic.said) == {(200, True, None)}
        failures = [
            served.metric("policy_failures_total", phase="mutating", policy=POLICY, reason=reason)
            for reason in ("WORKER_UNAVAILABLE", "WORKER_TIMEOUT", "INTERNAL")
        ]
        assert {each for each in failures if each} == set()


class Traffic:
    """Reviews on kept connections, half of them about something new. ``said``: status, allowed, warnings."""

    def __init__(self, served):
        self.said = Counter()
        self.ending = False
        self._served = served
        self._sent = 0

    async def run(self, number):
        client = await self._served.client()
        while not self.ending:
            self._sent += 1
            answered = await client.send(about(f"u{number}", name=f"p{self._sent // 2}"))
            response = answered.response
            self.said[
                answered.status, response["allowed"], response.get("warnings") and tuple(response["warnings"])
            ] += 1

    async def more(self):
        """Wait for another hundred answers."""
        before = self.said.total()
        await until(lambda: self.said.total() > before + 100)
