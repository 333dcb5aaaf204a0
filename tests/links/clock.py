"""A process whose clock jumps: libfaketime before its other libraries, and a file with the offset."""

from pathlib import Path

LIBRARIES = tuple(Path("/usr/lib").glob("*/faketime/libfaketimeMT.so.1"))
"""Where Debian's package faketime has it."""


class Clock:
    """The clock of a process that starts with ``env``: the wall clock only, or the monotonic one too."""

    def __init__(self, folder, *, monotonic):
        self.is_monotonic = monotonic
        self._file = folder / "offset"
        self.jump(0)
        self.env = {
            "LD_PRELOAD": str(LIBRARIES[0]),
            "FAKETIME_TIMESTAMP_FILE": str(self._file),
            "FAKETIME_NO_CACHE": "1",
            "FAKETIME_FORCE_MONOTONIC_FIX": "1",
            "FAKETIME_DONT_FAKE_MONOTONIC": "0" if monotonic else "1",
        }

    def jump(self, seconds):
        """From now on, it is so many seconds ahead of this machine's clock; negative: behind it."""
        self.offset = seconds
        made = self._file.with_suffix(".new")
        made.write_text(f"{seconds:+d}\n")
        made.replace(self._file)
