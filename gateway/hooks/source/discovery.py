"""The files in a directory of hooks: which of them are hooks, and their state.

Hooks are found as by shell-operator, recursively and in the order of their whole paths:

* Ignored are hidden files and directories, directories ``lib`` (for what hooks source), and files that end in .yaml,
  .json, .md or .txt.
* Each other executable file is a hook. Files that are not executable are left out and reported: the mode may be wrong.

Unlike shell-operator, the gateway follows links to directories: a mounted ConfigMap with paths consists of links. It
also ignores ``__pycache__``.
"""

import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from msgspec import Struct, field

MAX_FILES: Final = 10_000
"""A directory has tens of hooks, with sourced files perhaps hundreds. More files mean that it is the wrong directory,
and that looking through it every second would be expensive."""

LIBRARY: Final = "lib"
CACHE: Final = "__pycache__"
_IGNORED: Final = frozenset({".yaml", ".json", ".md", ".txt"})
_EXECUTE: Final = 0o111

HookState = tuple[tuple[str, tuple[int, ...]], ...]
"""The files that may influence the hooks' configurations, each with the marks of its content and mode."""


class TooManyError(Exception):
    """The directory has too many files. ``str(error)`` says how many are allowed."""


class HookFiles(Struct, kw_only=True):
    """What was found: ``hooks`` (absolute paths, in order), ``skipped`` (files that are not executable or cannot be
    read, and why), ``state``.
    """

    hooks: list[Path] = field(default_factory=list)
    skipped: list[tuple[Path, str]] = field(default_factory=list)
    state: HookState = ()


def find_hooks(directory: Path) -> HookFiles:
    """Search a directory.

    Raises:
        OSError: the directory, or one in it, cannot be read.
        TooManyError: it has more than ``MAX_FILES`` files.
    """
    found = HookFiles()
    states: list[tuple[str, tuple[int, ...]]] = []
    for count, (path, is_library) in enumerate(_files(Path(os.path.abspath(directory)))):  # noqa: PTH100 - links stay
        if count >= MAX_FILES:
            raise TooManyError(f"it contains more than {MAX_FILES} files; name the directory that contains the hooks")
        status, why = _status(path)
        if is_library:
            states.append((str(path), _marks(status)))
        elif path.suffix not in _IGNORED:
            executable = status is not None and not why
            states.append((str(path), _marks(status) if executable else ()))
            if executable:
                found.hooks.append(path)
            else:
                found.skipped.append((path, why))
    found.hooks.sort(key=str)
    found.skipped.sort(key=lambda pair: str(pair[0]))
    found.state = tuple(sorted(states))
    return found


def _files(directory: Path) -> Iterator[tuple[Path, bool]]:
    """Each file below, and whether it is in a ``lib``. A directory to which several links lead is entered once."""
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
    """The file's status, and why it is not a hook ("" if it is one)."""
    try:
        status = path.stat()
    except OSError as error:
        return None, f"cannot be read: {error.strerror}; remove it, or correct the link"
    if not stat.S_ISREG(status.st_mode):
        return status, "is not a regular file, so it is not a hook; remove it"
    if not status.st_mode & _EXECUTE:
        return status, (
            f"is not executable, so it is not a hook; chmod +x {path}, or move it to a directory {LIBRARY} if "
            "hooks only source it"
        )
    return status, ""


def _marks(status: os.stat_result | None) -> tuple[int, ...]:
    if status is None:
        return ()
    # ctime too: a change of the mode does not change mtime.
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns
