"""Deadlines that pass after something has happened, however slow the machine is."""

from collections.abc import Iterator

LONGEST = 64.0
"""Seconds: in this time a process starts on any machine."""


def longer_and_longer(first: float) -> Iterator[float]:
    """Seconds for a deadline, twice as many each time: a test tries again until what must come before it has come."""
    seconds = first
    while seconds <= LONGEST:
        yield seconds
        seconds *= 2
    raise AssertionError(f"nothing has happened within {LONGEST:g} seconds")
