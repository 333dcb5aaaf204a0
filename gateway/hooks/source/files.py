"""The files in a directory of hooks: which of them are hooks, and in which state they are.

As shell-operator finds them, recursively and in the order of their whole paths:

* Hidden files and directories are none of its business; nor is a directory ``lib``, where hooks keep what they source;
  nor are files that end in .yaml, .json, .md or .txt.
* Of the rest, what may be executed is a hook. What may not is left out, and said: somebody may have forgotten it.

Other than shell-operator, links to directories are followed: in a mounted ConfigMap with paths in it, all are links.
``__pycache__`` is what Python leaves behind; it is nobody's either.
"""

import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from msgspec import Struct, field

MAX_FILES: Final = 10_000
"""Of a directory of hooks there are tens, with what they source perhaps hundreds. Where there are more, somebody named
the wrong directory, and looking through it every second would cost more than it is worth."""

LIBRARY: Final = "lib"
CACHE: Final = "__pycache__"
_IGNORED: Final = frozenset({".yaml", ".json", ".md", ".txt"})
_EXECUTE: Final = 0o111

HookState = tuple[tuple[str, tuple[int, ...]], ...]
"""Each file that may matter, and what changes when it is written to."""


class TooManyError(Exception):
    """More files than anybody keeps hooks in. ``str(error)`` says how many are allowed."""


class HookFiles(Struct, kw_only=True):
    """What was found: ``hooks`` (absolute paths, in order), ``idle`` (what may not be executed, or not be read, and
    why), ``state``.
    """

    hooks: list[Path] = field(default_factory=list)
    idle: list[tuple[Path, str]] = field(default_factory=list)
    state: HookState = ()


def find_hooks(directory: Path) -> HookFiles:
    """Look through a directory.

    Raises:
        OSError: the directory, or one in it, cannot be read.
        TooManyError: it is no directory of hooks.
    """
    found = HookFiles()
    states: list[tuple[str, tuple[int, ...]]] = []
    for count, (path, is_library) in enumerate(_files(Path(os.path.abspath(directory)))):  # noqa: PTH100 - links stay
        if count >= MAX_FILES:
            raise TooManyError(f"it holds more than {MAX_FILES} files; name the directory that holds the hooks")
        status, why = _status(path)
        if is_library:
            states.append((str(path), _marks(status)))
        elif path.suffix not in _IGNORED:
            executable = status is not None and not why
            states.append((str(path), _marks(status) if executable else ()))
            if executable:
                found.hooks.append(path)
            else:
                found.idle.append((path, why))
    found.hooks.sort(key=str)
    found.idle.sort(key=lambda pair: str(pair[0]))
    found.state = tuple(sorted(states))
    return found


def _files(directory: Path) -> Iterator[tuple[Path, bool]]:
    """Each file below, and whether it is in a library. A directory that several links lead to is entered once."""
    waiting = [(directory, False)]
    entered: set[str] = set()
    while waiting:
        here, is_library = waiting.pop()
        real = os.path.realpath(here)
        if real in entered:
            continue
        entered.add(real)
        for entry in sorted(here.iterdir()):
            if entry.name.startswith(".") or entry.name == CACHE:
                continue
            if os.path.isdir(entry):  # noqa: PTH112 - Path.is_dir raises where a link cannot be followed
                waiting.append((entry, is_library or entry.name == LIBRARY))
            else:
                yield entry, is_library


def _status(path: Path) -> tuple[os.stat_result | None, str]:
    """The file's status, and why it is no hook ("" if it is one)."""
    try:
        status = path.stat()
    except OSError as error:
        return None, f"cannot be read: {error.strerror}; remove it, or see where it leads"
    if not stat.S_ISREG(status.st_mode):
        return status, "is no regular file, so it is no hook; put hooks there as files"
    if not status.st_mode & _EXECUTE:
        return status, (
            f"may not be executed, so it is no hook; chmod +x {path}, or keep it in a directory {LIBRARY} if it is "
            "only sourced"
        )
    return status, ""


def _marks(status: os.stat_result | None) -> tuple[int, ...]:
    if status is None:
        return ()
    # The time of change too: permissions are no part of the content.
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns
