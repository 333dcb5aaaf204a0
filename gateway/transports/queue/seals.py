"""What each message of a queue is bound to (see ``gateway.redis.sealing``).

==========  ======================================  =====================  ===================
purpose     place                                   also authenticated     sealed by
==========  ======================================  =====================  ===================
call        stream, lane, the calling gateway       ID, deadline           a gateway
replies     stream, the calling gateway                                    bridges
presence    stream, the consumer's name                                    a bridge
==========  ======================================  =====================  ===================

So a message opens at its own place only. An attacker who replays it there causes a second reply to a call, a reply to a
call that is no longer open, or an outdated presence; the readers check the times in the messages.
"""

from collections.abc import Callable
from pathlib import Path
from time import time

from gateway.redis.sealing import Context, SealKeys


class QueueSeals(SealKeys):
    """Seals and opens the messages of one queue. Sealing without a key raises ValueError, as ``SealKeys.seal``.

    Args:
        stream: the queue's name.
        path: of the key file.
        now: seconds since 1970.
    """

    __slots__ = ("_last", "_stream")

    def __init__(self, stream: str, path: Path, now: Callable[[], float] = time) -> None:
        self._stream = stream.encode()
        self._last = ("", "", b"")
        super().__init__(path, "queue key file", now)

    def seal_call(self, lane: str, gateway: str, identity: tuple[bytes, int], content: bytes) -> bytes:
        """Seal a Request. (The purpose's name, "queue ask", is part of the format.)

        Args:
            lane: of the call.
            gateway: the calling gateway process.
            identity: the call's ID and deadline.
            content: the Request.
        """
        last = self._last
        if last[0] != lane or last[1] != gateway:
            # A gateway seals thousands of calls in a row for the same place.
            last = self._last = lane, gateway, self._place(lane, gateway)
        return self.seal(Context(b"queue ask", last[2], _identity(*identity)), content)

    def open_call(self, lane: str, gateway: str, identity: tuple[bytes, int], sealed: bytes) -> bytes | None:
        """A Request; None if it was not sealed for this place and identity."""
        return self.open(Context(b"queue ask", self._place(lane, gateway), _identity(*identity)), sealed)

    def seal_replies(self, gateway: str, content: bytes) -> bytes:
        """Seal Replies to a gateway."""
        return self.seal(Context(b"queue replies", self._place(gateway)), content)

    def open_replies(self, gateway: str, sealed: bytes) -> bytes | None:
        """Replies; None if they were not sealed for this gateway."""
        return self.open(Context(b"queue replies", self._place(gateway)), sealed)

    def seal_presence(self, consumer: str, content: bytes) -> bytes:
        """Seal the Presence of a consumer."""
        return self.seal(Context(b"queue presence", self._place(consumer)), content)

    def open_presence(self, consumer: str, sealed: bytes) -> bytes | None:
        """A Presence; None if it was not sealed for this consumer."""
        return self.open(Context(b"queue presence", self._place(consumer)), sealed)

    def _place(self, *names: str) -> bytes:
        """Unambiguous: names contain no NUL."""
        return b"\0".join((self._stream, *(name.encode(errors="backslashreplace") for name in names)))


def _identity(number: bytes, deadline: int) -> bytes:
    return deadline.to_bytes(8, "big", signed=True) + number
