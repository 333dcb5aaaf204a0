"""``--memory-budget`` holds for the whole process, whatever is sent, and what was used is given back."""

import asyncio
import re
from pathlib import Path

import pytest

from tests.integration.client import AsyncClient, post
from tests.integration.running import policy, source, until
from tests.integration.test_heavy_requests import nested, review
from tests.integration.workers import Gate, scripted

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
