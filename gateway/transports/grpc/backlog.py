"""How much is held for one worker, bounded in bytes over all its connections.

What waits to be written to a stream is: a worker that does not read is not written to for long, gRPC stops at its
window, and what comes after waits here. So is the document of each call of its own, until it is answered: gRPC holds
it, and does not tell how much of it the worker has read.
"""


class Backlog:
    """Counts it.

    Args:
        limit: in bytes.
    """

    __slots__ = ("bytes", "limit")

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.bytes = 0

    def has_room(self, size: int) -> bool:
        """Whether so much more may wait. One document always may, whatever its size."""
        return not self.bytes or self.bytes + size <= self.limit
