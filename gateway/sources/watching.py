"""Has a source changed since it was read? By looking again and again, at nothing but names, links and times.

Looking, and not the kernel's notifications: a mounted ConfigMap is swapped by the rename of a link two links away from
the files, network file systems notify nobody, and a second is soon enough.

A change is taken up when two looks in a row find the same: whoever writes into a file instead of putting a new one in
its place is still writing at the first, and half a file may well be a whole configuration. (For the same reason equal
states are equal texts: what was read has rested since the look before, so a later write has a later time.)
"""

from collections.abc import Sequence
from pathlib import Path

from gateway.policies import SourceText
from gateway.sources.files import State, look, read_at_once


class Source:
    """Files and directories that are read more than once. It blocks, as files do: not for the loop.

    Args:
        paths: as for ``read``.
    """

    def __init__(self, paths: Sequence[Path]) -> None:
        self.paths = tuple(paths)
        self._read: State | None = None
        self._seen: State | None = None

    def read(self) -> tuple[SourceText, ...]:
        """The texts of all files, as they are now.

        Raises:
            SourceError: as for ``read``. It is not tried again before something has changed.
        """
        self._read = look(self.paths)
        try:
            texts, self._read = read_at_once(self.paths)
        finally:
            self._seen = self._read
        return texts

    def changed(self) -> bool:
        """Whether the files are others than those that were read, and rest: one look."""
        seen, self._seen = self._seen, look(self.paths)
        return self._seen == seen and self._seen != self._read
