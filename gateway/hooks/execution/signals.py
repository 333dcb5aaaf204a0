"""Signals by which a command is told to end that serves nothing yet, but runs hooks: they cancel what it does, and so
the hooks end. Otherwise a hook that never ends would outlive it, in a session of its own.
"""

import asyncio
import signal
import threading
from typing import Final

ENDING: Final = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
"""SIGHUP as well: a terminal that is closed, or a connection that breaks."""


def cancel_when_told() -> None:
    """Have the current task cancelled by these signals, as long as its loop runs; only in the main thread, which alone
    hears of them. What is ignored stays ignored: a command after ``nohup`` is not to hear of SIGHUP.
    """
    task = asyncio.current_task()
    assert task is not None  # noqa: S101 - a coroutine of a loop that runs
    if threading.current_thread() is not threading.main_thread():
        return
    for number in ENDING:
        if signal.getsignal(number) is not signal.SIG_IGN:
            asyncio.get_running_loop().add_signal_handler(number, task.cancel)
