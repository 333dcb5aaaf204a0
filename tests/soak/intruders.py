"""Clients that do what none should, at a gateway's address: each is one coroutine, which ends by itself."""

import asyncio
import contextlib
import json
import ssl
from collections import Counter
from itertools import cycle

from tests.integration.client import post
from tests.traffic import recording

_SECONDS = 10
_BIG_BYTES = 1_000_000


class Intruders:
    """They come to one gateway, one after another.

    ``address``: where it listens; ``ca``: its CA; ``token``: of its admin listener.
    ``done``: how many of each kind came.
    """

    def __init__(self, address, *, ca, token):
        self.done = Counter()
        self._address = address
        self._token = token
        self._tls = ssl.create_default_context(cafile=str(ca))
        self._tls.check_hostname = False
        self._leaving = (
            self.leaves_before_the_handshake,
            self.speaks_no_tls,
            self.sends_half_a_header,
            self.sends_half_a_body,
            self.leaves_during_a_review,
            self.scrapes_and_leaves,
        )
        self._answered = (
            self.sends_no_json,
            self.sends_a_big_object,
            self.asks_for_an_unknown_review,
            self.opens_the_dashboard_and_leaves,
        )

    async def come(self, pause):
        """One after another, until cancelled. Raises if one that waits for its answer has another one, or none."""
        for kind in cycle((*self._leaving, *self._answered)):
            async with asyncio.timeout(_SECONDS):
                with contextlib.suppress(*((ConnectionError, ssl.SSLError) if kind in self._leaving else ())):
                    await kind()
            self.done[kind.__name__] += 1
            await asyncio.sleep(pause)

    async def leaves_before_the_handshake(self):
        _, writer = await asyncio.open_connection(self._address, 8443)
        await _close(writer)

    async def speaks_no_tls(self):
        reader, writer = await asyncio.open_connection(self._address, 8443)
        writer.write(b"GET / HTTP/1.1\r\n\r\n")
        await reader.read()
        await _close(writer)

    async def sends_half_a_header(self):
        _, writer = await self._connected()
        writer.write(b"POST /mutate HTTP/1.1\r\nHost: a\r\nX-Long: " + b"x" * 4000)
        await writer.drain()
        await _close(writer)

    async def sends_half_a_body(self):
        _, writer = await self._connected()
        sent = post(_body())
        writer.write(sent[: len(sent) - 100])
        await writer.drain()
        await _close(writer)

    async def leaves_during_a_review(self):
        _, writer = await self._connected()
        writer.write(post(_body()))
        await writer.drain()
        await _close(writer)

    async def sends_no_json(self):
        status, _ = await self._answer(post(b"{" * 1000))
        assert status == 400, status

    async def sends_a_big_object(self):
        review = json.loads(_body())
        review["request"]["object"]["metadata"].setdefault("annotations", {})["big"] = "x" * _BIG_BYTES
        status, body = await self._answer(post(json.dumps(review).encode()))
        assert status == 200, status
        assert json.loads(body)["response"]["uid"] == review["request"]["uid"]

    async def asks_for_an_unknown_review(self):
        assert await self._admin("/explain/00000000-0000-0000-0000-000000000000") == 404

    async def scrapes_and_leaves(self):
        _, writer = await asyncio.open_connection(self._address, 9443)
        writer.write(b"GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n")
        await writer.drain()
        await _close(writer)

    async def opens_the_dashboard_and_leaves(self):
        assert await self._admin("/ui/api/live") == 200

    async def _connected(self):
        return await asyncio.open_connection(self._address, 8443, ssl=self._tls)

    async def _answer(self, message):
        reader, writer = await self._connected()
        writer.write(message)
        head = await reader.readuntil(b"\r\n\r\n")
        length = int(head.lower().partition(b"content-length:")[2].partition(b"\r\n")[0])
        body = await reader.readexactly(length)
        await _close(writer)
        return int(head.split()[1]), body

    async def _admin(self, path):
        """The status of a page, whose body is not read."""
        reader, writer = await asyncio.open_connection(self._address, 9443)
        writer.write(f"GET {path} HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer {self._token}\r\n\r\n".encode())
        status = int((await reader.readline()).split()[1])
        await _close(writer)
        return status


def _body():
    return recording("pod-create.0m").body


async def _close(writer):
    writer.close()
    with contextlib.suppress(ConnectionError, ssl.SSLError):
        await writer.wait_closed()
