"""What is measured of a process during the soak, and when a measure is flat.

A measure is flat if its middle value in the last part of the soak is at most a little above its middle value in the
part before: what fills up once, as caches and retained decisions, has done so by then.
"""

from dataclasses import dataclass
from pathlib import Path
from statistics import median

PARTS = 3
"""The first is for warming up; the second is compared with the last."""

GROWTH_SHARE = 0.05
"""Allocators return memory in jumps: a Python process at rest moves by 1 to 2 %. In ten minutes a leak of 400 bytes in
each of 60 reviews a second is 8 MB, of a gateway's 90 MB."""

GROWTH_DESCRIPTORS = 4
"""Connections come and go while one looks."""


@dataclass(frozen=True, kw_only=True)
class Measured:
    """A process at one time: resident bytes, open descriptors and threads."""

    memory: int
    descriptors: int
    threads: int


def measured(pid):
    """See Measured. Raises OSError if there is no such process."""
    folder = Path(f"/proc/{pid}")
    status = dict(line.split(":", 1) for line in (folder / "status").read_text().splitlines())
    return Measured(
        memory=int(status["VmRSS"].split()[0]) * 1024,
        descriptors=len(list((folder / "fd").iterdir())),
        threads=int(status["Threads"]),
    )


def findings(series):
    """What has grown, in words; empty if all is flat. At least two samples for each part."""
    size = len(series) // PARTS
    before, last = series[-2 * size : -size], series[-size:]
    found = []
    for name, share, more in (
        ("memory", GROWTH_SHARE, 0),
        ("descriptors", 0, GROWTH_DESCRIPTORS),
        ("threads", 0, 0),
    ):
        first, then = (median(getattr(each, name) for each in part) for part in (before, last))
        if then > first * (1 + share) + more:
            found.append(
                f"{name} grew from {first:,.0f} to {then:,.0f}, of which {first * (1 + share) + more:,.0f} is allowed"
            )
    return found
