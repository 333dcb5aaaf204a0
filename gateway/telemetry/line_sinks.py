"""Writes lines to a file descriptor or to a file that is bounded in size.

A file is rotated: when it would exceed ``FILE_BYTES``, it becomes ``FILE.1``, that ``FILE.2`` and so on, and the oldest
of ``FILES`` is deleted. So the log needs no other program to stay bounded; to reopen a file on a signal would need one,
and SIGHUP already reloads the configuration. Another program may rotate it nevertheless: a file that was moved or
deleted is created again. Several processes may write one file: each batch of lines is one append, and a lock keeps two
of them from rotating it at the same time.

A line that a full disk cuts is removed again, so that a file has whole lines only.
"""

import contextlib
import errno
import fcntl
import os
import select
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from gateway.telemetry.background_writer import WriteError

FILE_BYTES: Final = 67_108_864
"""Bytes of a file of the decision log: 64 MiB, some 30,000 decisions."""

FILES: Final = 5
"""Files of the decision log, the current one included: 320 MiB at most."""

_MODE: Final = 0o640
"""A group of the operator's choice may read the log; it names users and objects."""

_LATER: Final = frozenset({errno.ENOSPC, errno.EDQUOT, errno.ENXIO})
"""Errors that end by themselves: a full disk, and a pipe that no process reads yet."""


@contextlib.contextmanager
def except_for_now() -> Iterator[None]:
    """Pass over errors that do not prevent a start: what cannot be written until they end is dropped and counted."""
    try:
        yield
    except OSError as error:
        if error.errno not in _LATER:
            raise


@contextlib.contextmanager
def other_processes_wait(descriptor: int) -> Iterator[None]:
    """Let no other process of this gateway write to the same pipe: above 4 KB (PIPE_BUF), a write to it is not atomic.

    A process that ends leaves the lock. What cannot be locked is written without.
    """
    with contextlib.suppress(OSError):
        fcntl.lockf(descriptor, fcntl.LOCK_EX)
    try:
        yield
    finally:
        with contextlib.suppress(OSError):
            fcntl.lockf(descriptor, fcntl.LOCK_UN)


class DescriptorSink:
    """Writes lines to a file descriptor, such as that of standard output.

    Args:
        descriptor: open; it is never closed here.
        name: in messages.
        shared: whether other processes of this gateway write to it.
    """

    def __init__(self, descriptor: int, name: str, *, shared: bool = False) -> None:
        self.name: Final = name
        self._descriptor = descriptor
        self._shared = shared
        self._torn = False

    def write(self, records: Sequence[bytes]) -> None:
        """See Sink. Waits as long as the reader does not read."""
        with other_processes_wait(self._descriptor) if self._shared else contextlib.nullcontext():
            if self._torn:
                # What an error has cut ends in a line of its own.
                self._write(b"\n", ())
            self._write(b"".join(records), records)

    def _write(self, content: bytes, records: Sequence[bytes]) -> None:
        written = 0
        while written < len(content):
            try:
                written += os.write(self._descriptor, content[written:])
            except BlockingIOError:
                select.select((), (self._descriptor,), ())
            except OSError as error:
                whole, size = _whole(records, written)
                self._torn = self._torn or size < written
                raise WriteError(_reason(error), written=whole) from None
        self._torn = False

    def close(self) -> None:
        """See Sink."""


class FileSink:
    """Writes lines to a file, and rotates it.

    Args:
        path: of the file; its directory must exist.
        file_bytes: the size at which it is rotated.
        files: how many files there are at most.
    """

    def __init__(self, path: Path, *, file_bytes: int = FILE_BYTES, files: int = FILES) -> None:
        self.name: Final = str(path)
        self._path = path
        self._file_bytes = file_bytes
        self._files = files
        self._descriptor: int | None = None

    def check(self) -> None:
        """Create the file if there is none.

        Raises:
            OSError: it cannot be written, and not because the disk is full.
        """
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NONBLOCK
        with except_for_now():
            os.close(os.open(self._path, flags, _MODE))

    def write(self, records: Sequence[bytes]) -> None:
        """See Sink."""
        content = b"".join(records)
        written = whole = 0
        try:
            descriptor, size = self._opened(len(content))
            try:
                while written < len(content):
                    written += os.write(descriptor, content[written:])
            except OSError:
                whole, kept = _whole(records, written)
                if kept < written and os.fstat(descriptor).st_size == size + written:
                    os.ftruncate(descriptor, size + kept)
                raise
        except OSError as error:
            self.close()
            raise WriteError(_reason(error), written=whole) from None

    def close(self) -> None:
        """See Sink."""
        if self._descriptor is not None:
            with contextlib.suppress(OSError):
                os.close(self._descriptor)
            self._descriptor = None

    def _opened(self, more: int) -> tuple[int, int]:
        """The descriptor of a file that has room for ``more`` bytes, and the file's size."""
        while True:
            descriptor = self._descriptor
            if descriptor is None:
                flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC
                descriptor = self._descriptor = os.open(self._path, flags, _MODE)
            status = os.fstat(descriptor)
            if not self._is_current(status):
                self.close()
            elif status.st_size and status.st_size + more > self._file_bytes:
                self._rotate(descriptor)
            else:
                return descriptor, status.st_size

    def _is_current(self, status: os.stat_result) -> bool:
        """Whether the path still leads to the open file."""
        try:
            return os.path.samestat(status, self._path.stat())
        except FileNotFoundError:
            return False

    def _rotate(self, descriptor: int) -> None:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        try:
            # Another process may have rotated it while this one waited for the lock.
            if self._is_current(os.fstat(descriptor)):
                names = [self._path, *(Path(f"{self._path}.{number}") for number in range(1, self._files))]
                for older, newer in zip(names[:0:-1], names[-2::-1], strict=True):
                    with contextlib.suppress(FileNotFoundError):
                        newer.replace(older)
        finally:
            self.close()  # which ends the lock


def _whole(records: Sequence[bytes], written: int) -> tuple[int, int]:
    """How many records ``written`` bytes have whole, the first ones, and their bytes."""
    number = size = 0
    while number < len(records) and size + len(records[number]) <= written:
        size += len(records[number])
        number += 1
    return number, size


def _reason(error: OSError) -> str:
    return f"{error.strerror or type(error).__name__} (errno {error.errno})"
