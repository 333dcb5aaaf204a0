"""From a denial to who denied it and where that policy stands: on any replica, through Redis, with everything real."""

import asyncio
import base64
import json
import os
import tempfile

import pytest

from gateway.serving import replica_findings
from tests.integration.client import AsyncClient, message, post
from tests.integration.process import WAIT_SECONDS
from tests.integration.redis_process import RedisProcess
from tests.integration.running import configuration, policy, source, until
from tests.integration.workers import always, deny, scripted
from tests.traffic import recording

CREATE = recording("pod-create.0m")

CONFIGMAPS = {"operations": ["*"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"]}
NO_CALLS = source(workers={"none": "127.0.0.1:1"}, mutating=[policy("none", worker="none", rules=[CONFIGMAPS])])
"""A configuration that calls no worker for a pod."""

pytestmark = [pytest.mark.integration, pytest.mark.timeout(240)]


@pytest.fixture
async def redis():
    """A redis-server."""
    with tempfile.TemporaryDirectory() as folder:
        server = RedisProcess(folder)
        yield await server.start()
        server.stop()


@pytest.fixture
def keys(tmp_path):
    """A file with the key that all replicas share."""
    file = tmp_path / "seal.keys"
    file.write_text(base64.b64encode(os.urandom(32)).decode() + "\n")
    return file


@pytest.fixture
def pod(serve, redis, keys, tmp_path):
    """Start a gateway of two processes, which call no worker."""
    file = tmp_path / "policies.yaml"
    file.write_text(NO_CALLS)
    fixed = ("--processes", 2, "--worker-startup-timeout", 0, "--log-format", "json")

    def start():
        return serve("--policies", file, "--redis", redis.url, "--seal-key-file", keys, *fixed)

    return start


async def searched(pod, redis, processes):
    """Wait until so many processes answer queries, and the first of this pod can send one."""
    await until(lambda: int(redis.command(f"XLEN {replica_findings.MEMBERS}").removeprefix(b":")) >= processes)
    while "Redis" in (text := (await asyncio.to_thread(pod.page, "/explain/unknown"))[1]):
        assert "Redis cannot be used" in text


async def test_a_denial_is_explained_by_another_replica(gateway, redis, keys, monkeypatch):
    """The message has the uid; with it, the replica that did not decide names the line of the policy, at once."""
    monkeypatch.setattr(replica_findings, "REPLY_SECONDS", WAIT_SECONDS)
    settings = {"redis": redis.url, "seal_key_file": keys}
    async with scripted("judge", review=always(deny("no tag"))) as target:
        text = source(workers={"scripted": target}, mutating=[policy("judge", contact="#team")])
        async with gateway(configuration(text), **settings) as one, gateway(configuration(text), **settings) as two:
            links = [each.gateway.explanations._replicas for each in (one, two)]
            await until(lambda: all(link.is_up for link in links))
            uid = json.loads(CREATE.body)["request"]["uid"]
            denial = (await one.send(message(CREATE))).response["status"]["message"]
            assert denial == f"no tag (contact: #team; uid: {uid})"
            status, text = await two.admin(f"/explain/{uid}?o=text")
            assert status == 200, text
            (place,) = {each.policy.place for each in one.decisions[uid].calls}
            assert text.startswith("DENIED: CREATE pods ")
            assert "test/judge.test.example.com denied it: no tag\n" in text
            assert f"  configured at  {place}\n" in text
            assert "  whom to ask    #team\n" in text
            assert f"at {target}" in text
            status, text = await two.admin("/explain/unknown")
            assert (status, "others may have it" in text, "only this gateway" in text) == (404, False, False)
            assert "admission_gateway_retained_decisions 1.0\n" in (await one.admin("/metrics"))[1]


async def test_a_denial_is_explained_by_a_pod_of_several_processes(gateway, redis, keys, pod):
    """The pod finds what another replica decided, as does each of its processes; without Redis it says why not."""
    served = pod()
    async with scripted("judge", review=always(deny("no tag"))) as target:
        text = source(workers={"scripted": target}, mutating=[policy("judge", contact="#team")])
        async with gateway(configuration(text), redis=redis.url, seal_key_file=keys) as one:
            await asyncio.to_thread(served.ready)
            await searched(served, redis, 3)
            uid = json.loads(CREATE.body)["request"]["uid"]
            assert (await one.send(message(CREATE))).response["allowed"] is False
            (place,) = {each.policy.place for each in one.decisions[uid].calls}
            for path in ("/explain", "/process/1/explain", "/process/2/explain"):
                status, text = await asyncio.to_thread(served.page, f"{path}/{uid}?o=text")
                assert (status, f"  configured at  {place}\n" in text) == (200, True), text
            found = json.loads((await asyncio.to_thread(served.page, f"/explain/{uid}"))[1])
            assert [each["uid"] for each in found["decisions"]] == [uid]
            assert found["searched"]["retained"] == 1
            redis.kill()
            status, text = await asyncio.to_thread(served.page, f"/explain/{uid}")
            assert status == 404
            assert "others may have it: Redis " in text


async def test_each_pod_of_several_processes_finds_what_any_process_decided(pod, redis, trust):
    """One query is enough, whichever process of whichever pod decided."""
    one, two = pods = [pod(), pod()]
    for each in pods:
        await asyncio.to_thread(each.ready)
    for each in pods:
        await searched(each, redis, 4)
    uids = [f"1b4b3a2c-0000-4000-8000-00000000000{number}" for number in range(4)]
    for uid in uids:
        # Connections are spread over the processes.
        client = await AsyncClient.connect(one.port, trust)
        review = json.loads(CREATE.body)
        review["request"] |= {"uid": uid, "name": uid}
        assert (await client.send(post(json.dumps(review).encode(), "/mutate?timeout=10s"))).response["allowed"]
        await client.close()
    for uid in uids:
        for each in (two, one):
            status, text = await asyncio.to_thread(each.page, f"/explain/{uid}")
            assert status == 200, text
            found = json.loads(text)
            assert [decision["uid"] for decision in found["decisions"]] == [uid]
            assert (found["searched"]["retained"], found["searched"]["why"]) == (4, "")
