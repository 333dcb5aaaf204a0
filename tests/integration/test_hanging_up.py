"""The API server hangs up: it closes the connection, and the work for it ends."""

import asyncio

import pytest

from tests.integration.client import message
from tests.integration.process import WAIT_SECONDS
from tests.integration.running import configuration, policy, source, until
from tests.integration.workers import Gate, Hanging, deny, scripted
from tests.traffic import recording

MUTATING = recording("pod-create.0m")
VALIDATING = recording("pod-create.1v")


@pytest.mark.parametrize("recorded", [MUTATING, VALIDATING], ids=["mutating", "validating"])
async def test_a_hang_up_cancels_the_workers_call(gateway, recorded):
    """When its connection closes the worker's call is cancelled, and the review counts as abandoned, not decided."""
    review = Hanging()
    async with scripted("judge", review=review) as target:
        known = configuration(source(workers={"scripted": target}, **{recorded.phase: [policy("judge")]}))
        async with gateway(known) as served:
            client = await served.client()
            client.sendall(message(recorded))
            async with asyncio.timeout(WAIT_SECONDS):
                await review.called.wait()
                await client.close()
                await review.cancelled.wait()
            await until(lambda: served.metric("reviews_canceled_total", phase=recorded.phase) == 1)
            assert served.decisions == {}
            assert served.gateway.front.load.reviews == served.gateway.front.load.body_bytes == 0


async def test_every_open_call_is_cancelled(gateway):
    """A hang-up cancels the calls to all workers that were called."""
    reviews = Hanging(), Hanging()
    async with scripted("one", review=reviews[0]) as first, scripted("two", review=reviews[1]) as second:
        workers = {"first": first, "second": second}
        policies = [policy("one", worker="first"), policy("two", worker="second")]
        async with gateway(configuration(source(workers=workers, validating=policies))) as served:
            client = await served.client()
            client.sendall(message(VALIDATING))
            async with asyncio.timeout(WAIT_SECONDS):
                for review in reviews:
                    await review.called.wait()
                await client.close()
                for review in reviews:
                    await review.cancelled.wait()


async def test_a_call_with_side_effects_is_not_broken_off(gateway):
    """A policy with side effects for this request goes on to its end, although the API server has hung up."""
    quiet, effects = Hanging(), Hanging()
    async with scripted("quiet", review=quiet) as first, scripted("effects", review=effects) as second:
        workers = {"first": first, "second": second}
        policies = [
            policy("quiet", worker="first"),
            policy("effects", worker="second", sideEffects="NoneOnDryRun"),
        ]
        async with gateway(configuration(source(workers=workers, validating=policies))) as served:
            client = await served.client()
            client.sendall(message(VALIDATING))
            async with asyncio.timeout(WAIT_SECONDS):
                await quiet.called.wait()
                await effects.called.wait()
                await client.close()
                # The cancels of one review leave together: once one has arrived, the other would have.
                await quiet.cancelled.wait()
            await until(lambda: served.metric("reviews_canceled_total", phase="validating") == 1)
            assert not effects.cancelled.is_set()


async def test_a_hang_up_affects_no_other_client(gateway):
    """Another review about the same object goes on, and is answered."""
    review = Gate(deny("judged"))
    async with scripted("judge", review=review) as target:
        known = configuration(source(workers={"scripted": target}, validating=[policy("judge")]))
        async with gateway(known) as served:
            gone, stays = await served.client(), await served.client()
            gone.sendall(message(VALIDATING))
            async with asyncio.timeout(WAIT_SECONDS):
                await review.called.wait()
            stays.sendall(message(VALIDATING))
            await until(lambda: len(review.calls) == 2)
            await gone.close()
            await until(lambda: served.metric("reviews_canceled_total", phase="validating") == 1)
            review.open.set()
            assert (await stays.answer()).response["status"]["message"] == "judged"
