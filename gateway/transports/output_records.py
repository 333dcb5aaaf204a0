"""Groups the lines of a worker's output into records: all lines of a traceback, in any language, are one record.

The end of a traceback has no mark, so the next line decides. It belongs to the record before it if

* it is indented (a stack frame in Python, Java and Node, a file in Go);
* in a Python traceback, it follows an indented line (the exception itself), or introduces a further traceback;
* in the last output of a crashing process (a panic in Go or Rust, an uncaught exception in Java or Node), it follows
  without a pause. The reader of the output reports a pause (``flush``).

A record is bounded: a longer one is split. Blank lines are dropped, except within a traceback.
"""

import re
from collections.abc import Iterator
from typing import Final

RECORD_LINES: Final = 200
"""Ten tracebacks of usual depth; Python, Java and Go shorten endless recursions themselves."""

RECORD_BYTES: Final = 65_536
"""The size of the longest line. A line that exceeds it begins another record."""

_TRACEBACK: Final = re.compile(rb'Traceback \(most recent call last\):|  File "')

_CHAIN: Final = re.compile(
    rb"Traceback \(most recent call last\):|During handling of the above exception|The above exception was the direct"
    rb"|Caused by: "
)

_DYING: Final = re.compile(
    rb"panic: |fatal error: |goroutine \d+ \[|.*http: panic serving |thread '.*' (\(\d+\) )?panicked at "
    rb"|Exception in thread |(file://)?/\S+\.[cm]?[jt]s:\d+$|node:\S+:\d+$"
)


class OutputRecords:
    """Combines lines into records. Lines have no end of line."""

    def __init__(self) -> None:
        self._lines: list[bytes] = []
        self._bytes = 0
        self._blanks = 0
        self._is_traceback = False
        self._is_dying = False

    @property
    def pending(self) -> bool:
        """Whether there are lines that the next one may join."""
        return bool(self._lines)

    def add(self, line: bytes) -> Iterator[list[bytes]]:
        """Add the next line. Returns the records that it completes: none or one."""
        if not line or line.isspace():
            self._blanks += bool(self._lines)
            return
        if self._lines and self._joins(line):
            within = [b""] * min(self._blanks, 1) if self._is_traceback or self._is_dying else []
            if len(self._lines) + len(within) < RECORD_LINES and self._bytes + len(line) < RECORD_BYTES:
                self._append(*within, line)
                return
            yield self._taken()
            self._append(line)
            return
        yield from self.flush()
        self._is_traceback = _TRACEBACK.match(line) is not None
        self._is_dying = _DYING.match(line) is not None
        self._append(line)

    def flush(self) -> Iterator[list[bytes]]:
        """The pending record, if there is one, after a pause or at the end."""
        if self._lines:
            yield self._taken()
        self._is_traceback = self._is_dying = False

    def _joins(self, line: bytes) -> bool:
        if not self._is_traceback and not self._is_dying and _TRACEBACK.match(line):
            return False
        if self._is_dying or line[:1] in b" \t":
            return True
        after_a_frame = self._lines[-1][:1] in b" \t" and self._lines[-1] != b""
        return (self._is_traceback and after_a_frame and not self._blanks) or (
            (self._is_traceback or after_a_frame) and _CHAIN.match(line) is not None
        )

    def _append(self, *lines: bytes) -> None:
        self._lines += lines
        self._bytes += sum(len(line) + 1 for line in lines)
        self._blanks = 0

    def _taken(self) -> list[bytes]:
        lines, self._lines, self._bytes, self._blanks = self._lines, [], 0, 0
        return lines
