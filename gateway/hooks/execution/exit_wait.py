"""Waits for the exit of a process without reaping it, so that the number of its group stays its own.

It uses the process' descriptor (pidfd), not the event loop's child watcher: that one reaps the process before it
reports the exit, and from then on the number could belong to another process.
"""

import asyncio
import os
from subprocess import Popen
from typing import Final

_POLL_SECONDS: Final = 0.02
"""How often the exit is polled for where there are no pidfds (anything but Linux)."""


async def exited(process: Popen[bytes]) -> None:
    """Return when the process has exited, without reaping it."""
    try:
        descriptor = os.pidfd_open(process.pid)
    except (AttributeError, OSError):
        # Not Linux, or a sandbox that does not allow it.
        while not _has_exited(process):  # noqa: ASYNC110 - there is no event to wait for
            await asyncio.sleep(_POLL_SECONDS)
        return
    loop = asyncio.get_running_loop()
    future: asyncio.Future[None] = loop.create_future()
    loop.add_reader(descriptor, _resolve, future)
    try:
        await future
    finally:
        loop.remove_reader(descriptor)
        os.close(descriptor)


def _has_exited(process: Popen[bytes]) -> bool:
    """Whether it has exited. It is reaped only where the platform has no ``waitid`` (macOS, before Python 3.13)."""
    if not hasattr(os, "waitid"):
        return process.poll() is not None
    try:
        return os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
    except ChildProcessError:
        return True


def _resolve(future: "asyncio.Future[None]") -> None:
    if not future.done():
        future.set_result(None)
