"""What each message of a queue is bound to (``gateway.redis.sealing`` says how).

==========  ======================================  =====================  ===================
purpose     place                                   authenticated beside   who seals
==========  ======================================  =====================  ===================
call         stream, lane, the gateway that calls     id, deadline           a gateway
replies     stream, the gateway that called                                 bridges
presence    stream, the consumer's name                                    a bridge
==========  ======================================  =====================  ===================

So a message opens at its own place only. What is authentic and is shown again there is a call to which there may be two
answers, an answer to a question that is no longer open, or a presence that is out of date; the readers judge that by
the moments in them.
"""

from collections.abc import Callable
from pathlib import Path
from time import time

from gateway.redis.sealing import Context, SealKeys


class QueueSeals(SealKeys):
    """Seals and opens what stands in one queue. Who seals without a key gets a ValueError, as ``SealKeys.seal`` says.

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
        """Seal a Request.

        Args:
            lane: by which it goes.
            gateway: who calls.
            identity: its id and deadline.
            content: the Request.
        """
        last = self._last
        if last[0] != lane or last[1] != gateway:
            # A gateway seals thousands of calls in a row for one place.
            last = self._last = lane, gateway, self._place(lane, gateway)
        return self.seal(Context(b"queue ask", last[2], _beside(*identity)), content)

    def open_call(self, lane: str, gateway: str, identity: tuple[bytes, int], sealed: bytes) -> bytes | None:
        """A Request; None if it is not what was sealed for just this."""
        return self.open(Context(b"queue ask", self._place(lane, gateway), _beside(*identity)), sealed)

    def seal_replies(self, gateway: str, content: bytes) -> bytes:
        """Seal Replies to a gateway."""
        return self.seal(Context(b"queue replies", self._place(gateway)), content)

    def open_replies(self, gateway: str, sealed: bytes) -> bytes | None:
        """Replies; None if it is not what was sealed for this gateway."""
        return self.open(Context(b"queue replies", self._place(gateway)), sealed)

    def seal_presence(self, consumer: str, content: bytes) -> bytes:
        """Seal the Presence of a consumer."""
        return self.seal(Context(b"queue presence", self._place(consumer)), content)

    def open_presence(self, consumer: str, sealed: bytes) -> bytes | None:
        """A Presence; None if it is not what was sealed under this name."""
        return self.open(Context(b"queue presence", self._place(consumer)), sealed)

    def _place(self, *names: str) -> bytes:
        """Unambiguous: none of the names has a NUL."""
        return b"\0".join((self._stream, *(name.encode(errors="backslashreplace") for name in names)))


def _beside(number: bytes, deadline: int) -> bytes:
    return deadline.to_bytes(8, "big", signed=True) + number
