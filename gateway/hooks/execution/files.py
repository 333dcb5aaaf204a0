"""The files through which a hook is asked and answers: in a directory of their own, which goes with all that is in it.

Only the hook's own user can look into it. The hook may do with it whatever it likes: what is read afterwards may be
gone, a pipe, a link, or larger than the disk was yesterday. So nothing is waited for, and no more is read than a bound.
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
"""Of the directories: whoever finds one without a gateway may remove it (one that was killed could not)."""

METRICS_BYTES: Final = 1_048_576
"""Of a file of metrics, which is read only to see that it can be: an operation has a hundred bytes, a hook a few of
them."""

_CONTEXT: Final = "binding-context.json"
_RESPONSE: Final = "admission-response.json"
_CONVERSION: Final = "conversion-response.json"
_METRICS: Final = "metrics.json"
_PATCH: Final = "kubernetes-patch"


class RunFiles:
    """The files of one run, from ``with`` to its end.

    Args:
        context: what the hook is asked, the JSON of shell-operator's binding context.

    Raises:
        OSError: entering; they cannot be written.
    """

    def __init__(self, context: bytes) -> None:
        self._context = context
        self._directory = Path()

    def __enter__(self) -> Self:
        """Make them."""
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
        """Remove them, and all that the hook has put beside them: that may take a while."""
        if not self.remove_known():
            self._remove()

    def remove_known(self) -> bool:
        """Remove the files that were made here, which takes next to no time; whether there is nothing else."""
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
        """How many bytes of what the hook has left there is to read."""
        found = 0
        for name in (_RESPONSE, _CONVERSION, _METRICS, _PATCH):
            with contextlib.suppress(OSError):
                found += (self._directory / name).stat().st_size
        return found

    @property
    def variables(self) -> dict[str, str]:
        """How the hook is told where they are."""
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
            patches=self._read(_PATCH, limit),
        )

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
            _LOG.warning("files of a hook cannot be removed; remove them", directory=str(self._directory))


def _remove_tree(root: Path) -> None:
    """Remove a directory with all that is in it, however deep; nothing outside of it is touched.

    A hook may have closed a directory to its own user: each is opened before it is entered. What lies in the second
    level is moved up to the first, so that neither the stack, nor open files, nor the length of a path is a bound.
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
