"""What hooks write to their outputs, as log lines: who wrote it, about which request, to which of the two.

Lines are written in the loop that judges reviews, and hooks are many: of what they write in one second, all together,
only so many lines are logged, and the others are counted. A line is cut where it is long; control characters are
escaped, since whoever reads a log in a terminal should not have it painted by a hook.
"""

import re
from time import monotonic
from typing import Final

import structlog

from gateway.hooks.execution.process import Stream

_LOG: Final = structlog.get_logger(__name__)

LINE_BYTES: Final = 8_192
"""The longest line that is logged; the rest of it is left out."""

LINES_A_SECOND: Final = 1_000
"""Lines that are logged in a second: at 20 µs each, 2 % of the loop's time."""

_CONTROL: Final = re.compile(r"[\x00-\x08\x0a-\x1f\x7f-\x9f\u2028\u2029]")


class LogRoom:
    """How many lines may still be logged in this second."""

    def __init__(self) -> None:
        self._second = monotonic()
        self._room = LINES_A_SECOND

    def take(self) -> bool:
        """Whether one more line may be logged."""
        if not self.is_empty():
            self._room -= 1
            return True
        return False

    def is_empty(self) -> bool:
        """Whether no line may be logged until the next second."""
        now = monotonic()
        if now - self._second >= 1.0:
            self._second, self._room = now, LINES_A_SECOND
        return self._room <= 0


class HookOutput:
    """Logs what one run of a hook writes.

    Args:
        room: shared by all hooks.
        hook: the hook's path.
        binding: which is asked; empty for ``--config``.
        uid: of the request.
        only_errors: leave out its standard output, which is read by somebody else.
    """

    def __init__(
        self, room: LogRoom, *, hook: str, binding: str = "", uid: str = "", only_errors: bool = False
    ) -> None:
        self._room = room
        self._unheard = Stream.STDOUT if only_errors else None
        self._left_out = 0
        self._told = {"hook": hook, **({"binding": binding} if binding else {}), **({"uid": uid} if uid else {})}
        self._rests = dict.fromkeys(Stream, b"")

    def heard(self, stream: Stream, chunk: bytes) -> None:
        """Something was written."""
        if stream is self._unheard:
            return
        if self._room.is_empty():
            # Counted without being looked at: an endless output is not to cost the loop a turn for each of its lines.
            self._left_out += chunk.count(b"\n")
            self._rests[stream] = b""
            return
        *lines, rest = (self._rests[stream] + chunk).split(b"\n")
        self._rests[stream] = rest[:LINE_BYTES]
        # Empty ones are not logged, and an endless output may be nothing else.
        for line in filter(bytes.strip, lines):
            self._log(stream, line)

    def ended(self) -> None:
        """Nothing more comes: lines without an end are logged as well."""
        for stream, rest in self._rests.items():
            self._log(stream, rest)
        self._rests = dict.fromkeys(Stream, b"")
        if self._left_out:
            _LOG.warning(
                "hooks write too much; lines of this one were left out",
                **self._told,
                lines=self._left_out,
                logged_a_second=LINES_A_SECOND,
            )

    def _log(self, stream: Stream, line: bytes) -> None:
        text = line[:LINE_BYTES].decode(errors="replace").rstrip()
        if not text:
            return
        if self._room.take():
            _LOG.info("hook output", **self._told, stream=stream.value, line=escaped(text))
        else:
            self._left_out += 1


def escaped(text: str) -> str:
    """A text without control characters: each as Python would write it."""
    return _CONTROL.sub(lambda match: repr(match[0])[1:-1], text)
