"""Python code that takes long, in a thread, while the event loop goes on."""

import asyncio
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import Executor
from contextlib import contextmanager
from typing import Final, TypeVar

_SWITCH_SECONDS: Final = 0.0005
"""How long a thread keeps the interpreter when the loop wants it, after each wait for I/O. Python's default is 5 ms:
ten answers in a row would come 50 ms later."""

_T = TypeVar("_T")

_before: list[float] = []
"""The interval before each of those that work now: that of the first is in force again when the last has ended."""


async def in_thread(work: Callable[[], _T], executor: Executor | None = None) -> _T:
    """Do something that takes long, and give the loop the interpreter when it wants it.

    Args:
        work: what it is.
        executor: has the thread; None: one of the loop's.
    """
    with _short_turns():
        return await asyncio.get_running_loop().run_in_executor(executor, work)


@contextmanager
def _short_turns() -> Iterator[None]:
    _before.append(sys.getswitchinterval())
    sys.setswitchinterval(min(_before[0], _SWITCH_SECONDS))
    try:
        yield
    finally:
        last = _before.pop()
        if not _before:
            sys.setswitchinterval(last)
