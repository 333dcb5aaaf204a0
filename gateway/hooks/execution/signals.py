"""Runs a coroutine until a signal stops it, for commands that run hooks before they serve: stopping them stops the
hooks too. A hook runs in a session of its own, so otherwise it would outlive the command.
"""

import asyncio
import signal
import threading
from collections.abc import Coroutine
from typing import Any, Final, TypeVar

STOP_SIGNALS: Final = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
"""SIGHUP too: the terminal is closed, or its connection breaks."""

_T = TypeVar("_T")


class StoppedError(Exception):
    """A signal has stopped the coroutine."""


def run_until_stopped(coroutine: Coroutine[Any, Any, _T]) -> _T:
    """Run a coroutine in a new event loop, and give its result. It is cancelled by the signals that stop a command.

    Signals that are ignored stay ignored, as SIGHUP after ``nohup``. In other threads than the main one, which alone
    receives signals, none is handled.

    Raises:
        StoppedError: a signal has stopped it.
    """
    try:
        return asyncio.run(_cancelled_by_signals(coroutine))
    except (asyncio.CancelledError, KeyboardInterrupt):
        raise StoppedError from None


async def _cancelled_by_signals(coroutine: Coroutine[Any, Any, _T]) -> _T:
    task = asyncio.current_task()
    assert task is not None  # noqa: S101 - a coroutine of a running loop
    if threading.current_thread() is threading.main_thread():
        for number in STOP_SIGNALS:
            if signal.getsignal(number) is not signal.SIG_IGN:
                asyncio.get_running_loop().add_signal_handler(number, task.cancel)
    return await coroutine
