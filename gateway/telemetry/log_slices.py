"""Log lines that may be thousands at once, such as one for each policy of a configuration."""

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Final

AT_ONCE: Final = 50
"""Lines of one iteration of the event loop: some 3 ms."""


class LogSlices:
    """Writes log lines in order, in slices: reviews are served between two of them."""

    def __init__(self) -> None:
        self._lines: deque[Callable[[], object]] = deque()

    def write(self, line: Callable[[], object]) -> None:
        """Write a line in its turn, in one of the next iterations of the loop; at once, where none runs.

        Args:
            line: logs it.
        """
        self._lines.append(line)
        if len(self._lines) > 1:
            return
        try:
            asyncio.get_running_loop().call_soon(self._write)
        except RuntimeError:
            self._write()

    def _write(self) -> None:
        for _ in range(min(AT_ONCE, len(self._lines))):
            self._lines[0]()
            self._lines.popleft()
        if self._lines:
            asyncio.get_running_loop().call_soon(self._write)
