"""What every process shows of itself: its version, CPU time, memory, file descriptors, and the lag of its event loop.

The names, except those of the version and the lag, are Prometheus' own for all programs. Linux has all of them, other
systems only the CPU time and the limit of file descriptors.
"""

import asyncio
import os
import platform
import resource
import time
from contextlib import suppress
from pathlib import Path
from typing import Final

from gateway import __version__
from gateway.telemetry.events import Events
from gateway.telemetry.table import (
    BUILD_INFO,
    EVENT_LOOP_LAG,
    PROCESS_CPU,
    PROCESS_MAX_FDS,
    PROCESS_OPEN_FDS,
    PROCESS_RESIDENT_MEMORY,
    PROCESS_START_TIME,
    PROCESS_VIRTUAL_MEMORY,
)

_PROC: Final = Path("/proc/self")

_LAG_SECONDS: Final = 0.05
"""Seconds between two samples: a call that holds the loop for longer is seen by at least one. One costs some 20 µs, so
that a process at rest stays at rest."""

_START_FIELD: Final = 19
"""Index of ``starttime`` among the fields of /proc/PID/stat that follow the command (proc(5): field 22)."""


def observe_process(events: Events) -> None:
    """Set the metrics of this process; called before they are shown."""
    events.set(BUILD_INFO, 1, __version__, platform.python_version())
    events.set(PROCESS_CPU, time.process_time())
    events.set(PROCESS_MAX_FDS, resource.getrlimit(resource.RLIMIT_NOFILE)[0])
    with suppress(OSError):
        pages, resident = (_PROC / "statm").read_text().split()[:2]
        size = resource.getpagesize()
        events.set(PROCESS_VIRTUAL_MEMORY, int(pages) * size)
        events.set(PROCESS_RESIDENT_MEMORY, int(resident) * size)
        events.set(PROCESS_OPEN_FDS, sum(1 for _ in (_PROC / "fd").iterdir()))
        ticks = int((_PROC / "stat").read_text().rpartition(")")[2].split()[_START_FIELD])
        age = time.clock_gettime(time.CLOCK_BOOTTIME) - ticks / os.sysconf("SC_CLK_TCK")
        # To the precision of a tick: the same number at each scrape.
        events.set(PROCESS_START_TIME, round(time.time() - age, 1))


async def watch_lag(events: Events) -> None:
    """Observe by how much a timer of the running loop is late, until cancelled."""
    while True:
        due = time.monotonic() + _LAG_SECONDS
        await asyncio.sleep(_LAG_SECONDS)
        events.observe(EVENT_LOOP_LAG, max(time.monotonic() - due, 0.0))
