"""Log lines that may be thousands at once, such as one for each policy of a configuration."""

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Final

import structlog

_LOG: Final = structlog.get_logger(__name__)

AT_ONCE: Final = 50
"""Lines of one iteration of the event loop: some 3 ms."""

MOST: Final = 20_000
"""Lines that wait: two for each of the most policies, 6 MB."""


class LogSlices:
    """Writes log lines in order, in slices: reviews are served between two of them."""

    def __init__(self) -> None:
        self._lines: deque[Callable[[], object]] = deque()
        self._is_scheduled = False
        self._left_out = 0

    def write(self, line: Callable[[], object]) -> None:
        """Write a line in its turn, in one of the next iterations of the loop; at once, where none runs.

        Args:
            line: logs it.
        """
        if len(self._lines) >= MOST:
            self._left_out += 1
            return
        self._lines.append(line)
        if not self._is_scheduled:
            self._schedule()

    def _schedule(self) -> None:
        try:
            asyncio.get_running_loop().call_soon(self._write)
        except RuntimeError:
            self._write()
        else:
            self._is_scheduled = True

    def _write(self) -> None:
        self._is_scheduled = False
        try:
            for _ in range(min(AT_ONCE, len(self._lines))):
                self._lines.popleft()()
            if self._left_out and not self._lines:
                left_out, self._left_out = self._left_out, 0
                _LOG.warning(
                    "lines about policies are left out; they came faster than they are written", lines=left_out
                )
        finally:
            if self._lines and not self._is_scheduled:
                self._schedule()
