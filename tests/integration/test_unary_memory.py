"""``--memory-budget`` holds for the answers of unary calls too, which gRPC receives as a whole."""

import asyncio

import pytest

from tests.integration.client import AsyncClient, post
from tests.integration.running import policy, source, until
from tests.integration.test_heavy_requests import review
from tests.integration.test_memory import own_errors, resident
from tests.integration.workers import deny, pb, scripted

pytestmark = pytest.mark.integration

BUDGET = 200_000_000
"""Little more than eight of the largest bodies, which it must hold."""
ANSWERS = 40
ANSWER_BYTES = 12_000_000
"""All together are more than twice the budget. (They took 710 MB.)"""


async def test_large_answers_take_no_more_than_the_budget(serve, trust, tmp_path):
    """All begin to arrive at once; each is received, and the small ones of another worker too."""
    opened, called = asyncio.Event(), 0
    large, small = deny("m" * ANSWER_BYTES), deny("small")

    async def answered(request, context):
        nonlocal called
        called += 1
        if pb.ReviewRequest.FromString(request).call.policy == "small":
            return small
        await opened.wait()
        return large

    # Neither has a stream.
    async with scripted("large", review=answered) as first, scripted("small", review=answered) as second:
        about = [policy("large", worker="first", timeoutSeconds=29), policy("small", worker="second")]
        path = tmp_path / "policies.yaml"
        path.write_text(source(workers={"first": first, "second": second}, validating=about))
        arguments = ("--policies", path, "--memory-budget", BUDGET, "--log-format", "json")
        process = await asyncio.to_thread(lambda: serve(*arguments).ready())
        before = resident(process)
        sent = post(review(b'""'), "/validate?timeout=30s")
        clients = [await AsyncClient.connect(process.port, trust) for _ in range(ANSWERS)]
        asked = [asyncio.create_task(client.send(sent)) for client in clients]
        await until(lambda: called == 2 * ANSWERS)
        opened.set()
        responses = [each.response for each in await asyncio.gather(*asked)]
        assert {(each["allowed"], each["status"]["code"]) for each in responses} == {(False, 403)}
        for client in clients:
            await client.close()
        assert resident(process, "VmHWM") - before < BUDGET
        assert own_errors(process) == []
