"""The outputs of hooks as log lines: with their fields, limited, and harmless in a terminal."""

import pytest

from gateway.hooks.execution import output
from gateway.hooks.execution.output import LINE_BYTES, HookOutput, LineLimiter, escaped
from gateway.hooks.execution.results import Stream


def written(log, *chunks, limiter=None, **fields):
    hook = HookOutput(limiter or LineLimiter(), **({"hook": "/hooks/a.sh", "binding": "b", "uid": "u"} | fields))
    for stream, chunk in chunks:
        hook.write(stream, chunk)
    hook.close()
    return [entry["line"] for entry in log if "line" in entry]


def test_each_line_has_the_fields_of_its_run(log):
    """Hook, binding, uid and stream."""
    written(log, (Stream.STDERR, b"oh no\n"))
    reported = {"hook": "/hooks/a.sh", "binding": "b", "uid": "u", "stream": "stderr", "line": "oh no"}
    assert log == [{"event": "hook output", "log_level": "info", **reported}]


def test_lines_are_reassembled_per_stream(log):
    """From chunks of any size; the last line needs no line end, and blank lines are not logged."""
    chunks = [(Stream.STDOUT, b"on"), (Stream.STDERR, b"tw"), (Stream.STDOUT, b"e\n\n  \nend"), (Stream.STDERR, b"o\n")]
    assert written(log, *chunks) == ["one", "two", "end"]


def test_a_long_line_is_cut(log):
    """However many chunks it comes in."""
    chunks = [(Stream.STDOUT, b"x" * 60_000)] * 20
    assert written(log, *chunks, (Stream.STDOUT, b"\nend\n")) == ["x" * LINE_BYTES, "end"]


def test_control_characters_are_escaped(log):
    """A hook can neither control a terminal nor write log lines of its own."""
    assert written(log, (Stream.STDOUT, b"\x1b[31mred\rgone\x00\x7f\tok \xe2\x80\xa8\xff\n")) == [
        "\\x1b[31mred\\rgone\\x00\\x7f\tok \\u2028\ufffd"
    ]
    assert escaped("plain – text") == "plain – text"


def test_lines_beyond_the_limit_are_counted(log, monkeypatch):
    """The limit is that of all hooks; each hook reports how many of its own lines were left out."""
    monkeypatch.setattr(output, "LINES_PER_SECOND", 10)
    monkeypatch.setattr(output, "monotonic", lambda: 1.0)
    limiter = LineLimiter()
    assert len(written(log, (Stream.STDOUT, b"a\n" * 8), limiter=limiter)) == 8
    assert len(written(log, (Stream.STDOUT, b"b\n" * 8), limiter=limiter)) == 10
    assert [entry["lines"] for entry in log if "lines" in entry] == [6]


def test_the_limit_is_per_second(log, monkeypatch):
    """The next second has the same limit."""
    now = [1.0]
    monkeypatch.setattr(output, "LINES_PER_SECOND", 1)
    monkeypatch.setattr(output, "monotonic", lambda: now[0])
    limiter = LineLimiter()
    assert [limiter.acquire(), limiter.acquire()] == [True, False]
    now[0] = 2.0
    assert limiter.acquire()


def test_a_configuration_is_not_logged(log):
    """Of --config only the standard error is logged."""
    lines = written(log, (Stream.STDOUT, b"configVersion: v1\n"), (Stream.STDERR, b"oh\n"), only_errors=True)
    assert lines == ["oh"]


def test_empty_lines_are_skipped(log, monkeypatch):
    """Endless output may consist of them."""
    monkeypatch.setattr(HookOutput, "_log", lambda *_: pytest.fail("an empty line was looked at"))
    HookOutput(LineLimiter(), hook="/hooks/a.sh").write(Stream.STDOUT, b"\n \n" * 100)
