"""What hooks write becomes log lines: whose they are, bounded, and harmless in a terminal."""

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


def test_each_line_says_whose_it_is(log):
    """Hook, binding, uid and stream."""
    written(log, (Stream.STDERR, b"oh no\n"))
    told = {"hook": "/hooks/a.sh", "binding": "b", "uid": "u", "stream": "stderr", "line": "oh no"}
    assert log == [{"event": "hook output", "log_level": "info", **told}]


def test_lines_are_put_together_again_stream_by_stream(log):
    """However they were written; the last needs no end, blank ones are none."""
    chunks = [(Stream.STDOUT, b"on"), (Stream.STDERR, b"tw"), (Stream.STDOUT, b"e\n\n  \nend"), (Stream.STDERR, b"o\n")]
    assert written(log, *chunks) == ["one", "two", "end"]


def test_a_long_line_is_cut(log):
    """However long it is, and however it comes."""
    chunks = [(Stream.STDOUT, b"x" * 60_000)] * 20
    assert written(log, *chunks, (Stream.STDOUT, b"\nend\n")) == ["x" * LINE_BYTES, "end"]


def test_control_characters_are_escaped(log):
    """A hook does not paint anybody's terminal, nor write lines of ours."""
    assert written(log, (Stream.STDOUT, b"\x1b[31mred\rgone\x00\x7f\tok \xe2\x80\xa8\xff\n")) == [
        "\\x1b[31mred\\rgone\\x00\\x7f\tok \\u2028\ufffd"
    ]
    assert escaped("plain – text") == "plain – text"


def test_a_flood_is_counted_not_logged(log, monkeypatch):
    """Of what all hooks write in a second only so many lines; each says how many of its own were left out."""
    monkeypatch.setattr(output, "LINES_PER_SECOND", 10)
    monkeypatch.setattr(output, "monotonic", lambda: 1.0)
    limiter = LineLimiter()
    assert len(written(log, (Stream.STDOUT, b"a\n" * 8), limiter=limiter)) == 8
    assert len(written(log, (Stream.STDOUT, b"b\n" * 8), limiter=limiter)) == 10
    assert [entry["lines"] for entry in log if "lines" in entry] == [6]


def test_the_next_second_has_limiter_again(log, monkeypatch):
    """As much as the one before."""
    now = [1.0]
    monkeypatch.setattr(output, "LINES_PER_SECOND", 1)
    monkeypatch.setattr(output, "monotonic", lambda: now[0])
    limiter = LineLimiter()
    assert [limiter.acquire(), limiter.acquire()] == [True, False]
    now[0] = 2.0
    assert limiter.acquire()


def test_a_configuration_is_not_logged(log):
    """What is printed for --config is read by somebody else; what goes wrong with it is logged."""
    lines = written(log, (Stream.STDOUT, b"configVersion: v1\n"), (Stream.STDERR, b"oh\n"), only_errors=True)
    assert lines == ["oh"]


def test_empty_lines_are_not_even_looked_at(log, monkeypatch):
    """An endless output may be nothing else."""
    monkeypatch.setattr(HookOutput, "_log", lambda *_: pytest.fail("an empty line was looked at"))
    HookOutput(LineLimiter(), hook="/hooks/a.sh").write(Stream.STDOUT, b"\n \n" * 100)
