"""A worker's answers that make work are decided in time, and reviews of others are answered beside them."""

import asyncio
import json

from tests.integration.client import message, post
from tests.integration.running import configuration, policy, source
from tests.integration.workers import always, patch, scripted
from tests.traffic import recording

INNOCENT = recording("pod-create.1v")
COPIES = [{"op": "add", "path": "/l", "value": []}, *[{"op": "copy", "from": "/m", "path": "/l/-"}] * 20]
"""A patch of 1 KB, which becomes 180,000 values. Each was attributed by itself: seconds of the loop."""


def review(uid):
    """An AdmissionReview about a pod with a long array."""
    request = {
        "uid": uid,
        "kind": {"group": "", "version": "v1", "kind": "Pod"},
        "resource": {"group": "", "version": "v1", "resource": "pods"},
        "namespace": "t",
        "operation": "CREATE",
        "object": {"metadata": {"name": "p"}, "m": [0] * 9_000},
    }
    return json.dumps({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}).encode()


async def test_innocent_reviews_beside_heavy_answers_are_answered(gateway):
    """Two policies copy a long array twenty times: the second one's conflict is found, and no innocent review waits."""
    text = json.dumps(COPIES)
    names = ("one", "two")
    async with (
        scripted(*names, review=always(patch(text))) as target,
        scripted("quick") as quick,
    ):
        known = configuration(
            source(
                workers={"scripted": target, "quick": quick},
                mutating=[policy(name, onConflict="allow") for name in names],
                validating=[policy("quick", worker="quick")],
            )
        )
        async with gateway(known) as served:
            heavy = [
                asyncio.create_task(served.send(post(review(f"heavy-{n}"), "/mutate?timeout=30s"))) for n in range(3)
            ]
            client, innocent = await served.client(), 0
            while not all(task.done() for task in heavy):
                assert (await client.send(message(INNOCENT))).response["allowed"]
                innocent += 1
            for answer in await asyncio.gather(*heavy):
                assert answer.response["allowed"]
                assert answer.response["patch"]
            assert innocent >= len(heavy)
