"""A traceback is one record, in each language; whatever comes, no line is lost, doubled, or kept for long."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.transports import output_records
from gateway.transports.output_records import OutputRecords

PYTHON = """\
Traceback (most recent call last):
  File "worker.py", line 3, in review
    return rule[name]
           ~~~~^^^^^^
KeyError: 'team'

During handling of the above exception, another exception occurred:

Traceback (most recent call last):
  File "worker.py", line 9, in <module>
    main()
ValueError: no rule"""

SYNTAX = """\
  File "worker.py", line 1
    def (
        ^
SyntaxError: invalid syntax"""

GO = """\
panic: runtime error: index out of range [3] with length 1

goroutine 1 [running]:
main.main()
\t/src/main.go:9 +0x1d
exit status 2"""

JAVA = """\
Exception in thread "main" java.lang.IllegalStateException: no rule
\tat com.example.Rules.find(Rules.java:12)
\tat com.example.Main.main(Main.java:5)
Caused by: java.util.NoSuchElementException: team
\tat com.example.Rules.find(Rules.java:10)
\t... 1 more"""

LOGGED_JAVA = """\
java.lang.IllegalStateException: no rule
\tat com.example.Main.main(Main.java:5)
Caused by: java.util.NoSuchElementException: team
\tat com.example.Rules.find(Rules.java:10)"""

NODE = """\
/src/worker.js:3
throw new Error("no rule");
^

Error: no rule
    at Object.<anonymous> (/src/worker.js:3:7)

Node.js v20.1.0"""

RUST = """\
thread 'main' panicked at src/main.rs:2:5:
no rule
note: run with `RUST_BACKTRACE=1` environment variable to display a backtrace"""


def records(lines):
    """The records of these lines, None being a pause, and the end of the output."""
    made = OutputRecords()
    found = []
    for line in [*lines, None]:
        found += made.flush() if line is None else made.add(line)
    return [b"\n".join(record).decode() for record in found]


@pytest.mark.parametrize("text", [PYTHON, SYNTAX, GO, JAVA, LOGGED_JAVA, NODE, RUST])
def test_a_traceback_is_one_record(text):
    """What was written before it, and what follows after a pause, is none of it."""
    lines = text.encode().split(b"\n")
    assert records([b"before", *lines, None, b"after"]) == ["before", text, "after"]


@pytest.mark.parametrize("text", [PYTHON, SYNTAX, LOGGED_JAVA])
def test_the_next_line_ends_a_traceback_that_is_logged(text):
    """A worker that lives on may write at once."""
    assert records([*text.encode().split(b"\n"), b"INFO served", b"INFO again"]) == [text, "INFO served", "INFO again"]


def test_lines_are_records_of_their_own():
    """And blank ones are none."""
    assert records([b"one", b"", b"two", b"  ", b"three"]) == ["one", "two", "three"]


@pytest.mark.parametrize("first", [b"panic: no", b"Traceback (most recent call last):", b"plain"])
def test_a_record_is_bounded(first, monkeypatch):
    """In lines and in bytes; what is beyond is the next one, and nothing is lost."""
    monkeypatch.setattr(output_records, "RECORD_LINES", 10)
    monkeypatch.setattr(output_records, "RECORD_BYTES", 1000)
    made = OutputRecords()
    lines = [first, *[b" x"] * 25, *[b" " + b"y" * 300] * 9]
    found = [record for line in lines for record in made.add(line)] + list(made.flush())
    assert [line for record in found for line in record] == lines
    assert max(len(record) for record in found) <= 10
    assert max(sum(map(len, record)) for record in found) <= 1000


LINES = st.sampled_from(
    [
        b"",
        b" ",
        b"one",
        b'  File "',
        b"\tat x",
        b"Caused by: x",
        *PYTHON.encode().split(b"\n"),
        *GO.encode().split(b"\n"),
        None,
    ]
)


@given(st.lists(LINES, max_size=30))
def test_no_line_is_lost_or_doubled(lines):
    """Whatever comes, in whatever order, with whatever pauses."""
    found = "\n".join(records(lines)).split("\n")
    assert [line for line in found if line] == [line.decode() for line in lines if line and not line.isspace()]
