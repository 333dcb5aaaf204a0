"""The directory of the sockets at which started workers listen, and the removal of those that killed gateways left.

A gateway that ends removes its directory; one that is killed cannot. Each directory is locked by its gateway for as
long as that runs, and the kernel unlocks it whatever the end. So a directory that is not locked is left over. It may
also have been made a moment ago, and not be locked yet: young directories stay.
"""

import contextlib
import fcntl
import os
import shutil
import tempfile
import time
from pathlib import Path
from typing import Final

from gateway.policies.workers.grpc_names import target_hosts

_PREFIX: Final = "admission-workers-"

_LAST_SOCKET: Final = f"{10**9}.sock"
"""The longest name of a socket: a process makes one for each Worker, fewer than a billion."""

LEFT_OVER_SECONDS: Final = 60.0
"""The age from which an unlocked directory is left over. Making and locking one takes microseconds."""

MOST_REMOVED: Final = 100
"""Directories that one start removes at most, so that it stays quick."""


class SocketDirectory:
    """A directory that only this user can enter, with a path that can be part of a gRPC name.

    TMPDIR may be too long for a socket, or have characters that gRPC interprets. Such a channel never connects, and
    closing it blocks the whole process for ever.

    Raises:
        OSError: it cannot be made.
    """

    def __init__(self) -> None:
        made = tempfile.TemporaryDirectory(prefix=_PREFIX)
        if target_hosts(f"unix:{made.name}/{_LAST_SOCKET}") is None:
            made.cleanup()
            made = tempfile.TemporaryDirectory(prefix=_PREFIX, dir="/tmp")
        self._directory = made
        self.path = Path(made.name)
        self._lock = _locked(self.path)
        remove_left_over(self.path.parent)

    def close(self) -> None:
        """Remove it, with all sockets."""
        self._directory.cleanup()
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None


def remove_left_over(parent: Path) -> None:
    """Remove the directories here that belong to no running gateway. What cannot be removed stays."""
    with contextlib.suppress(OSError):
        known = [entry for entry in os.scandir(parent) if entry.name.startswith(_PREFIX)]
        for entry in known[:MOST_REMOVED]:
            with contextlib.suppress(OSError):
                _remove_if_left_over(Path(entry.path), entry.stat(follow_symlinks=False))


def _remove_if_left_over(path: Path, found: os.stat_result) -> None:
    if found.st_uid != os.getuid() or time.time() - found.st_mtime < LEFT_OVER_SECONDS:
        return
    lock = _locked(path)
    if lock is not None:
        try:
            shutil.rmtree(path)
        finally:
            os.close(lock)


def _locked(path: Path) -> int | None:
    """The descriptor that locks a directory; None: another process has locked it, or it cannot be locked."""
    descriptor = None
    try:
        # Not inherited by the workers: the lock ends with the gateway.
        descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        if descriptor is not None:
            os.close(descriptor)
        return None
    return descriptor
