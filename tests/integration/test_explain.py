"""From a denial to who denied it and where that policy stands: on any replica, through Redis, with everything real."""

import base64
import json
import os
import tempfile

import pytest

from gateway.serving import replica_findings
from tests.integration.client import message
from tests.integration.redis_process import RedisProcess
from tests.integration.running import configuration, policy, source, until
from tests.integration.workers import always, deny, scripted
from tests.traffic import recording

CREATE = recording("pod-create.0m")

pytestmark = pytest.mark.timeout(120)


@pytest.fixture
async def redis():
    """A redis-server."""
    with tempfile.TemporaryDirectory() as folder:
        server = RedisProcess(folder)
        yield await server.start()
        server.stop()


async def test_a_denial_is_explained_by_another_replica(gateway, redis, tmp_path, monkeypatch):
    """The message has the uid; with it, the replica that did not decide names the line of the policy's file."""
    monkeypatch.setattr(replica_findings, "REPLY_SECONDS", 0.3)
    keys = tmp_path / "seal.keys"
    keys.write_text(base64.b64encode(os.urandom(32)).decode() + "\n")
    settings = {"redis": redis.url, "seal_key_file": keys}
    async with scripted("judge", review=always(deny("no tag"))) as target:
        text = source(workers={"scripted": target}, mutating=[policy("judge", contact="#team")])
        async with gateway(configuration(text), **settings) as one, gateway(configuration(text), **settings) as two:
            links = [each.gateway.explanations._replicas for each in (one, two)]
            await until(lambda: all(link.is_up for link in links))
            uid = json.loads(CREATE.body)["request"]["uid"]
            denial = (await one.send(message(CREATE))).response["status"]["message"]
            assert denial == f"no tag (contact: #team; uid: {uid})"
            found = []

            async def is_found():
                found.append(await two.admin(f"/explain/{uid}?o=text"))
                return found[-1][0] == 200

            while not await is_found():
                assert len(found) < 20
            text_of_it = found[-1][1]
            (place,) = {each.policy.place for each in one.decisions[uid].calls}
            assert text_of_it.startswith("DENIED: CREATE pods ")
            assert "test/judge.test.example.com denied it: no tag\n" in text_of_it
            assert f"  configured at  {place}\n" in text_of_it
            assert "  whom to ask    #team\n" in text_of_it
            assert f"at {target}" in text_of_it
            assert (await two.admin("/explain/unknown"))[0] == 404
            assert "admission_gateway_retained_decisions 1.0\n" in (await one.admin("/metrics"))[1]
