"""What has left the process group of a program that was run (``setsid``, a daemon that forks twice), and is to go with
it all the same.

On Linux this process makes itself the one to which orphans below it fall (PR_SET_CHILD_SUBREAPER), not the machine's
first process: so whoever has lost its parent is found among our own children, and there alone. Each program that is run
has a mark of its own in its environment, which what it starts inherits; the kernel shows it in /proc/PID/environ. So

* at the end of a run, each child with its mark, or of its session, is killed; and so on with those that fall to us by
  that, until there is none. What it has killed is reaped by it, or by the end of a later run. A list of children is
  not of one moment: who ends after it was made has left us its own, which only the next list has. So there is one after
  each end that is news;
* a child that had ended before it was looked at has no environment any more, so nobody knows whose it was. Ends of runs
  that are ten seconds apart, and both find it ended, take it for an orphan, which nobody else will reap, and reap it.
  (Whoever starts a process in Python waits for it at once.) Until then it is an entry in the table of processes.

All this happens at the end of a run, and not between runs; and nothing where there is no PR_SET_CHILD_SUBREAPER. None
of it needs a privilege. What it cannot do: a program that has left its session *and* cleans its environment
(``env -i setsid …``) is not found. Only a PID namespace or a cgroup of its own would hold that one: where hooks are not
trusted, they belong in a pod of their own (``hook-worker``).
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

MARK: Final = "ADMISSION_GATEWAY_RUN"
"""The variable that holds the mark."""

_SET_CHILD_SUBREAPER: Final = 36
"""PR_SET_CHILD_SUBREAPER of linux/prctl.h."""

_NOBODYS_SECONDS: Final = 10.0
"""So long nobody has reaped an ended child: then nobody will."""

_PAUSES: Final = (0.001, 0.005, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0)
"""Between two looks for strays that were killed, and for those that these have started meanwhile: 2 s. What is still
there has its SIGKILL and waits in the kernel; the end of a later run reaps it."""

_UNSURE_LOOKS: Final = 3
"""So many looks, 26 ms, for whoever has no environment: "Ensure the process spawned far enough to have an environment"
(fs/proc/base.c), it may be in the middle of an exec, and show its mark at once. Or it was started with none."""


class Child(NamedTuple):
    """One of this process' children: ``state`` as in /proc/PID/stat, Z for an ended one."""

    pid: int
    state: str
    session: int


class _Seen(Enum):
    """What a look was worth."""

    NOTHING = auto()
    UNSURE = auto()
    SOMETHING = auto()


def new_mark() -> str:
    """A mark that no other run has."""
    return secrets.token_hex(16)


class Strays:
    """Those of this process, of which there is one: so the state is the class's."""

    _adopts: ClassVar[bool | None] = None
    _ended: ClassVar[dict[int, float]] = {}
    """Ended children that nobody has reaped, and since when they are known."""

    @classmethod
    def adopt(cls) -> bool:
        """Let orphans below this process fall to it. Whether that is possible here."""
        if cls._adopts is None:
            cls._adopts = sys.platform == "linux" and _set_child_subreaper()
        return cls._adopts

    @classmethod
    async def clear(cls, *, session: int, mark: str) -> None:
        """Kill and reap what is left of a run: of its session, or with its mark. Returns when there is nothing, or
        after ``_PAUSES``.
        """
        if not cls.adopt():
            return
        sessions = {session}
        for number, pause in enumerate(_PAUSES):
            seen = cls._look(sessions, mark)
            if seen is _Seen.NOTHING or (seen is _Seen.UNSURE and number >= _UNSURE_LOOKS):
                return
            await asyncio.sleep(pause)

    @classmethod
    def _look(cls, sessions: set[int], mark: str) -> _Seen:
        """Kill and reap what there is, and take down its sessions."""
        sought = f"{MARK}={mark}".encode()
        found = unsure = False
        ended: dict[int, float] = {}
        for child in children():
            is_ours = child.session in sessions
            if child.state == "Z":
                # Its children may have fallen to us just now.
                found = found or is_ours or child.pid not in cls._ended
                if is_ours or _is_due(cls._ended, child.pid):
                    _reap(child.pid)
                else:
                    ended[child.pid] = cls._ended.get(child.pid, monotonic())
                continue
            environment = [] if is_ours else _environment(child.pid)
            unsure = unsure or not (is_ours or environment)
            if is_ours or sought in environment:
                found = True
                sessions.add(child.session)
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.kill(child.pid, signal.SIGKILL)
                # When it has ended, nobody else is to reap it: due at once.
                ended[child.pid] = monotonic() - _NOBODYS_SECONDS
        cls._ended = ended
        if found:
            return _Seen.SOMETHING
        return _Seen.UNSURE if unsure else _Seen.NOTHING


def listed() -> list[int]:
    """The numbers of this process' children, ended ones included; none where the kernel does not list them."""
    pids: list[int] = []
    for task in Path("/proc/self/task").glob("*/children"):
        with contextlib.suppress(OSError):
            pids += map(int, task.read_text().split())
    return pids


def children() -> list[Child]:
    """This process' children, as far as they are still there."""
    found = []
    for pid in listed():
        # PID (NAME) STATE PPID PGRP SESSION …; the name may hold anything, so what counts is after its last bracket.
        with contextlib.suppress(OSError, ValueError, IndexError):
            fields = Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()
            found.append(Child(pid, fields[0], int(fields[3])))
    return found


def _environment(pid: int) -> list[bytes]:
    with contextlib.suppress(OSError):
        content = Path(f"/proc/{pid}/environ").read_bytes()
        return content.split(b"\0") if content else []
    return []


def _is_due(ended: dict[int, float], pid: int) -> bool:
    return pid in ended and monotonic() - ended[pid] >= _NOBODYS_SECONDS


def _reap(pid: int) -> None:
    with contextlib.suppress(ChildProcessError):
        os.waitpid(pid, os.WNOHANG)


def _set_child_subreaper() -> bool:
    try:
        return bool(ctypes.CDLL(None, use_errno=True).prctl(_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0)
    except (OSError, AttributeError):
        return False
