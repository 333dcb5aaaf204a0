"""What a worker writes becomes log lines: all that is bearable, at no review's cost, and from no file but its own."""

import asyncio
import os
import sys

import pytest
from structlog.testing import capture_logs

from gateway.policies.workers.targets import GrpcTarget, Worker
from gateway.transports import output as logging_output
from gateway.transports.limits import TransportLimits
from gateway.transports.output import LINE_BYTES, WorkerOutput
from gateway.transports.supervisor import Supervisor
from tests.integration.process import WAIT_SECONDS
from tests.integration.running import until


async def logged(*pieces):
    """The log's entries about an output that comes in these pieces."""
    reading, writing = os.pipe()
    os.set_blocking(reading, False)
    with capture_logs() as entries, os.fdopen(reading, "rb", 0) as source:
        task = asyncio.create_task(WorkerOutput("labels", source).log())
        with os.fdopen(writing, "wb", 0) as sink:
            for piece in pieces:
                await asyncio.get_running_loop().run_in_executor(None, sink.write, piece)
        await asyncio.wait_for(task, WAIT_SECONDS)
    return entries


async def test_lines_are_put_together_again():
    """A line is one entry however it was written; blank ones are none; the last needs no end."""
    entries = await logged(b"on", b"e\n\n  \ntw", b"o\nthree")
    assert [entry["line"] for entry in entries] == ["one", "two", "three"]


async def test_a_line_without_an_end_is_logged_in_parts():
    """What has no end of line does not pile up."""
    entries = await logged(*[b"x" * 10_000] * 20)
    lines = [entry["line"] for entry in entries]
    assert "".join(lines) == "x" * 200_000
    assert max(map(len, lines)) <= 2 * LINE_BYTES


async def test_a_flood_is_counted_not_logged(monkeypatch):
    """Of what is written in one second only so many lines are logged; how many were left out is said."""
    monkeypatch.setattr(logging_output, "LINES_A_SECOND", 10)
    entries = await logged(b"".join(b"%d\n" % number for number in range(100)))
    assert [entry["line"] for entry in entries if "line" in entry] == [str(number) for number in range(10)]
    assert [entry["lines"] for entry in entries if "lines" in entry] == [90]


async def test_a_given_up_output_does_not_silence_the_next():
    """When one output is given up before its end, the next, which has the same file number, is read all the same."""
    for _ in range(3):
        reading, writing = os.pipe()
        os.set_blocking(reading, False)
        with os.fdopen(reading, "rb", 0) as source:
            task = asyncio.create_task(WorkerOutput("labels", source).log())
            await asyncio.sleep(0)
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
        entries = await logged(b"heard\n")
        os.close(writing)
        assert [entry["line"] for entry in entries] == ["heard"]


@pytest.mark.integration
async def test_stopping_while_last_words_are_awaited_leaves_no_task():
    """A worker that is dead, but whose output another process still holds, is stopped without anything left running."""
    script = (
        "import os, time\n"
        "if os.fork() == 0:\n"
        "    os.setsid()\n"
        "    print(os.getpid(), flush=True)\n"
        "    time.sleep(1000)\n"
    )
    worker = Worker(name="labels", grpc=GrpcTarget(target="unix:/x", command=(sys.executable, "-c", script)))
    supervisor = Supervisor(worker, "unix:/x", TransportLimits())
    with capture_logs() as entries:
        supervisor.start()
        await until(lambda: any("line" in entry for entry in entries))
        await until(lambda: supervisor.pid is None)
        await supervisor.stop()
    for escaped in {int(entry["line"]) for entry in entries if "line" in entry}:
        os.kill(escaped, 9)
    assert asyncio.all_tasks() == {asyncio.current_task()}


async def test_a_traceback_is_one_entry():
    """However it was written; the lines around it are others."""
    text = 'Traceback (most recent call last):\n  File "worker.py", line 3\nValueError: no'
    entries = await logged(b"before\nTraceback (most", text[15:].encode(), b"\nafter\n")
    assert [entry["line"] for entry in entries] == ["before", text, "after"]


async def test_a_line_is_logged_though_nothing_follows(monkeypatch):
    """The next line might have joined it, and the wait for that is short."""
    monkeypatch.setattr(logging_output, "QUIET_SECONDS", 0.0)
    reading, writing = os.pipe()
    os.set_blocking(reading, False)
    with capture_logs() as entries, os.fdopen(reading, "rb", 0) as source, os.fdopen(writing, "wb", 0) as sink:
        task = asyncio.create_task(WorkerOutput("labels", source).log())
        sink.write(b"one\n")
        await until(lambda: entries)
        assert entries[0]["line"] == "one"
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
