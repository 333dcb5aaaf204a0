"""How much waits to be written to one worker, bounded in bytes over all its connections.

A worker that does not read is not written to for long: gRPC stops at its window, and what comes after waits here.
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
