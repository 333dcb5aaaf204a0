"""Full means a decided refusal, not a stall."""

import asyncio

from gateway.review.request import decode
from gateway.serving.limits import Limits
from tests.integration.client import message
from tests.integration.process import WAIT_SECONDS
from tests.integration.running import configuration, policy, source, until
from tests.integration.workers import Gate, scripted
from tests.traffic import recording

VALIDATING = recording("pod-create.1v")


async def test_one_review_too_many_goes_to_its_failure_policies(gateway):
    """A review that waited in vain for its share is OVERLOADED: 429 under Fail; the one in flight is not disturbed."""
    review = Gate()
    async with scripted("judge", review=review) as target:
        known = configuration(source(workers={"scripted": target}, validating=[policy("judge")]))
        async with gateway(known, limits=Limits(reviews_in_flight=1, wait_seconds=0.05)) as served:
            first = await served.client()
            first.sendall(message(VALIDATING))
            async with asyncio.timeout(WAIT_SECONDS):
                await review.called.wait()
            answered = await served.send(message(VALIDATING))
            status = answered.response["status"]
            assert (status["code"], status["details"]["retryAfterSeconds"]) == (429, 1)
            assert status["message"].startswith("OVERLOADED: ")
            assert served.metric("limit_hits_total", limit="reviews_in_flight") == 1
            review.open.set()
            assert (await first.answer()).response["allowed"]
            assert len(review.calls) == 1


async def test_an_overloaded_gateway_fails_open_loudly(gateway):
    """Under Ignore a review that is too many is let pass, with a warning and an audit annotation."""
    review = Gate()
    async with scripted("judge", review=review) as target:
        about = policy("judge", failurePolicy="Ignore")
        known = configuration(source(workers={"scripted": target}, validating=[about]))
        async with gateway(known, limits=Limits(reviews_in_flight=1, wait_seconds=0.05)) as served:
            first = await served.client()
            first.sendall(message(VALIDATING))
            async with asyncio.timeout(WAIT_SECONDS):
                await review.called.wait()
            response = (await served.send(message(VALIDATING))).response
            assert response["allowed"]
            assert "OVERLOADED" in response["warnings"][0]
            assert response["auditAnnotations"] == {"judge.test.example.com_failed-open": "OVERLOADED"}
            review.open.set()
            await first.answer()


async def test_bodies_beyond_the_memory_limit_are_refused(gateway):
    """Where all bodies in flight together would be too large, one more is HTTP 429; later ones are served again."""
    review = Gate()
    size = len(VALIDATING.body)
    limits = Limits(body_bytes_in_flight=size + size // 2)
    async with scripted("judge", review=review) as target:
        known = configuration(source(workers={"scripted": target}, validating=[policy("judge")]))
        async with gateway(known, limits=limits) as served:
            first = await served.client()
            first.sendall(message(VALIDATING))
            async with asyncio.timeout(WAIT_SECONDS):
                await review.called.wait()
            refused = await served.send(message(VALIDATING))
            assert refused.status == 429
            assert served.metric("limit_hits_total", limit="body_bytes_in_flight") == 1
            review.open.set()
            await first.answer()
            await until(lambda: served.gateway.front.load.body_bytes == 0)
            assert (await served.send(message(VALIDATING))).response["allowed"]


async def test_a_flood_in_one_namespace_leaves_room_for_others(gateway):
    """A namespace whose reviews take long has half of those in flight, and others are judged beside it."""
    review = Gate()
    async with scripted("judge", review=review) as target:
        known = configuration(source(workers={"scripted": target}, validating=[policy("judge")]))
        async with gateway(known, limits=Limits(reviews_in_flight=8, wait_seconds=0.05)) as served:
            flood = [await served.client() for _ in range(4)]
            for number, client in enumerate(flood):
                client.sendall(message(VALIDATING))
                await until(lambda begun=number + 1: len(review.calls) == begun)
            refused = [await served.send(message(VALIDATING)) for _ in range(2)]
            assert {each.response["status"]["code"] for each in refused} == {429}
            innocent = await served.client()
            body = VALIDATING.body.replace(b'"namespace":"t"', b'"namespace":"other"')
            innocent.sendall(message(VALIDATING, body=body))
            await until(lambda: len(review.calls) == 5)
            review.open.set()
            for client in (*flood, innocent):
                assert (await client.answer()).response["allowed"]
            assert served.metric("limit_hits_total", limit="reviews_in_flight") == 2


async def test_large_bodies_of_one_namespace_leave_room_for_others(gateway):
    """A namespace whose bodies reach half of the limit gets HTTP 429, and another one is judged beside it."""
    review = Gate()
    limits = Limits(body_bytes_in_flight=6 * len(VALIDATING.body))
    async with scripted("judge", review=review) as target:
        known = configuration(source(workers={"scripted": target}, validating=[policy("judge")]))
        async with gateway(known, limits=limits) as served:
            flood = await _begun(served, review, [VALIDATING.body] * 3)
            assert (await served.send(message(VALIDATING))).status == 429
            innocent = await _begun(served, review, [_elsewhere(VALIDATING.body)])
            review.open.set()
            for client in (*flood, *innocent):
                assert (await client.answer()).response["allowed"]
            await until(lambda: served.gateway.front.load.body_bytes == 0)


async def test_many_values_of_one_namespace_leave_room_for_others(gateway):
    """With a worker that stands still, one namespace's objects of many values are OVERLOADED, and no other's."""
    review = Gate()
    about = policy("judge", inputs=["/object/metadata/labels", "/object/spec/a"])
    body = _with_values(2_000)
    async with scripted("judge", review=review) as target:
        known = configuration(source(workers={"scripted": target}, validating=[about]))
        async with gateway(known, limits=Limits(values_in_flight=4 * decode(body).values)) as served:
            flood = await _begun(served, review, [body] * 2)
            refused = await served.send(message(VALIDATING, body=body).replace(b"timeout=10s", b"timeout=2s"))
            assert refused.response["status"]["message"].startswith("OVERLOADED: ")
            assert served.metric("limit_hits_total", limit="values_in_flight") == 1
            innocent = await _begun(served, review, [_elsewhere(body)])
            review.open.set()
            for client in (*flood, *innocent):
                assert (await client.answer()).response["allowed"]


async def _begun(served, review, bodies):
    """Clients whose reviews wait for their worker."""
    clients = []
    for body in bodies:
        clients.append(await served.client())
        before = len(review.calls)
        clients[-1].sendall(message(VALIDATING, body=body))
        await until(lambda: len(review.calls) == before + 1)  # noqa: B023 - awaited here
    return clients


def _elsewhere(body):
    assert b'"namespace":"t"' in body
    return body.replace(b'"namespace":"t"', b'"namespace":"other"')


def _with_values(number):
    """The recorded pod with so many more members in its spec."""
    members = ",".join(f'"m{each}":1' for each in range(number)).encode()
    assert VALIDATING.body.count(b'"spec":{') == 1
    return VALIDATING.body.replace(b'"spec":{', b'"spec":{' + members + b",")
