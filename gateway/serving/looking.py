"""When to look at a file again: after an interval, or as soon as somebody asks for it."""

import asyncio


class Looking:
    """The pauses between the looks of one watcher."""

    def __init__(self) -> None:
        self._asked = asyncio.Event()

    def now(self) -> None:
        """Look at once."""
        self._asked.set()

    async def pause(self, interval: float) -> bool:
        """Wait until the next look; whether somebody has asked for it.

        Args:
            interval: seconds; 0: only when asked to.
        """
        try:
            await asyncio.wait_for(self._asked.wait(), interval or None)
        except TimeoutError:
            return False
        self._asked.clear()
        return True
