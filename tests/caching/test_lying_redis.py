"""A server that speaks Redis and gives invalid answers: each one is a miss, in time."""

import asyncio
import re
from contextlib import asynccontextmanager

import pytest

from gateway.engine.answer_source import Source
from gateway.engine.verdicts import Deny
from gateway.telemetry.labels import LookupResult
from tests.caching.conftest import IMPATIENT
from tests.caching.world import ALLOW, policy_call, turns, until

COMMAND = re.compile(rb"\r\n(PING|GETRANGE|SET|SCAN|CLIENT|SELECT|UNLINK)\r\n")


@asynccontextmanager
async def liar(answer: bytes | None, *, delay: float = 0.0, hang_up: bool = False):
    """Answers PING as it should after ``delay`` seconds, and every GETRANGE with ``answer`` (None: not at all)."""
    writers = []

    async def serve(reader, writer):
        writers.append(writer)
        while data := await reader.read(65_536):
            await asyncio.sleep(delay)
            for command in COMMAND.findall(data):
                if command == b"GETRANGE":
                    if hang_up:
                        writer.close()
                        return
                    writer.write(answer or b"")
                else:
                    writer.write(b"+PONG\r\n" if command == b"PING" else b"+OK\r\n")

    listener = await asyncio.start_server(serve, "127.0.0.1", 0)
    try:
        yield f"redis://127.0.0.1:{listener.sockets[0].getsockname()[1]}"
    finally:
        listener.close()
        for writer in writers:
            writer.close()
        await turns()


@pytest.mark.parametrize(
    "answer",
    [
        None,
        b"+OK\r\n",
        b":1\r\n",
        b"$-1\r\n",
        b"*-1\r\n",
        b"*2\r\n$1\r\na\r\n:1\r\n",
        b"-ERR unknown command `AUTH`, with args beginning with: `hunter2`\r\n",
        b"-MOVED 1 127.0.0.1:1\r\n",
        b"-LOADING\r\n",
        b"-NOAUTH\r\n",
        b"nonsense\r\n",
        b"\x00" * 100,
        b"$500000000\r\nxxxx",
        b"$3\r\nabc\r\n" * 5,
        b"*1\r\n" * 2000,
    ],
)
async def test_any_answer_is_a_miss(gateway, logs, answer):
    """No kind of answer, no nonsense and no shift of answers is a verdict, an error, or a wait."""
    async with liar(answer) as url:
        made = await gateway(Deny(), limits=IMPATIENT, url=url)
        for number in range(5):
            assert await made.answer(policy_call(f"[{number}]")) == (Deny(), Source.CALLED)
        assert made.events.results == {LookupResult.MISS: 5}
        await made.cache.close()
    assert "hunter2" not in str(logs)


async def test_one_that_hangs_up(gateway):
    """A server that accepts connections and drops them at the first command is skipped after a few."""
    async with liar(None, hang_up=True) as url:
        made = await gateway(ALLOW, limits=IMPATIENT, url=url)
        for number in range(5):
            assert await made.answer(policy_call(f"[{number}]")) == (ALLOW, Source.CALLED)
        await until(lambda: made.events.counts["skipped"])
        await made.cache.close()


async def test_one_that_is_too_slow(gateway):
    """A server that answers later than a lookup may wait is not used at all."""
    async with liar(b"$0\r\n\r\n", delay=0.1) as url:
        made = await gateway(ALLOW, limits=IMPATIENT, url=url, connected=False)
        await until(lambda: sum(made.events.faults.values()) >= 2)
        assert not made.store.up
        assert await made.answer(policy_call()) == (ALLOW, Source.CALLED)
        await made.cache.close()
