"""The outputs of hooks as log lines, each with the hook, the request and the stream.

Lines are logged in the event loop that serves reviews, so their number per second is limited for all hooks together;
the others are counted. Long lines are cut. Control characters are escaped, so that a hook cannot control the terminal
in which a log is read.
"""

import re
from time import monotonic
from typing import Final

import structlog

from gateway.hooks.execution.results import Stream

_LOG: Final = structlog.get_logger(__name__)

LINE_BYTES: Final = 8_192
"""The longest line that is logged; its rest is left out."""

LINES_PER_SECOND: Final = 1_000
"""Lines of all hooks that are logged per second: at 20 µs each, 2 % of the loop's time."""

_CONTROL: Final = re.compile(r"[\x00-\x08\x0a-\x1f\x7f-\x9f\u2028\u2029]")


class LineLimiter:
    """Limits the lines that are logged per second."""

    def __init__(self) -> None:
        self._second = monotonic()
        self._left = LINES_PER_SECOND

    def acquire(self) -> bool:
        """Whether one more line may be logged, which is counted."""
        if self.is_exhausted():
            return False
        self._left -= 1
        return True

    def is_exhausted(self) -> bool:
        """Whether no line may be logged until the next second."""
        now = monotonic()
        if now - self._second >= 1.0:
            self._second, self._left = now, LINES_PER_SECOND
        return self._left <= 0


class HookOutput:
    """Logs what one run of a hook writes.

    Args:
        limiter: shared by all hooks.
        hook: the hook's path.
        binding: which binding is called; empty for ``--config``.
        uid: of the request.
        only_errors: do not log the standard output, which is the configuration.
    """

    def __init__(
        self, limiter: LineLimiter, *, hook: str, binding: str = "", uid: str = "", only_errors: bool = False
    ) -> None:
        self._limiter = limiter
        self._ignored = Stream.STDOUT if only_errors else None
        self._left_out = 0
        self._fields = {"hook": hook, **({"binding": binding} if binding else {}), **({"uid": uid} if uid else {})}
        self._rests = dict.fromkeys(Stream, b"")

    def write(self, stream: Stream, chunk: bytes) -> None:
        """Log the lines that are complete with this piece of the output."""
        if stream is self._ignored:
            return
        if self._limiter.is_exhausted():
            # Counted at once: endless output must not cost the event loop a call for each of its lines.
            self._left_out += chunk.count(b"\n")
            self._rests[stream] = b""
            return
        *lines, rest = (self._rests[stream] + chunk).split(b"\n")
        self._rests[stream] = rest[:LINE_BYTES]
        # Empty lines are not logged; endless output may consist of them.
        for line in filter(bytes.strip, lines):
            self._log(stream, line)

    def close(self) -> None:
        """The hook has ended: log lines without a line end, and how many were left out."""
        for stream, rest in self._rests.items():
            self._log(stream, rest)
        self._rests = dict.fromkeys(Stream, b"")
        if self._left_out:
            _LOG.warning(
                "output of hooks exceeds the limit of lines; lines of this hook were left out",
                **self._fields,
                lines=self._left_out,
                limit_per_second=LINES_PER_SECOND,
            )

    def _log(self, stream: Stream, line: bytes) -> None:
        text = line[:LINE_BYTES].decode(errors="replace").rstrip()
        if not text:
            return
        if self._limiter.acquire():
            _LOG.info("hook output", **self._fields, stream=stream.value, line=escaped(text))
        else:
            self._left_out += 1


def escaped(text: str) -> str:
    """The text with each control character as a Python escape."""
    return _CONTROL.sub(lambda match: repr(match[0])[1:-1], text)
