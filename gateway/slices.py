"""Work in slices: a generator that yields between them, so that an event loop can serve others before it goes on.

Reading a review, applying a worker's change and deciding are pure: they know no loop. Where such work can take long, it
is a generator that yields nothing and returns its result:

* No slice takes longer than some 50 ms, whatever a client or a worker sent: this is counted in values, bytes or steps,
  never in time.
* Work that is light does not yield at all. So almost all reviews are decided in one piece.
* Who drives it decides what happens in between: the loop waits as long as it has worked, the engine lets its driver
  take the next event, a command line goes on at once.
* A generator that is closed has changed nothing that others see: a turn whose time is over ends as a failure, and the
  object is as it was before.
* A generator is driven by one place only, from its first slice to its last, and in one thread.
"""

from collections.abc import Generator
from typing import Final, TypeVar

SLOW_BYTES: Final = 1_048_576
"""Beyond this size each step of a message has an iteration of the event loop of its own: a worker's answer is received,
parsed and converted, and the response is encoded and written. Each of them copies it: 20 MB take some 15 to 40 ms."""

_T = TypeVar("_T")
"""What comes of the work."""


def finished(work: Generator[None, None, _T]) -> _T:
    """The result of the work, done without breaks: where there is no loop, or where it is known to be light."""
    while True:
        try:
            next(work)
        except StopIteration as end:
            result: _T = end.value
            return result
