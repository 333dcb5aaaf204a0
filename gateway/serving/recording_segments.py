"""The files of recordings: sealed, bounded, and readable whatever happened while they were written.

A directory has **segments**, each a file that one process has created and appended to:

    segment     magic, id (16 random bytes), records
    record      length of the rest (4 bytes, big-endian), sealed(recording; place: id, beside: number of the record)

Recordings are sealed with AES-256-GCM under a key of a key file (``gateway.redis.sealing``, ``key_files``): who has no
key reads nothing, and can neither alter nor move a record unnoticed. The first key of the file seals, all of them open.

A new segment begins with the process and when ``SEGMENT_BYTES`` or ``SEGMENT_RECORDS`` is reached; then the oldest of
more than ``SEGMENTS`` are deleted. A process that is killed leaves at most one record torn, the last of its segment: a
reader counts it and goes on.
"""

import contextlib
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryFile
from time import gmtime, strftime, time_ns
from typing import Final

from msgspec import Struct

from gateway.redis.sealing import Context, SealKeys
from gateway.telemetry.background_writer import WriteError
from gateway.telemetry.line_sinks import except_for_now

SEGMENT_BYTES: Final = 16_777_216
"""Bytes of a segment: 16 MiB, some thousand recordings of 10 KB."""

SEGMENT_RECORDS: Final = 10_000
"""Records of a segment: a reader that looks at one does not look at more."""

SEGMENTS: Final = 16
"""Segments of a directory: 256 MiB and 160,000 recordings at most."""

RECORD_BYTES: Final = 2_097_152
"""The largest record: a review of ``REVIEW_BYTES``, whose text may double when it is encoded again, and its decision. A
length above it is damage."""

SUFFIX: Final = ".recording"

_MAGIC: Final = b"admission-gateway recording 1\n"
_ID_BYTES: Final = 16
_HEAD: Final = len(_MAGIC) + _ID_BYTES
_LENGTH_BYTES: Final = 4
_PURPOSE: Final = b"recording"
_MODE: Final = 0o600


class SegmentSink:
    """Writes recordings to a directory. A Sink.

    Args:
        directory: it must exist.
        keys: seal the recordings; read again for each new segment.
        segment_bytes: of a segment.
        segments: of the directory.
    """

    def __init__(
        self, directory: Path, keys: SealKeys, *, segment_bytes: int = SEGMENT_BYTES, segments: int = SEGMENTS
    ) -> None:
        self.name: Final = str(directory)
        self._directory = directory
        self._keys = keys
        self._segment_bytes = segment_bytes
        self._segments = segments
        self._descriptor: int | None = None
        self._id = b""
        self._size = self._number = 0

    def check(self) -> None:
        """Create a file without a name in the directory, and look for its segments.

        Raises:
            OSError: either fails, and not because the disk is full.
        """
        with except_for_now(), TemporaryFile(dir=self._directory), os.scandir(self._directory):
            pass

    def write(self, records: Sequence[bytes]) -> None:
        """See Sink."""
        for written, record in enumerate(records):
            try:
                self._append(record)
            except (OSError, ValueError) as error:
                why = f"{error.strerror} (errno {error.errno})" if isinstance(error, OSError) else str(error)
                raise WriteError(why, written=written) from None

    def close(self) -> None:
        """See Sink."""
        if self._descriptor is not None:
            with contextlib.suppress(OSError):
                os.close(self._descriptor)
            self._descriptor = None

    def _append(self, record: bytes) -> None:
        descriptor = self._descriptor
        if descriptor is None or self._is_over(descriptor, len(record)):
            self.close()
            descriptor = self._begin()
        sealed = self._keys.seal(_context(self._id, self._number), record)
        content = len(sealed).to_bytes(_LENGTH_BYTES) + sealed
        try:
            _write(descriptor, content)
        except OSError:
            # Behind what is torn a reader would find nothing.
            try:
                os.ftruncate(descriptor, self._size)
            except OSError:
                self.close()
            raise
        self._size += len(content)
        self._number += 1

    def _is_over(self, descriptor: int, more: int) -> bool:
        """Whether another record does not belong into the segment: it is full, or was deleted."""
        full = self._size + more > self._segment_bytes or self._number >= SEGMENT_RECORDS
        return (full and self._number > 0) or os.fstat(descriptor).st_nlink == 0

    def _begin(self) -> int:
        self._keys.refresh()
        if not self._keys.keys:
            raise ValueError(self._keys.why)
        segment = os.urandom(_ID_BYTES)
        path = self._directory / f"{_now()}-{segment.hex()[:16]}{SUFFIX}"
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
        descriptor = os.open(path, flags, _MODE)
        try:
            _write(descriptor, _MAGIC + segment)
        except OSError:
            os.close(descriptor)
            path.unlink()
            raise
        self._descriptor, self._id = descriptor, segment
        self._size, self._number = _HEAD, 0
        for oldest in segments_in(self._directory)[: -self._segments]:
            oldest.unlink(missing_ok=True)
        return descriptor


class SegmentContent(Struct, frozen=True, kw_only=True):
    """What a segment has: the ``recordings`` as JSON texts, and how many others it has.

    ``torn``: records that were not written whole: 0 or 1. ``unreadable``: those that none of the keys opens, because
    they were sealed with another one, altered or moved.
    """

    recordings: tuple[bytes, ...] = ()
    torn: int = 0
    unreadable: int = 0


def segments_in(directory: Path) -> list[Path]:
    """The segments of a directory, the oldest first."""
    return sorted(directory.glob(f"*{SUFFIX}"))


def read_segment(path: Path, keys: SealKeys) -> SegmentContent:
    """Read a segment, also while it is written.

    Raises:
        OSError: the file cannot be read.
        ValueError: it is no segment.
    """
    content = path.read_bytes()
    if not content.startswith(_MAGIC[: len(content)]):
        raise ValueError("not a file of recordings")
    if len(content) < _HEAD:
        return SegmentContent(torn=int(bool(content)))
    segment = content[len(_MAGIC) : _HEAD]
    recordings: list[bytes] = []
    unreadable = 0
    for number, sealed in enumerate(_records(content)):
        if sealed is None:
            return SegmentContent(recordings=tuple(recordings), torn=1, unreadable=unreadable)
        opened = keys.open(_context(segment, number), sealed)
        if opened is None:
            unreadable += 1
        else:
            recordings.append(opened)
    return SegmentContent(recordings=tuple(recordings), unreadable=unreadable)


def _records(content: bytes) -> Iterator[bytes | None]:
    """The sealed records; None at the end if the last one is not whole."""
    position = _HEAD
    while position < len(content):
        start = position + _LENGTH_BYTES
        length = int.from_bytes(content[position:start])
        position = start + length
        if start > len(content) or length > RECORD_BYTES or position > len(content):
            yield None
            return
        yield content[start:position]


def _now() -> str:
    """The time of UTC, so that names sort by it."""
    seconds, rest = divmod(time_ns(), 10**9)
    return f"{strftime('%Y%m%dT%H%M%S', gmtime(seconds))}.{rest // 1000:06}Z"


def _context(segment: bytes, number: int) -> Context:
    return Context(purpose=_PURPOSE, place=segment, beside=number.to_bytes(_LENGTH_BYTES))


def _write(descriptor: int, content: bytes) -> None:
    written = 0
    while written < len(content):
        written += os.write(descriptor, content[written:])
