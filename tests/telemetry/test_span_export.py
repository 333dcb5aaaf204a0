"""The queue of spans and its thread: nothing waits for the exporter, the stop is bounded, and every span is counted."""

import asyncio
import sys
import threading
from collections import Counter
from contextlib import contextmanager

import pytest
from structlog.testing import capture_logs

from gateway.telemetry.traces import export as export_module
from gateway.telemetry.traces import otlp
from gateway.telemetry.traces.export import CLOSING_SECONDS, DROPPED, EXPORTED, FAILED, SpanExport
from gateway.telemetry.traces.settings import BatchSettings, TraceSettings, trace_settings
from gateway.telemetry.traces.span import Span
from tests.cluster.virtual_time import run
from tests.integration.process import WAIT_SECONDS

QUEUE, STOP_SECONDS = 10, 3.0


class Blocked:
    """An exporter that takes a batch and does not come back, as of a collector that never answers.

    Args:
        closes: whether a shutdown ends that, as a failure.
    """

    def __init__(self, *, closes):
        self.entered, self.released, self._closes = threading.Event(), threading.Event(), closes

    def export(self, spans, resource):
        self.entered.set()
        assert self.released.wait(WAIT_SECONDS)
        return 0, ""

    def shutdown(self):
        if self._closes:
            self.released.set()
        assert self.released.wait(WAIT_SECONDS)

    def block(self):
        """Wait until it has a batch."""
        assert self.entered.wait(WAIT_SECONDS)


def spans(number):
    return [Span(name="s", trace_id="1" * 32, span_id=1, started=0.0, ended=1.0) for _ in range(number)]


def settings(**fields):
    batches = BatchSettings(delay_seconds=WAIT_SECONDS, queue_spans=QUEUE, batch_spans=2, stop_seconds=STOP_SECONDS)
    made = trace_settings({}, endpoint="http://127.0.0.1:4317", **fields)
    return TraceSettings(protocol=made.protocol, endpoint=made.endpoint, sampler=made.sampler, batches=batches)


@pytest.fixture
def exporting(monkeypatch):
    """Makes an export with this exporter, which has begun with a batch of two; and what it counts."""
    made = []

    @contextmanager
    def begin(exporter):
        made.append(exporter)
        counts = Counter()
        monkeypatch.setattr(otlp, "SpanSender", lambda _settings: exporter)
        export = SpanExport(settings(), "test", lambda result, number: counts.update({result: number}))
        export.start()
        export.put(spans(2))
        exporter.block()
        yield export, counts

    yield begin
    for each in made:
        each.released.set()


WAITING = frozenset({"sleep", "wait", "wait_for", "join", "result", "select", "poll"})
"""Names of functions that wait, of Python and of C."""


@contextmanager
def no_call_of(*names, c_only=False):
    """Fails where this thread calls a function of such a name: without a clock, however short it waits."""
    called = set()

    def see(frame, event, argument):
        if event == "c_call":
            called.add(argument.__name__)
        elif event == "call" and not c_only:
            called.add(frame.f_code.co_name)

    sys.setprofile(see)
    try:
        yield
    finally:
        sys.setprofile(None)
    assert called.isdisjoint(names), called & set(names)


def test_a_span_waits_for_no_exporter(exporting):
    """While a batch does not come back, spans are queued; those beyond the queue are dropped at once, and counted."""

    async def main():
        exporter = Blocked(closes=True)
        with exporting(exporter) as (export, counts):
            with no_call_of(*WAITING):
                export.put(spans(QUEUE - 1))
                assert counts == {}
                export.put(spans(3))
            assert counts == {DROPPED: 2}
            assert not exporter.released.is_set()
            exporter.released.set()
            await export.stop()

    asyncio.run(main())


def test_a_stop_takes_no_longer_than_its_limit(exporting):
    """An exporter that neither comes back nor can be closed gets the limit, and the time to close; in jumping time."""

    async def main():
        exporter = Blocked(closes=False)
        with exporting(exporter) as (export, counts), capture_logs() as logged:
            export.put(spans(3))
            begun = asyncio.get_running_loop().time()
            with no_call_of("sleep", c_only=True):
                await export.stop()
            assert asyncio.get_running_loop().time() - begun == pytest.approx(STOP_SECONDS + CLOSING_SECONDS)
            assert not exporter.released.is_set()
        # Those in flight, too.
        assert counts == {DROPPED: 5}
        (line,) = [line for line in logged if line["event"] == "spans were not exported before the stop"]
        assert line["spans"] == 5
        await export.stop()
        assert counts == {DROPPED: 5}

    run(main())


def test_a_batch_that_comes_back_after_the_stop_is_counted_once(exporting):
    """It was counted as dropped; nothing more is."""

    async def main():
        exporter = Blocked(closes=False)
        with exporting(exporter) as (export, counts):
            await export.stop()
            assert counts == {DROPPED: 2}
            exporter.released.set()
            export._thread.join(WAIT_SECONDS)
            assert not export._thread.is_alive()
            await asyncio.sleep(0)
            assert counts == {DROPPED: 2}

    run(main())


def test_a_batch_that_fails_because_of_the_stop_is_counted_once(exporting):
    """Closing ends the export under way: it failed. What waits behind it is dropped."""

    async def main():
        with exporting(Blocked(closes=True)) as (export, counts):
            export.put(spans(3))
            export_module.monotonic  # noqa: B018 - read by the thread, whose time is the real one
            await export.stop()
            await asyncio.sleep(0)
            assert counts.total() == 5
            assert counts[FAILED] >= 2
            assert EXPORTED not in counts

    asyncio.run(main())
