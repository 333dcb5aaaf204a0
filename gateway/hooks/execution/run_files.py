"""The files of one run of a hook: its binding context and its answer, in a temporary directory of their own.

Only the gateway's user may enter the directory. The hook may do anything in it: afterwards a file may be missing, a
pipe, a link, or very large. So reading never blocks and is limited, and removal copes with whatever is there.
"""

import contextlib
import itertools
import os
import secrets
import stat
import tempfile
from pathlib import Path
from types import TracebackType
from typing import Final, Self

import structlog

from gateway.hooks.protocol.verdicts import AnswerFiles, UnreadFile

_LOG: Final = structlog.get_logger(__name__)

PREFIX: Final = "admission-gateway-hook-"
"""Of the directories' names. A gateway that is killed cannot remove them; without a gateway they may be removed."""

METRICS_BYTES: Final = 1_048_576
"""Of a file of metrics, which is only validated: an operation has a hundred bytes, and a hook writes a few."""

PATCH_BYTES: Final = 4_194_304
"""Of the operations that a hook requests: the API server accepts 3 MiB in one request; the rest is for others."""

_CONTEXT: Final = "binding-context.json"
_RESPONSE: Final = "admission-response.json"
_CONVERSION: Final = "conversion-response.json"
_METRICS: Final = "metrics.json"
_PATCH: Final = "kubernetes-patch"


class RunFiles:
    """The files of one run, within a ``with`` block.

    Args:
        context: the binding context, as JSON.

    Raises:
        OSError: on entering, if the files cannot be written.
    """

    def __init__(self, context: bytes) -> None:
        self._context = context
        self._directory = Path()

    def __enter__(self) -> Self:
        """Create the files."""
        self._directory = Path(tempfile.mkdtemp(prefix=PREFIX))
        try:
            (self._directory / _CONTEXT).write_bytes(self._context)
            for name in (_RESPONSE, _CONVERSION, _METRICS, _PATCH):
                (self._directory / name).touch()
        except OSError:
            self._remove()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Remove the files, and all that the hook has put into the directory: this may take long."""
        if not self.remove_known():
            self._remove()

    def remove_known(self) -> bool:
        """Remove the files that were created on entering, which is quick. Whether nothing else is left."""
        if self._directory.is_symlink():
            return False
        try:
            for name in (_CONTEXT, _RESPONSE, _CONVERSION, _METRICS, _PATCH):
                (self._directory / name).unlink(missing_ok=True)
            self._directory.rmdir()
        except FileNotFoundError:
            return True
        except OSError:
            return False
        return True

    def size(self) -> int:
        """How many bytes there are to read of the files that the hook has left."""
        found = 0
        for name in (_RESPONSE, _CONVERSION, _METRICS, _PATCH):
            with contextlib.suppress(OSError):
                found += (self._directory / name).stat().st_size
        return found

    @property
    def variables(self) -> dict[str, str]:
        """The environment variables by which the hook finds the files."""
        names = {
            "BINDING_CONTEXT_PATH": _CONTEXT,
            "VALIDATING_RESPONSE_PATH": _RESPONSE,
            "ADMISSION_RESPONSE_PATH": _RESPONSE,
            "CONVERSION_RESPONSE_PATH": _CONVERSION,
            "METRICS_PATH": _METRICS,
            "KUBERNETES_PATCH_PATH": _PATCH,
        }
        return {variable: str(self._directory / name) for variable, name in names.items()}

    def read(self, limit: int) -> AnswerFiles:
        """The contents of all files that the hook has left, each of at most ``limit`` bytes."""
        return AnswerFiles(
            response=self._read(_RESPONSE, limit),
            conversion=self._read(_CONVERSION, limit),
            metrics=self._read(_METRICS, min(limit, METRICS_BYTES)),
            patches=self.read_patches(limit),
        )

    def read_patches(self, limit: int) -> bytes | UnreadFile:
        """The operations that the hook has requested."""
        return self._read(_PATCH, min(limit, PATCH_BYTES))

    def _read(self, name: str, limit: int) -> bytes | UnreadFile:
        try:
            # O_NONBLOCK: opening a pipe without a writer would block the gateway.
            descriptor = os.open(self._directory / name, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
            with os.fdopen(descriptor, "rb") as file:
                found = os.fstat(descriptor)
                if not stat.S_ISREG(found.st_mode):
                    return UnreadFile("it is no regular file any more")
                # read() gives None for a file of the kernel that has no data yet.
                content = b"" if found.st_size > limit else file.read(limit + 1) or b""
        except OSError as error:
            return UnreadFile(error.strerror or str(error))
        if max(len(content), found.st_size) > limit:
            return UnreadFile(f"{name} has more than {limit} bytes", too_large=True)
        return content

    def _remove(self) -> None:
        _remove_tree(self._directory)
        if os.path.lexists(self._directory):
            _LOG.warning("the files of a hook cannot be removed; remove the directory", directory=str(self._directory))


def _remove_tree(root: Path) -> None:
    """Remove a directory with all that is in it, however deep. Nothing outside of it is touched: links are not
    followed.

    A hook may have removed its own permissions from a directory, so each gets mode 0700 before it is entered.
    Directories of the second level are moved up to the first, so that neither the stack, nor the number of open files,
    nor the length of a path limits the depth.
    """
    numbers, name = itertools.count(), f".{secrets.token_hex(8)}-"
    with contextlib.suppress(OSError):
        if not root.is_symlink():
            root.chmod(stat.S_IRWXU)
    waiting = [root]
    while waiting:
        here = waiting.pop()
        try:
            entries = [] if here.is_symlink() else list(os.scandir(here))
        except OSError:
            continue
        for entry in entries:
            path = Path(entry)
            with contextlib.suppress(OSError):
                if not entry.is_dir(follow_symlinks=False):
                    path.unlink()
                    continue
                path.chmod(stat.S_IRWXU)
                waiting.append(path.rename(root / f"{name}{next(numbers)}"))
        if here is not root:
            with contextlib.suppress(OSError):
                here.rmdir()
    with contextlib.suppress(OSError):
        if root.is_symlink():
            root.unlink()
        else:
            root.rmdir()
