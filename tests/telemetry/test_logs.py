"""Log lines: one JSON object each, never a reason to wait."""

import io
import json
import logging
import os
import threading

import pytest
import structlog

from gateway.telemetry.logs import configure_logs

LOG = structlog.get_logger("gateway.test")


class Stalled(io.StringIO):
    """A stream that takes nothing until it is opened."""

    def __init__(self):
        super().__init__()
        self.entered = threading.Event()
        self.open = threading.Event()

    def write(self, text):
        self.entered.set()
        assert self.open.wait(30)
        return super().write(text)


def test_a_line_is_one_json_object(logs):
    """Each line is one JSON object: when, how bad, what, who; then the fields, whatever they hold."""
    LOG.warning("something", uid="u", text="a\nb\u2028\x1b[31m", odd=object, number=1.5, nothing=None)
    (entry,) = logs()
    assert list(entry)[:4] == ["timestamp", "level", "message", "logger"]
    assert (entry["level"], entry["message"], entry["logger"]) == ("warning", "something", "gateway.test")
    assert (entry["uid"], entry["text"], entry["number"], entry["nothing"]) == ("u", "a\nb\u2028\x1b[31m", 1.5, None)
    assert entry["timestamp"].endswith("Z")


def test_other_libraries_log_the_same_way(logs):
    """A line of another library's logger is the same kind of object."""
    logging.getLogger("somebody.else").error("took %d", 5)
    (entry,) = logs()
    assert (entry["level"], entry["message"], entry["logger"]) == ("error", "took 5", "somebody.else")


def fail(secret):
    """A defect, with a user's secret among its variables."""
    raise ValueError(f"of ours, {len(secret)} characters")


def test_a_traceback_stays_in_its_line(logs):
    """An exception is a field of its line: its type, its text, where it was raised, and no variable's value."""
    try:
        fail("hunter2")
    except ValueError:
        LOG.exception("failed")
    (entry,) = logs()
    (raised,) = entry["exception"]
    assert (raised["exc_type"], raised["exc_value"]) == ("ValueError", "of ours, 7 characters")
    assert raised["frames"][-1]["name"] == "fail"
    assert "hunter2" not in json.dumps(raised)


def test_a_traceback_as_text(logging_kept):
    """As text an exception is its plain traceback, without any variable's value."""
    stream = io.StringIO()
    stop = configure_logs(form="text", stream=stream)
    try:
        fail("hunter2")
    except ValueError:
        LOG.exception("failed")
    stop()
    assert "ValueError: of ours, 7 characters" in stream.getvalue()
    assert 'fail("hunter2")' in stream.getvalue()
    assert stream.getvalue().count("hunter2") == 1


def test_below_the_level_nothing_is_written(logging_kept):
    """What is below the level is not written."""
    stream = io.StringIO()
    stop = configure_logs(level="warning", form="json", stream=stream)
    LOG.info("small talk")
    LOG.warning("news")
    stop()
    assert [json.loads(line)["message"] for line in stream.getvalue().splitlines()] == ["news"]


def test_a_stalled_stream_blocks_no_other(logging_kept):
    """While the stream takes nothing, logging returns at once; lines beyond the queue are dropped and counted."""
    stream, dropped = Stalled(), []
    stop = configure_logs(form="json", stream=stream, dropped=lambda: dropped.append(1), lines=10)
    LOG.warning("line", number=0)
    assert stream.entered.wait(30)
    for number in range(1, 101):
        LOG.warning("line", number=number)
    assert len(dropped) == 90
    stream.open.set()
    stop()
    assert [json.loads(line)["number"] for line in stream.getvalue().splitlines()] == list(range(11))


def test_the_end_does_not_wait_for_a_stalled_stream(logging_kept, monkeypatch):
    """Stopping gives up on a stream that takes nothing, also when the queue is full."""
    monkeypatch.setattr("gateway.telemetry.logs.STOP_SECONDS", 0.01)
    for lines in (1, 1000):
        stream = Stalled()
        stop = configure_logs(form="json", stream=stream, lines=lines)
        for _ in range(10):
            LOG.warning("line")
        stop()
        stream.open.set()


def test_a_stream_that_is_gone_costs_only_its_lines(logging_kept):
    """Where the reader has gone for good, lines are dropped and counted, and logging goes on."""
    reading, writing = os.pipe()
    os.close(reading)
    dropped = []
    with os.fdopen(writing, "w", encoding="utf-8") as stream:
        stop = configure_logs(form="json", stream=stream, dropped=lambda: dropped.append(1))
        LOG.warning("one")
        LOG.warning("two")
        stop()
    assert len(dropped) == 2


def test_a_line_is_written_whole(logging_kept):
    """A line larger than a pipe arrives whole, followed by the next."""
    reading, writing = os.pipe()
    with os.fdopen(writing, "w", encoding="utf-8") as stream:
        stop = configure_logs(form="json", stream=stream)
        LOG.warning("large", text="ä" * 500_000)
        LOG.warning("small", text="\ud800")
        with os.fdopen(reading, encoding="utf-8") as lines:
            first, second = json.loads(lines.readline()), lines.readline()
        stop()
    assert first["text"] == "ä" * 500_000
    assert '"small"' in second


@pytest.mark.parametrize("form", ["text", "auto"])
def test_text_without_a_terminal_has_no_colours(logging_kept, form):
    """Text for people has colours only on a terminal; what decides for itself writes JSON elsewhere."""
    stream = io.StringIO()
    stop = configure_logs(form=form, stream=stream)
    LOG.warning("something", uid="u")
    stop()
    assert "\x1b" not in stream.getvalue()
    assert stream.getvalue().startswith("{") == (form == "auto")
