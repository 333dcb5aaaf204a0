"""``--memory-budget`` holds for the whole process, whatever is sent, and what was used is given back."""

import asyncio
import re
from functools import partial
from pathlib import Path

import pytest

from tests.integration.client import AsyncClient, post
from tests.integration.running import policy, source, until
from tests.integration.test_heavy_requests import nested, review
from tests.integration.workers import Gate, always, answer, deny, pb, scripted

pytestmark = pytest.mark.integration

BUDGET = 200_000_000
"""Little more than eight of the largest bodies, which it must hold: a few clients reach it."""
BODIES = 16
BODY_BYTES = 3_000_000
CONNECTIONS = 200
HEADER_BYTES = 460_000
BEFORE = b"POST /validate HTTP/1.1\r\nHost: g\r\n"


def resident(process, name="VmRSS"):
    """Bytes of a process in memory, or with VmHWM the most that it has had."""
    status = Path(f"/proc/{process.process.pid}/status").read_text()
    return int(re.search(rf"^{name}:\s+(\d+) kB", status, re.MULTILINE)[1]) * 1024


@pytest.fixture
def small(serve, tmp_path):
    """Start a gateway with this budget and one worker: ``small(target)``."""

    def start(target):
        about = [policy("whole", timeoutSeconds=29), policy("part", inputs=["/object/metadata/labels"])]
        path = tmp_path / "policies.yaml"
        path.write_text(source(workers={"scripted": target}, validating=about))
        return serve("--policies", path, "--memory-budget", BUDGET, "--log-format", "json").ready()

    return start


@pytest.mark.parametrize("spec", [b'"%s"' % (b"x" * BODY_BYTES), nested(BODY_BYTES)], ids=["one text", "nested"])
async def test_bodies_take_no_more_than_the_budget(small, trust, spec):
    """Those that fit are in flight at a worker that does not answer, others are refused: each gets its answer."""
    gate = Gate()
    async with scripted("whole", "part", review=gate) as target:
        process = await asyncio.to_thread(small, target)
        before = resident(process)
        sent = post(review(spec), "/validate?timeout=30s")
        clients = [await AsyncClient.connect(process.port, trust) for _ in range(BODIES)]
        asked = [asyncio.create_task(client.send(sent)) for client in clients]
        # All that fit are held, and all others are refused.
        await until(lambda: sum(task.done() for task in asked) + len(gate.calls) >= BODIES)
        gate.open.set()
        answers = await asyncio.gather(*asked)
        assert {answer.status for answer in answers} == {200, 429}
        for client in clients:
            await client.close()
        assert resident(process, "VmHWM") - before < BUDGET
        await until(lambda: resident(process) - before < BUDGET // 3)
        assert process.internal_errors() == []


def own_errors(process):
    """Its internal errors, except that the machine let it stand still for two seconds."""
    return [line for line in process.internal_errors() if "the event loop stands still" not in line]


def object_of(size):
    """A Pod of so many bytes, which differs from the reviewed one."""
    return b'{"metadata":{"name":"p","annotations":{"a":"%s"}},"spec":""}' % (b"x" * size)


async def test_large_changes_take_no_more_than_the_budget(serve, trust, tmp_path):
    """Those that fit are held while a later policy does not answer, others are OVERLOADED: each review is answered."""
    gate, whole = Gate(), answer(allow=pb.Allow(object=object_of(BODY_BYTES)))

    async def answered(request, context):
        return whole if pb.ReviewRequest.FromString(request).call.policy == "whole" else await gate(request, context)

    async with scripted("whole", "part", review=answered) as target:
        about = [policy("whole"), policy("part", inputs=["/object/metadata/name"])]
        path = tmp_path / "policies.yaml"
        path.write_text(source(workers={"scripted": target}, mutating=about))
        start = partial(serve, "--policies", path, "--memory-budget", BUDGET, "--no-prefetch", "--log-format", "json")
        process = await asyncio.to_thread(lambda: start().ready())
        before = resident(process)
        sent = post(review(b'""'), "/mutate?timeout=10s")
        clients = [await AsyncClient.connect(process.port, trust) for _ in range(BODIES)]
        asked = [asyncio.create_task(client.send(sent)) for client in clients]
        await until(lambda: sum(task.done() for task in asked) + len(gate.calls) >= BODIES)
        assert 1 <= len(gate.calls) <= BUDGET // 8 // BODY_BYTES
        gate.open.set()
        responses = [each.response for each in await asyncio.gather(*asked)]
        assert [each["status"]["code"] for each in responses if not each["allowed"]] == [429] * (
            BODIES - len(gate.calls)
        )
        assert process.metric("limit_hits_total", limit="answer_bytes_in_flight") == BODIES - len(gate.calls)
        for client in clients:
            await client.close()
        assert resident(process, "VmHWM") - before < BUDGET
        # Nothing stays charged.
        client = await AsyncClient.connect(process.port, trust)
        for _ in range(3):
            assert (await client.send(sent)).response["allowed"]
        await client.close()
        assert own_errors(process) == []


async def test_long_messages_take_no_more_than_the_budget(small, trust):
    """A denial of 3 MB is a denial of 64 KB."""
    async with scripted("whole", "part", review=always(deny("m" * BODY_BYTES))) as target:
        process = await asyncio.to_thread(small, target)
        before = resident(process)
        sent = post(review(b'""'), "/validate?timeout=10s")
        clients = [await AsyncClient.connect(process.port, trust) for _ in range(BODIES)]
        responses = [each.response for each in await asyncio.gather(*(client.send(sent) for client in clients))]
        assert {(each["allowed"], each["status"]["code"]) for each in responses} == {(False, 403)}
        assert max(len(each["status"]["message"]) for each in responses) < 4 * 70_000
        for client in clients:
            await client.close()
        assert process.metric("limit_hits_total", limit="answer_characters") == 2 * BODIES
        assert resident(process, "VmHWM") - before < BUDGET
        await until(lambda: resident(process) - before < BUDGET // 3)
        assert own_errors(process) == []


async def test_unfinished_headers_take_no_more_than_the_budget(small, trust):
    """Without credentials, a client can make the gateway keep next to nothing."""
    async with scripted("whole", "part") as target:
        process = await asyncio.to_thread(small, target)
        before = resident(process)
        fields = b"".join(b"X-%d: %s\r\n" % (number, b"a" * 7_990) for number in range(HEADER_BYTES // 8_000))
        clients = [await AsyncClient.connect(process.port, trust) for _ in range(CONNECTIONS)]
        for client in clients:
            client.sendall(BEFORE + fields)
        await until(lambda: process.metric("limit_hits_total", limit="field_bytes") > 0)
        await until(lambda: process.metric("connections") < CONNECTIONS // 2)
        for client in clients:
            await client.close()
        assert resident(process, "VmHWM") - before < BUDGET // 2
        await until(lambda: resident(process) - before < BUDGET // 3)
        assert process.internal_errors() == []
