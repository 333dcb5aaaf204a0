"""The idempotency check with real workers: who changes his own result again is seen in metrics and log."""

import asyncio
import json

import structlog

from tests.integration.client import message
from tests.integration.process import WAIT_SECONDS
from tests.integration.running import configuration, policy, source, until
from tests.integration.workers import Hanging, answer, pb, scripted
from tests.traffic import recording

CREATE = message(recording("pod-create.0m"))
UNSTABLE = {"phase": "mutating", "policy": "test/counts.test.example.com", "result": "unstable"}
STABLE = {"phase": "mutating", "policy": "test/labels.test.example.com", "result": "stable"}


async def review(request, context):
    """``labels`` adds a label, ``counts`` counts how often it was called."""
    call = pb.ReviewRequest.FromString(request).call
    labels = json.loads(call.document)["object"]["metadata"].get("labels") or {}
    mine = {"labels": "1", "counts": str(int(labels.get("counts", "0")) + 1)}[call.policy]
    merge = json.dumps({"metadata": {"labels": {call.policy: mine}}}).encode()
    return answer(allow=pb.Allow(merge_patch=merge))


async def test_a_policy_that_is_not_idempotent_is_named(gateway):
    """After the answer, by the same workers and not by the cache; the answer is what it would have been."""
    cache = {"cache": {"ttl": "5m"}}
    async with scripted("labels", "counts", review=review) as target:
        chain = [policy("labels", **cache), policy("counts", **cache)]
        known = configuration(source(workers={"scripted": target}, mutating=chain))
        with structlog.testing.capture_logs() as logs:
            async with gateway(known, idempotency_sample_ratio=1.0) as served:
                assert (await served.send(CREATE)).response["allowed"]
                await until(lambda: served.metric("idempotency_checks_total", result="stable") == 1)
                assert served.metric("idempotency_checked_policies_total", **UNSTABLE) == 1
                assert served.metric("idempotency_checked_policies_total", **STABLE) == 1
    (entry,) = [entry for entry in logs if "not idempotent" in entry["event"]]
    assert entry["policy"] == UNSTABLE["policy"]
    assert (entry["first"], entry["again"]) == (
        ['add /metadata/labels/counts = "1"'],
        ['replace /metadata/labels/counts = "2"'],
    )


async def test_idempotency_is_not_checked_by_default(gateway):
    """0 is off."""
    async with scripted("labels", review=review) as target:
        known = configuration(source(workers={"scripted": target}, mutating=[policy("labels")]))
        async with gateway(known, idempotency_sample_ratio=0.0) as served:
            assert (await served.send(CREATE)).response["allowed"]
            assert served.gateway._replays._tasks == set()


async def test_a_gateway_that_stops_waits_for_no_patrol(gateway):
    """A worker that hangs when it is called again delays no review."""
    hanging = Hanging()
    called = []

    async def once(request, context):
        called.append(request)
        return await (review if len(called) == 1 else hanging)(request, context)

    async with scripted("labels", review=once) as target:
        known = configuration(source(workers={"scripted": target}, mutating=[policy("labels", timeoutSeconds=30)]))
        async with gateway(known, idempotency_sample_ratio=1.0) as served:
            assert (await served.send(CREATE)).response["allowed"]
            await hanging.called.wait()
            async with asyncio.timeout(WAIT_SECONDS):
                await served.gateway.stop(drain=False)
            async with asyncio.timeout(WAIT_SECONDS):
                await hanging.cancelled.wait()
