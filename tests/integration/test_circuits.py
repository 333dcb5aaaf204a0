"""What one tenant does to the circuits of a worker, through a whole gateway: nothing that another one notices."""

import asyncio

from gateway.transports.proto.admission.worker.v1 import worker_pb2 as pb
from tests.integration.client import message
from tests.integration.running import configuration, policy, source
from tests.integration.workers import ALLOW, Gate, deny, scripted
from tests.traffic import recording

VALIDATING = recording("pod-create.1v")
SLOW = 20
"""As many as a circuit judges."""


async def all_sent(served, content, count=SLOW):
    """The answers to a request that is sent so many times at once."""
    clients = [await served.client() for _ in range(count)]
    return [answered.response for answered in await asyncio.gather(*(each.send(content) for each in clients))]


async def test_slow_objects_under_ignore_let_no_forbidden_object_pass(gateway):
    """Twenty objects that the worker never judges fail open; the next one, which it denies, is denied."""

    async def review(content, context):
        if b'"slow"' in pb.ReviewRequest.FromString(content).call.document:
            await asyncio.get_running_loop().create_future()
        return deny("forbidden")

    async with scripted("judge", review=review) as target:
        about = policy("judge", failurePolicy="Ignore", timeoutSeconds=0.25)
        known = configuration(source(workers={"scripted": target}, validating=[about]))
        async with gateway(known) as served:
            slow = VALIDATING.body.replace(b'"CREATE"', b'"CREATE","slow":"slow"', 1)
            for response in await all_sent(served, message(VALIDATING, body=slow)):
                assert response["allowed"]
                assert response["auditAnnotations"] == {"judge.test.example.com_failed-open": "WORKER_TIMEOUT"}
            for _ in range(3):
                response = (await served.send(message(VALIDATING))).response
                assert not response["allowed"]
                assert response["status"]["message"] == "forbidden"


async def test_clients_in_a_hurry_do_not_make_the_worker_unavailable(gateway):
    """Twenty clients that leave the worker a third of the policy's timeout; one that leaves all of it has a verdict."""
    review = Gate(ALLOW)
    async with scripted("judge", review=review) as target:
        about = policy("judge", timeoutSeconds=1.5)
        known = configuration(source(workers={"scripted": target}, validating=[about]))
        async with gateway(known) as served:
            hurried = message(VALIDATING).replace(b"timeout=10s", b"timeout=1s")
            for response in await all_sent(served, hurried):
                assert "BUDGET_EXHAUSTED" in response["status"]["message"]
            review.open.set()
            assert (await served.send(message(VALIDATING))).response["allowed"]
            assert served.metric("worker_events_total", worker="scripted", event="circuit_opened") == 0
