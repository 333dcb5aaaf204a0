"""Records are written by a thread: those who make them never wait, and what is lost is counted and said once."""

import asyncio
import errno
import os
import threading
from collections import Counter
from contextlib import asynccontextmanager

import pytest

from gateway.telemetry.background_writer import BackgroundWriter, WriteError
from gateway.telemetry.labels import Drop
from gateway.telemetry.line_sinks import DescriptorSink
from tests.integration.running import until

MANY = 20_000


class Collected:
    """A sink that keeps what it gets, and fails while ``error`` is set."""

    name = "memory"

    def __init__(self):
        self.records = []
        self.error = None

    def write(self, records):
        if self.error is not None:
            raise self.error
        self.records += records

    def close(self):
        self.records.append("closed")


@asynccontextmanager
async def writing(sink, **limits):
    """A writer to a sink, and the drops it counted."""
    drops = Counter()
    writer = BackgroundWriter(sink, lambda reason, count: drops.update({reason: count}), **limits)
    writer.start()
    try:
        yield writer, drops
    finally:
        writer.stop()


async def test_records_are_written_in_order():
    """All of them, and the sink is closed at the end."""
    sink = Collected()
    async with writing(sink) as (writer, drops):
        expected = [b"%d\n" % number for number in range(1000)]
        for each in expected:
            writer.put(each)
    assert sink.records == [*expected, "closed"]
    assert not drops


@pytest.mark.parametrize("limits", [{"records": 100}, {"size": 100_000}])
async def test_a_pipe_that_is_never_read_delays_nothing(monkeypatch, logs, limits):
    """What does not fit is dropped and counted, with one message; the end waits for nothing."""
    monkeypatch.setattr("gateway.telemetry.background_writer.STOP_SECONDS", 0.01)
    reading, descriptor = os.pipe()
    async with writing(DescriptorSink(descriptor, "a pipe"), **limits) as (writer, drops):
        for _ in range(MANY):
            writer.put(b"x" * 999 + b"\n")
        assert writer.full or "size" in limits
        assert drops[Drop.FULL] > MANY - 1000
    dropped = drops[Drop.FULL] + drops[Drop.SHUTDOWN]
    os.set_blocking(reading, False)
    read = 0
    # The pipe has what fitted; then the thread, which still writes, ends with its reader.
    while chunk := _read(reading):
        read += len(chunk)
    os.close(reading)
    assert dropped >= MANY - read // 1000 - 1000
    messages = [entry for entry in logs() if entry["message"].startswith("decisions cannot be written")]
    assert [(entry["reason"], entry["to"]) for entry in messages] == [("full", "a pipe")]


def _read(descriptor):
    try:
        return os.read(descriptor, 1 << 20)
    except BlockingIOError:
        return b""


async def test_what_cannot_be_written_is_counted_and_said_once(monkeypatch, logs):
    """Fifty failures are one message; the first success behind them is another."""
    monkeypatch.setattr("gateway.telemetry.background_writer.QUIET_SECONDS", 0)
    sink = Collected()
    async with writing(sink) as (writer, drops):
        sink.error = WriteError(os.strerror(errno.EIO))
        for number in range(50):
            writer.put(b"lost\n")
            await until(lambda number=number: drops.total() > number)
        sink.error = None
        writer.put(b"kept\n")
        await until(lambda: sink.records)
        sink.error = WriteError("rejected", reason=Drop.REJECTED)
        writer.put(b"lost\n")
        await until(lambda: drops.total() > 50)
    assert drops == {Drop.WRITE_ERROR: 50, Drop.REJECTED: 1}
    told = [(entry["level"], entry.get("error") or entry["dropped"]) for entry in logs()]
    assert told == [("error", "Input/output error"), ("warning", 50), ("error", "rejected")]


class Gated(Collected):
    """One whose first write waits."""

    def __init__(self):
        super().__init__()
        self.entered, self.gate = threading.Event(), threading.Event()

    def write(self, records):
        self.entered.set()
        assert self.gate.wait(30)
        super().write(records)


async def test_only_what_was_not_written_is_counted():
    """Of a batch that was written in part, the rest; and an error of the sink itself costs its batch only."""
    sink = Gated()
    async with writing(sink) as (writer, drops):
        writer.put(b"first\n")
        assert await asyncio.to_thread(sink.entered.wait, 30)
        sink.error = ZeroDivisionError()
        sink.gate.set()
        await until(lambda: drops == {Drop.INTERNAL: 1})
        sink.gate.clear()
        sink.entered.clear()
        sink.error = WriteError("full", written=1)
        writer.put(b"second\n")
        assert await asyncio.to_thread(sink.entered.wait, 30)
        for _ in range(3):
            writer.put(b"third\n")
        sink.gate.set()
        await until(lambda: drops == {Drop.INTERNAL: 1, Drop.WRITE_ERROR: 2})


async def test_stopping_twice_is_stopping_once():
    """And a writer that was never started can be stopped."""
    async with writing(Collected()) as (writer, drops):
        writer.stop()
    assert not drops
    BackgroundWriter(Collected(), lambda *_: None).stop()
