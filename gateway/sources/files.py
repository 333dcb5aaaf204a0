"""Files and directories -> the texts in them, all or none: what cannot be read refuses the whole.

* A file that is named is read whatever it is called. Of a directory, the files that end in .yaml, .yml or .json are
  read, in the order of their names; hidden ones and subdirectories are not.
* A mounted ConfigMap is a directory of symbolic links into ``..data``, which is a link itself and is swapped when the
  ConfigMap changes. The visible links are followed. What was changed while it was read is read again, so that one half
  of a configuration never meets the other half of the next.
* What is named twice is read once.
"""

import os
import stat
from collections.abc import Sequence
from itertools import islice
from pathlib import Path
from typing import BinaryIO, Final

from msgspec import Struct

from gateway.policies.decoding.texts import SourceText

MAX_FILE_BYTES: Final = 16 * 1024 * 1024
"""A ConfigMap holds at most 1 MiB. The Namespace documents of 10,000 namespaces, as kubectl prints them, take 8 MiB."""

MAX_FILES: Final = 10_000
"""Files of a source. Looking at them once a second takes 5 µs each; a directory with more entries is another one's."""

MAX_BYTES: Final = 4 * MAX_FILE_BYTES
"""All files together: they are held while their configuration is in force."""

MAX_ATTEMPTS: Final = 3
"""A ConfigMap is swapped once a minute at most; what has changed three times in a row is being written to."""

STDIN: Final = Path("-")

_SUFFIXES: Final = frozenset({".yaml", ".yml", ".json"})


class SourceError(Exception):
    """The operator's: a source cannot be read. ``str(error)`` says which, what was observed, and what to do."""


class _File(Struct, frozen=True, kw_only=True):
    """A file as it was found: its name, where its links end, and what changes when it is written to."""

    path: Path
    real: str
    state: tuple[int, ...]


State = tuple[_File, ...] | str
"""How files were found at one moment; or why they could not be."""


def read(paths: Sequence[Path]) -> tuple[SourceText, ...]:
    """The texts of all files, in the order in which they are named, a directory's in the order of their names.

    Raises:
        SourceError: nothing is named, a path does not exist or cannot be read, is too large or no regular file, or a
            directory has no file to read.
    """
    return read_at_once(paths)[0]


def read_at_once(paths: Sequence[Path]) -> tuple[tuple[SourceText, ...], State]:
    """The same, and the state in which the files were when they were read. Raises SourceError."""
    if not paths:
        raise SourceError("policies: no file and no directory is named; name at least one")
    for _ in range(MAX_ATTEMPTS):
        before = _find(paths)
        try:
            texts = _read_files(before)
        except SourceError:
            if _find(paths) == before:
                raise
            continue
        if _find(paths) == before:
            return texts, tuple(before)
    names = ", ".join(map(_printable, paths))
    raise SourceError(
        f"policies: {names}: the files changed while they were read, {MAX_ATTEMPTS} times in a row; "
        "put new files in place at once, as a mounted ConfigMap does, and start again"
    )


def look(paths: Sequence[Path]) -> State:
    """The state of the files without reading them: equal states are equal texts. Never raises."""
    try:
        return tuple(_find(paths))
    except SourceError as error:
        return str(error)


def _find(paths: Sequence[Path]) -> list[_File]:
    """The files to read, each once."""
    files: dict[str, _File] = {}
    for path in paths:
        for file in _listing(path) if os.path.isdir(path) else [path]:  # noqa: PTH112 - Path.is_dir raises on EACCES
            try:
                real = os.path.realpath(file)
                files.setdefault(real, _File(path=file, real=real, state=_state(file)))
            except ValueError as error:  # a zero byte
                raise _refusal(file, error) from error
            if len(files) > MAX_FILES:
                raise _too_many(path)
    return list(files.values())


def _read_files(files: Sequence[_File]) -> tuple[SourceText, ...]:
    texts, total = [], 0
    for file in files:
        text = _read_file(file.path)
        total += len(text.content)
        if total > MAX_BYTES:
            raise SourceError(
                f"policies: {_printable(file.path)}: with this file, all files together have more than {MAX_BYTES}"
                " bytes; name only those that hold policies, or serve some of them by another gateway"
            )
        texts.append(text)
    return tuple(texts)


def _state(file: Path) -> tuple[int, ...]:
    try:
        found = file.stat()
    except OSError:
        return ()  # reading it says why
    # The time of change too: a file that could not be read may have been given other permissions.
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns


def _listing(directory: Path) -> list[Path]:
    try:
        with os.scandir(directory) as found:
            names = [entry.name for entry in islice(found, MAX_FILES + 1)]
    except OSError as error:
        raise _refusal(directory, error) from error
    if len(names) > MAX_FILES:
        raise _too_many(directory)
    entries = [directory / name for name in sorted(names)]
    files = [entry for entry in entries if _is_ours(entry)]
    if not files:
        raise SourceError(
            f"policies: {_printable(directory)}: the directory holds no file that ends in .yaml, .yml or .json; "
            "name the directory that holds the policies, or a file"
        )
    return files


def _too_many(path: Path) -> SourceError:
    return SourceError(
        f"policies: {_printable(path)}: more than {MAX_FILES} files; name a directory that holds only the policies"
    )


def _is_ours(entry: Path) -> bool:
    if entry.name.startswith(".") or entry.suffix.lower() not in _SUFFIXES:
        return False
    return not os.path.isdir(entry)  # noqa: PTH112 - a link that cannot be followed is ours, and reading it says why


def read_stream(stream: BinaryIO) -> SourceText:
    """The text of the standard input. Raises SourceError."""
    try:
        content = stream.read(MAX_FILE_BYTES + 1)
    except OSError as error:
        raise _refusal(STDIN, error) from error
    if len(content) > MAX_FILE_BYTES:
        raise SourceError(f"policies: <stdin>: larger than {MAX_FILE_BYTES} bytes; split it into files")
    return SourceText(name="<stdin>", content=content, directory=os.getcwd())  # noqa: PTH109 - a text is wanted


def _read_file(path: Path) -> SourceText:
    try:
        with open(path, "rb", opener=_open_at_once) as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise SourceError(
                    f"policies: {_printable(path)}: not a regular file; name a file or a directory of files"
                )
            content = file.read(MAX_FILE_BYTES + 1)
    except OSError as error:
        raise _refusal(path, error) from error
    if len(content) > MAX_FILE_BYTES:
        raise SourceError(
            f"policies: {_printable(path)}: the file is larger than {MAX_FILE_BYTES} bytes; split it into several"
        )
    return SourceText(name=_printable(path), content=content, directory=str(path.parent.absolute()))


def _open_at_once(path: str, flags: int) -> int:
    """Without O_NONBLOCK, opening a named pipe without a writer would block."""
    return os.open(path, flags | os.O_NONBLOCK)


def _refusal(path: Path, error: OSError | ValueError) -> SourceError:
    observed = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return SourceError(f"policies: {_printable(path)}: cannot be read: {observed}; check the path and its permissions")


def _printable(path: Path) -> str:
    """A name for messages, whatever bytes the file system allows in names."""
    return str(path).encode(errors="replace").decode()
