"""The files through which a hook is asked and answers: in a directory of their own, which goes with all that is in it.

Only the hook's own user can look into it. The hook may do with it whatever it likes: what is read afterwards may be
gone, a pipe, a link, or larger than the disk was yesterday. So nothing is waited for, and no more is read than a bound.
"""

import contextlib
import errno
import os
import shutil
import stat
import tempfile
from pathlib import Path
from types import TracebackType
from typing import Final, Self

import structlog

_LOG: Final = structlog.get_logger(__name__)

PREFIX: Final = "admission-gateway-hook-"
"""Of the directories: whoever finds one without a gateway may remove it (one that was killed could not)."""

_CONTEXT: Final = "binding-context.json"
_RESPONSE: Final = "admission-response.json"
_CONVERSION: Final = "conversion-response.json"
_METRICS: Final = "metrics.json"
_PATCH: Final = "kubernetes-patch"


class TooLargeError(Exception):
    """A file with more bytes than are read. ``str(error)`` says how many they may be."""


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
        """Remove them."""
        self._remove()

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

    def response(self, limit: int) -> bytes:
        """The answer; see ``_read``, as for the others."""
        return self._read(_RESPONSE, limit)

    def conversion(self, limit: int) -> bytes:
        """The answer to a conversion."""
        return self._read(_CONVERSION, limit)

    def metrics(self, limit: int) -> bytes:
        """Operations with metrics."""
        return self._read(_METRICS, limit)

    def patches(self, limit: int) -> bytes:
        """Operations with objects in the cluster."""
        return self._read(_PATCH, limit)

    def _read(self, name: str, limit: int) -> bytes:
        """A file's content.

        Raises:
            TooLargeError: it has more bytes than ``limit``.
            OSError: it cannot be read.
        """
        # Not blocking: a pipe without a writer would hold up everything.
        descriptor = os.open(self._directory / name, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        with os.fdopen(descriptor, "rb") as file:
            found = os.fstat(descriptor)
            if not stat.S_ISREG(found.st_mode):
                raise OSError(errno.EINVAL, "it is no file any more", name)
            content = b"" if found.st_size > limit else file.read(limit + 1)
        if max(len(content), found.st_size) > limit:
            raise TooLargeError(f"{name} has more than {limit} bytes")
        return content

    def _remove(self) -> None:
        shutil.rmtree(self._directory, onerror=_retried)
        if self._directory.exists():
            _LOG.warning("files of a hook cannot be removed; remove them", directory=str(self._directory))


def _retried(_function: object, path: str, _error: object) -> None:
    """A hook may have closed a directory to its own user. Once more, then."""
    with contextlib.suppress(OSError):
        Path(path).parent.chmod(stat.S_IRWXU)
        Path(path).chmod(stat.S_IRWXU)
        if Path(path).is_dir():
            shutil.rmtree(path, ignore_errors=True)
        else:
            Path(path).unlink()
