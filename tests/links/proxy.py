"""A TCP proxy on one link, whose fault is switched while connections are open.

==========  ==================================================  ================================================
fault       an established connection                           a new connection
==========  ==================================================  ================================================
latency     every chunk waits, in both directions               the same
jitter      every chunk waits for a random time                 the same
blackhole   all bytes are held, and so is its end               is accepted, and never answered
silence     is reset                                            is accepted, and never answered
reset       is reset by the next chunk                          the same
half close  passes its client's next chunk, and ends both ways  the same
drip        passes a byte at a time                             the same
corrupt     one bit of every chunk is flipped                   the same
garbage     is reset                                            both sides get bytes of no protocol, or TLS records
                                                                without sense, in turn
refused     is reset                                            is refused
==========  ==================================================  ================================================

Bytes that a blackhole holds pass when it is lifted, as TCP would transmit them again.
"""

import asyncio
import contextlib
import itertools
import random
import socket
import struct

from gateway.enums import StrEnum

_CHUNK = 65_536
_LATENCY_SECONDS = 0.03
_JITTER_SECONDS = 0.06
_DRIP_SECONDS = 0.05
_NOISE = bytes(random.Random(17).choices(range(256), k=200))
_RECORD = b"\x03\x03" + len(_NOISE).to_bytes(2) + _NOISE
_GARBAGE = _NOISE, b"\x16" + _RECORD, b"\x17" + _RECORD, b"\x15" + _RECORD
"""Noise; and in TLS records (RFC 8446, 5.1) of a handshake, of data, and of an alert."""

_AT_ONCE = struct.pack("ii", 1, 0)
"""SO_LINGER: closing sends RST."""


class Fault(StrEnum):
    """What happens to a link; see the module."""

    NONE = "none"
    LATENCY = "latency"
    JITTER = "jitter"
    BLACKHOLE = "blackhole"
    SILENCE = "silence"
    RESET = "reset"
    HALF_CLOSE = "half close"
    DRIP = "drip"
    CORRUPT = "corrupt"
    GARBAGE = "garbage"
    REFUSED = "refused"


FAULTS = tuple(fault for fault in Fault if fault is not Fault.NONE)

_ENDS_ALL = frozenset({Fault.SILENCE, Fault.GARBAGE, Fault.REFUSED})
"""Faults of new connections: there must be no others."""


class FaultProxy:
    """``async with FaultProxy(host, port) as proxy``: it listens on ``proxy.port``, always the same.

    ``fault`` is the present one; ``switch`` changes it.
    """

    def __init__(self, host, port):
        self.port = 0
        self.fault = Fault.NONE
        self._to = host, port
        self._connections = set()
        self._switched = asyncio.Event()
        self._random = random.Random(17)
        self._garbage = itertools.cycle(_GARBAGE)
        self._server = None

    async def __aenter__(self):
        await self._listen()
        return self

    async def __aexit__(self, *exc_info):
        await self.switch(Fault.REFUSED)
        await asyncio.gather(*(each.task for each in self._connections), return_exceptions=True)

    async def switch(self, fault):
        """Change the fault of all connections, established and new."""
        before, self.fault = self.fault, fault
        self._switched.set()
        self._switched = asyncio.Event()
        if fault is Fault.REFUSED and self._server is not None:
            self._server.close()
            self._server = None
        elif fault is not Fault.REFUSED and self._server is None:
            await self._listen()
        for each in tuple(self._connections):
            if fault in _ENDS_ALL or each.is_lost or before is Fault.GARBAGE:
                each.reset()

    async def _listen(self):
        self._server = await asyncio.start_server(self._connected, "127.0.0.1", self.port)
        self.port = self._server.sockets[0].getsockname()[1]

    def _connected(self, reader, writer):
        connection = _Connection(reader, writer)
        self._connections.add(connection)
        connection.task = asyncio.create_task(self._serve(connection))

    async def _serve(self, connection):
        try:
            with contextlib.suppress(OSError):
                await self._answered(connection)
                reader, writer = await connection.dial(self._to)
                await asyncio.gather(
                    self._pump(connection, connection.reader, writer, is_answer=False),
                    self._pump(connection, reader, connection.writer, is_answer=True),
                )
        finally:
            await connection.closed()
            self._connections.discard(connection)

    async def _answered(self, connection):
        """Wait while new connections are not answered."""
        if self.fault is Fault.GARBAGE:
            garbage = next(self._garbage)
            reader, writer = await connection.dial(self._to)
            for each in (connection.writer, writer):
                each.write(garbage)
            await asyncio.gather(_ended(connection.reader), _ended(reader))
            raise ConnectionResetError
        while self.fault in {Fault.SILENCE, Fault.BLACKHOLE}:
            await self._switched.wait()

    async def _pump(self, connection, reader, writer, *, is_answer):
        """Pass on what one side sends to the other, its end included."""
        while data := await reader.read(_CHUNK):
            if connection.is_lost:
                continue
            if self.fault is Fault.RESET:
                connection.reset()
                raise ConnectionResetError
            if self.fault is Fault.HALF_CLOSE and not is_answer:
                connection.is_lost = True
                writer.write(data)
                writer.write_eof()
                connection.writer.write_eof()
                continue
            async for part in self._delayed(data):
                writer.write(part)
                await writer.drain()
        while self.fault is Fault.BLACKHOLE:
            await self._switched.wait()
        if not connection.is_lost and not writer.transport.is_closing():
            writer.write_eof()

    async def _delayed(self, data):
        """The parts of a chunk, each when it is due."""
        if self.fault is Fault.LATENCY:
            await self._wait(_LATENCY_SECONDS)
        elif self.fault is Fault.JITTER:
            await self._wait(self._random.uniform(0, _JITTER_SECONDS))
        elif self.fault is Fault.CORRUPT:
            data = self._corrupted(data)
        sent = 0
        while self.fault is Fault.DRIP and sent < len(data):
            yield data[sent : sent + 1]
            sent += 1
            await self._wait(_DRIP_SECONDS)
        while self.fault is Fault.BLACKHOLE:
            await self._switched.wait()
        if sent < len(data):
            yield data[sent:]

    async def _wait(self, seconds):
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._switched.wait(), seconds)

    def _corrupted(self, data):
        flipped = bytearray(data)
        flipped[self._random.randrange(len(data))] ^= 1 << self._random.randrange(8)
        return bytes(flipped)


async def _ended(reader):
    while await reader.read(_CHUNK):
        pass


class _Connection:
    """A client's connection, and the one that was made for it. ``is_lost``: no byte passes any more."""

    def __init__(self, reader, writer):
        self.reader, self.writer = reader, writer
        self.is_lost = False
        self.task = None
        self._writers = [writer]

    async def dial(self, to):
        reader, writer = await asyncio.open_connection(*to)
        self._writers.append(writer)
        return reader, writer

    async def closed(self):
        """Close both sides, before the loop ends."""
        self.reset()
        for writer in self._writers:
            with contextlib.suppress(OSError):
                await writer.wait_closed()

    def reset(self):
        """Close both sides at once: each gets RST."""
        for writer in self._writers:
            if not writer.transport.is_closing():
                writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _AT_ONCE)
                writer.transport.abort()
