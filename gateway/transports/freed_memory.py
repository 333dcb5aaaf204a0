"""Gives the memory of large answers back to the system, some time after they were received.

gRPC receives a message in pieces of some KB, allocated by several threads. glibc keeps such pieces when they are freed,
for as long as one piece behind them is in use: after 40 messages of 38 MB, 850 MB stayed. ``malloc_trim`` returns the
free pages between them. It takes some 10 ms for each 100 MB, in a thread, without the interpreter's lock.
"""

import asyncio
import ctypes
from typing import Any, Final

DELAY_SECONDS: Final = 1.0
"""Large answers mostly come several at a time."""


class FreedMemory:
    """Returns it to the system, at most once in ``DELAY_SECONDS``."""

    def __init__(self) -> None:
        try:
            self._trim: Any = ctypes.CDLL(None).malloc_trim
        except (OSError, AttributeError):
            # Not glibc: other libraries return it by themselves, or cannot.
            self._trim = None
        self._is_due = False

    def return_soon(self) -> None:
        """Something large was received, and will be freed."""
        if self._trim is not None and not self._is_due:
            self._is_due = True
            asyncio.get_running_loop().call_later(DELAY_SECONDS, self._return)

    def _return(self) -> None:
        self._is_due = False
        asyncio.get_running_loop().run_in_executor(None, self._trim, 0)
