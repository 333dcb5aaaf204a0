"""A hook's file: its path, the stamp by which a change is detected, the digest of its content."""

import errno
import hashlib
import os
import stat
from pathlib import Path
from typing import NamedTuple


class Stamp(NamedTuple):
    """The state of a file. A change of the file changes its stamp."""

    modified: int
    changed: int
    size: int
    inode: int
    mode: int


def hook_path(path: str, directory: str) -> Path:
    """A hook's absolute path; a relative one begins in ``directory``."""
    return Path(os.path.abspath(Path(directory, path)))  # noqa: PTH100 - links are not resolved: the link is watched


def stamp(path: Path) -> Stamp | None:
    """A file's stamp; None if there is no such file."""
    try:
        found = path.stat()
    except OSError:
        return None
    return Stamp(found.st_mtime_ns, found.st_ctime_ns, found.st_size, found.st_ino, stat.S_IMODE(found.st_mode))


def digest(path: Path) -> "hashlib._Hash":
    """The SHA-256 of a file's content.

    Raises:
        OSError: it cannot be read, or is no regular file.
    """
    # O_NONBLOCK: opening a pipe without a writer would block the thread for ever.
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(descriptor, "rb") as file:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError(errno.EINVAL, "it is no regular file", str(path))
        return hashlib.file_digest(file, "sha256")
