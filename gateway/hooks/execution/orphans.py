"""Kills the processes that a program has started and that have left its process group (``setsid``, a daemon).

On Linux the gateway makes itself the process that adopts orphaned descendants (PR_SET_CHILD_SUBREAPER), in place of the
machine's first process. So a process that has lost its parent becomes a child of the gateway. Each run of a program has
an id in its environment, which child processes inherit; the kernel shows it in /proc/PID/environ.

* At the end of a run, each child with the run's id, or of its session, is killed. Its own children become the gateway's
  children then, so the reaper looks again until it finds none. What it killed is reaped by it, or at the end of a later
  run. A list of children is not atomic: a process that exits after the list was made leaves its children to the next
  list. So there is one more look after each exit that was not known before.
* A child that exited before it was looked at has no environment any more, so its run is unknown. If two looks at least
  ten seconds apart find it as a zombie, it is taken for an orphan and reaped. (Code that starts a process in Python
  waits for it at once.) Until then it is an entry in the process table.

All this happens at the end of a run, not in between; and nothing where there is no PR_SET_CHILD_SUBREAPER. It needs no
privilege. Limitation: a program that leaves its session *and* clears its environment (``env -i setsid …``) is not
found. Only a PID namespace or a cgroup of its own would hold it: run untrusted hooks in a pod of their own
(``hook-worker``).
"""

import asyncio
import contextlib
import ctypes
import os
import secrets
import signal
import sys
from enum import Enum, auto
from pathlib import Path
from time import monotonic
from typing import ClassVar, Final, NamedTuple

RUN_VARIABLE: Final = "ADMISSION_GATEWAY_RUN"
"""The environment variable with the id of the run."""

_SET_CHILD_SUBREAPER: Final = 36
"""PR_SET_CHILD_SUBREAPER of linux/prctl.h."""

_ZOMBIE_SECONDS: Final = 10.0
"""How long a zombie of an unknown run is left to code that may wait for it."""

_PAUSES: Final = (0.001, 0.005, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0)
"""Between looks for killed processes, and for those that these have started meanwhile: 2 s. A process that is still
there has its SIGKILL and waits in the kernel; the end of a later run reaps it."""

_UNSURE_LOOKS: Final = 3
"""Looks, 26 ms, for a process without an environment: it may be in the middle of an exec ("Ensure the process spawned
far enough to have an environment", fs/proc/base.c) and show its id at once. Or it was started with none."""


class Child(NamedTuple):
    """A child of this process: ``state`` as in /proc/PID/stat, Z for a zombie."""

    pid: int
    state: str
    session: int


class _Found(Enum):
    """What a look has found of a run."""

    NOTHING = auto()
    UNSURE = auto()
    SOMETHING = auto()


def new_run_id() -> str:
    """An id that no other run has."""
    return secrets.token_hex(16)


class OrphanReaper:
    """Kills and reaps the orphans of this process. There is one process, so the state is the class's."""

    _is_subreaper: ClassVar[bool | None] = None
    _zombies: ClassVar[dict[int, float]] = {}
    """Exited children that are not reaped, and since when they are known."""

    @classmethod
    def adopt_orphans(cls) -> bool:
        """Make this process the parent of orphaned descendants. Whether the platform supports it."""
        if cls._is_subreaper is None:
            cls._is_subreaper = sys.platform == "linux" and _set_child_subreaper()
        return cls._is_subreaper

    @classmethod
    async def kill_run(cls, *, session: int, run_id: str) -> None:
        """Kill and reap what is left of a run: of its session, or with its id. Returns when nothing is left, or after
        ``_PAUSES``.
        """
        if not cls.adopt_orphans():
            return
        sessions = {session}
        for number, pause in enumerate(_PAUSES):
            found = cls._look(sessions, run_id)
            if found is _Found.NOTHING or (found is _Found.UNSURE and number >= _UNSURE_LOOKS):
                return
            await asyncio.sleep(pause)

    @classmethod
    def _look(cls, sessions: set[int], run_id: str) -> _Found:
        """Kill and reap the run's processes, and add their sessions to ``sessions``."""
        variable = f"{RUN_VARIABLE}={run_id}".encode()
        found = unsure = False
        zombies: dict[int, float] = {}
        for child in children():
            is_of_run = child.session in sessions
            if child.state == "Z":
                # Its children may have become ours just now.
                found = found or is_of_run or child.pid not in cls._zombies
                if is_of_run or _is_due(cls._zombies, child.pid):
                    _reap(child.pid)
                else:
                    zombies[child.pid] = cls._zombies.get(child.pid, monotonic())
                continue
            environment = [] if is_of_run else _environment(child.pid)
            unsure = unsure or not (is_of_run or environment)
            if is_of_run or variable in environment:
                found = True
                sessions.add(child.session)
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.kill(child.pid, signal.SIGKILL)
                # As a zombie it is reaped at once: no other code waits for it.
                zombies[child.pid] = monotonic() - _ZOMBIE_SECONDS
        cls._zombies = zombies
        if found:
            return _Found.SOMETHING
        return _Found.UNSURE if unsure else _Found.NOTHING


def child_pids() -> list[int]:
    """The pids of this process' children, zombies included; none where the kernel does not list them."""
    pids: list[int] = []
    for task in Path("/proc/self/task").glob("*/children"):
        with contextlib.suppress(OSError):
            pids += map(int, task.read_text().split())
    return pids


def children() -> list[Child]:
    """This process' children that still exist."""
    found = []
    for pid in child_pids():
        # PID (NAME) STATE PPID PGRP SESSION …; NAME may contain anything, so the fields begin after its last bracket.
        with contextlib.suppress(OSError, ValueError, IndexError):
            fields = Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()
            found.append(Child(pid, fields[0], int(fields[3])))
    return found


def _environment(pid: int) -> list[bytes]:
    with contextlib.suppress(OSError):
        content = Path(f"/proc/{pid}/environ").read_bytes()
        return content.split(b"\0") if content else []
    return []


def _is_due(zombies: dict[int, float], pid: int) -> bool:
    return pid in zombies and monotonic() - zombies[pid] >= _ZOMBIE_SECONDS


def _reap(pid: int) -> None:
    with contextlib.suppress(ChildProcessError):
        os.waitpid(pid, os.WNOHANG)


def _set_child_subreaper() -> bool:
    try:
        return bool(ctypes.CDLL(None, use_errno=True).prctl(_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0)
    except (OSError, AttributeError):
        return False
