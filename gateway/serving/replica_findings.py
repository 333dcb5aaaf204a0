"""Explanations through Redis: what other replicas find.

    query   an entry of one stream, which all replicas read; sealed, with a random id and the time
    reply   an entry of a stream that is the query's own, and expires after some seconds; sealed for this stream

No review pays or waits for it. Each replica has one blocking read, on a link of its own (``gateway.redis.link``); while
Redis is away, an explanation says that other replicas were not reached. Who can write to Redis forges nothing: a query
that was not sealed with one of the gateway's keys, is old, or was answered already is ignored; a reply opens only for
the stream of its query. Queries are answered at most ``QUERIES`` times a second.
"""

import asyncio
import secrets
from collections import deque
from collections.abc import Callable, Iterable
from time import monotonic, time
from typing import Any, Final

import msgspec
import structlog
from msgspec import Struct

from gateway.redis.addresses import RedisAddress
from gateway.redis.faults import reason_of
from gateway.redis.link import Link
from gateway.redis.sealing import Context, SealKeys
from gateway.redis.slot_clients import home_client
from gateway.serving.explain import OtherFindings
from gateway.telemetry.decision_document import API_VERSION
from gateway.telemetry.findings import Findings, Query

_LOG: Final = structlog.get_logger(__name__)

_PREFIX: Final = "admission-gateway:v1:{explain}:"
STREAM: Final = f"{_PREFIX}queries"
"""Of the queries. Both kinds of names have one hash tag, so that one server of a cluster holds them."""

REPLY_SECONDS: Final = 1.0
"""How long replies are waited for: a replica answers within milliseconds, unless it judges a very large review."""

BLOCK_SECONDS: Final = 5.0
"""How long a read of queries blocks. An answer at least this often shows that the connection is alive."""

ANSWER_SECONDS: Final = 1.0
"""After how long a Redis that does not answer counts as away."""

QUERY_SECONDS: Final = 10.0
"""The age of a query that is still answered: its second, a reconnection, and 5 s of difference between clocks."""

QUERIES: Final = 20
"""Queries that a replica answers in a second, 2 to 10 ms each. Ids of answered ones are remembered for
``QUERY_SECONDS``."""

REPLY_BYTES: Final = 3_000_000
"""The largest reply: eight decisions of 256 KB and twenty related ones of 50 KB. A larger one has the last only."""

REPLIES: Final = 100
"""Replies that are read: one of each replica."""

_CONNECTIONS: Final = 8
"""One for the blocking read, others for the explanations at once and for replies."""

_FIELD: Final = b"m"


class _Message(Struct, frozen=True, kw_only=True):
    """A query in Redis: a random id, the Unix time, and what is looked for."""

    id: str
    at: float
    query: Query


