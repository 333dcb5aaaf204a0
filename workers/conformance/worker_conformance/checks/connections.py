"""``connections.*``: many connections, reconnects, idle connections, and bytes that are not gRPC."""

import asyncio
import struct
from collections.abc import Sequence
from contextlib import suppress

from worker_conformance.check import Section, proto, readme
from worker_conformance.findings import BrokenRuleError, expect, shown
from worker_conformance.subject import Subject

section = Section("connections")

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
"""What an HTTP/2 client begins with (RFC 9113, section 3.4)."""

HEADER = struct.Struct(">BHBBI")
"""A frame's header (section 4.1): 24 bits of length, type, flags, stream."""

SETTINGS, PING, GOAWAY = 4, 6, 7
ACK = 1


def _frame(kind: int, payload: bytes = b"", flags: int = 0) -> bytes:
    return HEADER.pack(0, len(payload), kind, flags, 0) + payload


@section.check(
    "many", "The worker serves 50 concurrent connections.", proto("so any replica of the worker can answer it")
)
async def many(worker: Subject) -> None:
    """From as many gateways."""

    async def described() -> None:
        async with worker.connected() as client:
            found = await client.describe()
            expect(found == worker.description, "the worker's description", shown(found))

    await asyncio.gather(*(described() for _ in range(50)))


@section.check(
    "reconnect", "After a reconnect the worker answers as before.", proto("After a reconnect it starts at 1 again")
)
async def reconnect(worker: Subject) -> None:
    """Ten times, each with a stream left open."""
    for _ in range(10):
        async with worker.connected() as client:
            found = await client.describe()
            expect(found == worker.description, "the worker's description", shown(found))
            if worker.has_stream:
                client.stream()
            ordinary = worker.some_calls(1)[0]
            expect((await client.review(ordinary.call())).WhichOneof("verdict"), "an outcome", "none")


GARBAGE = (
    b"\x00" * 64,
    bytes(range(256)) * 16,
    b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n",
    b"POST /admission.worker.v1.Worker/Describe HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n",
    b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"\x42" * 100,
    PREFACE[:10],
    PREFACE + b"\xff" * 64,
    PREFACE + _frame(SETTINGS) + _frame(PING, b"short"),
    b"",
)
"""Noise, HTTP/1.1, a TLS ClientHello, half a preface, broken frames, and no bytes at all."""


@section.check(
    "garbage",
    "Garbage, HTTP/1.1, unexpected TLS and broken frames end only their own connection.",
    readme("any gRPC server that implements it is a worker"),
)
async def garbage(worker: Subject) -> None:
    """Another connection stays open."""
    async with worker.connected() as beside:
        await beside.describe()
        for noise in GARBAGE * 3:
            _, writer = await worker.target.socket(plain=True)
            with suppress(OSError):
                writer.write(noise)
                await writer.drain()
            await _closed([writer])
        found = await beside.describe()
        expect(found == worker.description, "a description on the other connection", shown(found))
    await worker.still_answers("garbage on its port")


@section.check(
    "silent",
    "While 200 connections send no bytes, the worker accepts new connections.",
    readme("any gRPC server that implements it is a worker"),
)
async def silent(worker: Subject) -> None:
    """They stay open meanwhile."""
    tried = await asyncio.gather(*(worker.target.socket(plain=True) for _ in range(200)), return_exceptions=True)
    writers = [one[1] for one in tried if isinstance(one, tuple)]
    try:
        expect(len(writers) == len(tried), "200 connections", f"{len(writers)} were accepted")
        await worker.still_answers("200 silent connections were opened")
    finally:
        await _closed(writers)


async def _closed(writers: Sequence[asyncio.StreamWriter]) -> None:
    """Close them, whatever the worker does then."""
    for writer in writers:
        writer.close()
    await asyncio.gather(*(writer.wait_closed() for writer in writers), return_exceptions=True)


PINGS = 4
PING_SECONDS = 5.05
"""gRPC servers count pings that come too early, and end the connection at the third ("too_many_pings"). They do not
count the first. A little more than 5 s, because clocks and networks are not exact."""


@section.check(
    "keepalive",
    "The worker answers a ping every 5 s on a connection without calls.",
    readme("accepts a ping every 5 s, with and without open calls"),
    seconds=PINGS * PING_SECONDS,
)
async def keepalive(worker: Subject) -> None:
    """With raw frames, because gRPC's clients ping less often after GOAWAY too_many_pings."""
    reader, writer = await worker.target.socket()
    try:
        writer.write(PREFACE + _frame(SETTINGS))
        for number in range(PINGS):
            if number:
                await asyncio.sleep(PING_SECONDS)  # the interval is what is checked
            payload = struct.pack(">Q", number)
            await _exchanged(reader, writer, _frame(PING, payload), (PING, payload), worker.patience)
        # Some workers acknowledge the ping and then close the connection.
        await _exchanged(reader, writer, _frame(SETTINGS), (SETTINGS, b""), worker.patience)
    finally:
        await _closed([writer])


async def _exchanged(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, sent: bytes, wanted: tuple[int, bytes], patience: float
) -> None:
    """Send a frame, and wait for its acknowledgement."""
    expected = "an answer to each ping, and the connection open"
    try:
        writer.write(sent)
        await writer.drain()
        await asyncio.wait_for(_answered(reader, writer, wanted), patience)
    except TimeoutError:
        raise BrokenRuleError(expected, f"no answer within {patience:g} s") from None
    except (asyncio.IncompleteReadError, OSError):
        raise BrokenRuleError(expected, "the connection was closed") from None


async def _answered(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, wanted: tuple[int, bytes]) -> None:
    """Read frames until this one is acknowledged; acknowledge what the worker sends."""
    while True:
        high, low, kind, flags, _ = HEADER.unpack(await reader.readexactly(HEADER.size))
        payload = await reader.readexactly(high << 16 | low)
        if flags & ACK and (kind, payload) == wanted:
            return
        if kind == GOAWAY:
            why = payload[8:].decode(errors="replace")
            raise BrokenRuleError("an answer to each ping, and the connection open", f"GOAWAY {why!r}")
        if kind in {SETTINGS, PING} and not flags & ACK:
            writer.write(_frame(kind, payload if kind == PING else b"", ACK))
