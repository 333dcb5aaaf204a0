"""What a front has in hand at this moment: requests, reviews, bytes of their bodies."""

import asyncio


class Load:
    """Counts of one front. All are gauges; they return to zero when it is idle.

    ``requests`` are requests whose answer is not made yet, ``reviews`` those of them that are being judged,
    ``body_bytes`` the bytes of all their bodies that have arrived. ``idle`` is set while there are no requests.
    Whoever counts up counts down: the front requests and reviews, and the bodies that it was given.
    """

    __slots__ = ("body_bytes", "idle", "requests", "reviews")

    def __init__(self) -> None:
        self.requests = 0
        self.reviews = 0
        self.body_bytes = 0
        self.idle = asyncio.Event()
        self.idle.set()