class ReplicaFindings:
    """Finds what other replicas retain, and answers their queries.

    Args:
        address: of Redis.
        seals: the keys; ``refresh`` them when their file may have changed.
        is_shared: whether other replicas have these keys.
        find: what this process finds.
    """

    def __init__(
        self, address: RedisAddress, seals: SealKeys, *, is_shared: bool, find: Callable[[Query], Findings]
    ) -> None:
        self._address = address
        self._seals = seals
        self._is_shared = is_shared
        self._find = find
        self._client: Any | None = None
        self._read_to = b"0-0"
        self._answered: deque[tuple[float, str]] = deque(maxlen=int(QUERIES * QUERY_SECONDS))
        self._link: Link[Any] = Link(
            connect=self._connect,
            opened=self._opened,
            work=self._answer_queries,
            lost=lambda _error, _was_up: None,
            seconds=ANSWER_SECONDS,
        )

    def start(self) -> None:
        """Connect, in the background."""
        self._link.start()

    async def close(self) -> None:
        """End all connections."""
        await self._link.close()

    @property
    def is_up(self) -> bool:
        """Whether queries are read, and can be sent."""
        return self._client is not None

    # ------------------------------------------------------------------------------------------------ queries

    async def find_elsewhere(self, query: Query) -> OtherFindings:
        """What the other replicas find within ``REPLY_SECONDS``. It raises nothing."""
        if not self._is_shared:
            return OtherFindings(why="without --seal-key-file, gateways cannot read each other's messages in Redis")
        client = self._client
        if client is None:
            why = f": {self._link.why}" if self._link.why else ""
            return OtherFindings(why=f"Redis cannot be used, so other replicas were not reached{why}")
        message = _Message(id=secrets.token_hex(16), at=time(), query=query)
        # Its own query comes back to this replica, too.
        self._answered.append((monotonic(), message.id))
        found: list[Findings] = []
        try:
            with self._link.using(client):
                async with asyncio.timeout(REPLY_SECONDS + ANSWER_SECONDS):
                    await self._send(client, STREAM, msgspec.json.encode(message), seconds=60, entries=QUERIES * 10)
                    await self._read_replies(client, _reply_name(message.id), found)
        except Exception as error:  # noqa: BLE001 - whatever Redis does, there is an explanation
            return OtherFindings(findings=found, why=f"Redis did not answer: {reason_of(error)}")
        return OtherFindings(findings=found)

    async def _read_replies(self, client: Any, name: str, found: list[Findings]) -> None:
        ends, read_to = monotonic() + REPLY_SECONDS, b"0-0"
        while (left := ends - monotonic()) > 0 and len(found) < REPLIES:
            command = ("XREAD", "COUNT", 1, "BLOCK", max(int(left * 1000), 1), "STREAMS", name, read_to)
            for entry, content in _entries(await client.execute_command(*command)):
                read_to = entry
                findings = self._opened_reply(name, content)
                if findings is not None:
                    found.append(findings)
        await client.execute_command("UNLINK", name)

    def _opened_reply(self, name: str, sealed: bytes) -> Findings | None:
        content = self._open(name, sealed)
        try:
            findings = None if content is None else msgspec.json.decode(content, type=Findings)
        except msgspec.MsgspecError:
            findings = None
        if findings is None or any(
            each.get("apiVersion") != API_VERSION for each in (*findings.decisions, *findings.related)
        ):
            _LOG.warning("a reply of another replica cannot be read", bytes=len(sealed))
            return None
        return findings

    # ------------------------------------------------------------------------------------------------ answers

    async def _connect(self) -> Any:
        return await home_client(self._address, STREAM, seconds=ANSWER_SECONDS, connections=_CONNECTIONS)

    async def _opened(self, client: Any) -> Any:
        """Queries from before the connection are not answered."""
        async with asyncio.timeout(ANSWER_SECONDS):
            last = await client.execute_command("XREVRANGE", STREAM, "+", "-", "COUNT", 1)
        self._read_to = last[0][0] if last else b"0-0"
        return client

    async def _answer_queries(self, client: Any) -> None:
        self._client = client
        try:
            block = int(BLOCK_SECONDS * 1000)
            while True:
                command = ("XREAD", "COUNT", QUERIES, "BLOCK", block, "STREAMS", STREAM, self._read_to)
                async with asyncio.timeout(BLOCK_SECONDS + ANSWER_SECONDS):
                    answer = await client.execute_command(*command)
                for entry, content in _entries(answer):
                    self._read_to = entry
                    await self._answer(client, content)
        finally:
            self._client = None

    async def _answer(self, client: Any, sealed: bytes) -> None:
        message = self._accepted(sealed)
        if message is None:
            return
        findings = self._find(message.query)
        content = msgspec.json.encode(findings)
        if len(content) > REPLY_BYTES:
            content = msgspec.json.encode(
                msgspec.structs.replace(findings, decisions=findings.decisions[-1:], related=[])
            )
        async with asyncio.timeout(ANSWER_SECONDS):
            await self._send(client, _reply_name(message.id), content, seconds=QUERY_SECONDS, entries=REPLIES)

    def _accepted(self, sealed: bytes) -> _Message | None:
        """The query to answer; None: it is not another replica's, or there are too many."""
        content = self._open(STREAM, sealed)
        if content is None:
            return None
        try:
            message = msgspec.json.decode(content, type=_Message)
        except msgspec.MsgspecError:
            return None
        now = monotonic()
        recent = sum(now - at < 1.0 for at, _ in self._answered)
        is_known = any(message.id == known for _, known in self._answered)
        if is_known or recent >= QUERIES or abs(time() - message.at) > QUERY_SECONDS:
            return None
        self._answered.append((now, message.id))
        return message

    # ---------------------------------------------------------------------------------------------- messages

    async def _send(self, client: Any, name: str, content: bytes, *, seconds: float, entries: int) -> None:
        sealed = self._seals.seal(Context(b"explain", name.encode()), content)
        await client.execute_command("XADD", name, "MAXLEN", "~", entries, "*", _FIELD, sealed)
        await client.execute_command("PEXPIRE", name, int(seconds * 1000))

    def _open(self, name: str, sealed: bytes) -> bytes | None:
        return self._seals.open(Context(b"explain", name.encode()), sealed)


def _reply_name(query: str) -> str:
    return f"{_PREFIX}reply:{query}"


def _entries(answer: Any) -> Iterable[tuple[bytes, bytes]]:
    """Id and content of each entry that XREAD returned."""
    for _, entries in answer or ():
        for entry, fields in entries:
            yield entry, fields[1] if fields[:1] == [_FIELD] and len(fields) > 1 else b""
