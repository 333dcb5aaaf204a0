"""HTTP requests of the parent to the admin listener of one process, over a socket pair that it passes on.

HTTP/1.0, one request for each connection: an answer, also one that never ends, is what follows the header.
"""

import asyncio
from collections.abc import AsyncGenerator, Mapping
from typing import Final

from msgspec import Struct

from gateway.serving.processes.member import Member

ANSWER_SECONDS: Final = 1.5
"""How long a process has to begin its answer: less than the 2 s of the chart's probes. A process whose loop stands
still for so long answers no review either."""

_CHUNK: Final = 65_536
_HEADER_BYTES: Final = 65_536


class Unanswered(Exception):  # noqa: N818 - an outcome
    """A process did not answer: its text is why."""


class Reply(Struct, eq=False):
    """An answer. ``headers`` have names in lower case; ``chunks`` is its body, to be read once, within
    ``seconds``.
    """

    status: int
    headers: Mapping[str, str]
    chunks: AsyncGenerator[bytes, None]
    seconds: float

    async def close(self) -> None:
        """Read no more."""
        await self.chunks.aclose()

    async def body(self) -> bytes:
        """The whole body. Raises Unanswered."""
        try:
            async with asyncio.timeout(self.seconds):
                return b"".join([chunk async for chunk in self.chunks])
        except (TimeoutError, OSError) as error:
            raise Unanswered(f"its answer broke off: {str(error) or type(error).__name__}") from None


async def request(
    member: Member,
    method: str,
    target: str,
    headers: Mapping[str, str] | None = None,
    *,
    seconds: float = ANSWER_SECONDS,
) -> Reply:
    """Send a request. The caller reads the body, or closes the reply.

    Raises:
        Unanswered: the process is gone, or does not answer in time.
    """
    writer: asyncio.StreamWriter | None = None
    try:
        async with asyncio.timeout(seconds):
            reader, writer = await asyncio.open_connection(sock=member.connect(), limit=_HEADER_BYTES)
            fields = "".join(f"{name}: {value}\r\n" for name, value in (headers or {}).items())
            writer.write(f"{method} {target} HTTP/1.0\r\n{fields}\r\n".encode("latin-1"))
            head = await reader.readuntil(b"\r\n\r\n")
        first, *lines = head.decode("latin-1").split("\r\n")
        named = (line.partition(":") for line in lines if line)
        return Reply(
            int(first.split()[1]),
            {name.strip().lower(): value.strip() for name, _, value in named},
            _chunks(reader, writer),
            seconds,
        )
    except TimeoutError:
        why = f"no answer within {seconds:g} s"
    except (OSError, EOFError, asyncio.LimitOverrunError, ValueError, IndexError) as error:
        why = str(error) or type(error).__name__
    if writer is not None:
        writer.close()
    raise Unanswered(why)


async def _chunks(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> AsyncGenerator[bytes, None]:
    try:
        while chunk := await reader.read(_CHUNK):
            yield chunk
    finally:
        writer.close()
