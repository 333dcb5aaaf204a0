"""Explanations through Redis: what other replicas find.

    query   an entry of one stream, which all replicas read; sealed, with a random id and the time
    reply   an entry of a stream that is the query's own, and expires after some seconds; sealed for this stream
    member  an entry of one stream, from each process that answers queries, every few seconds; a last one when it ends

A query waits for the replies of all members, and at most ``REPLY_SECONDS``: who did not answer is in the explanation.
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
from gateway.telemetry.decision_document import API_VERSION, replica_name
from gateway.telemetry.findings import Findings, Query

_LOG: Final = structlog.get_logger(__name__)

_PREFIX: Final = "admission-gateway:v1:{explain}:"
STREAM: Final = f"{_PREFIX}queries"
"""Of the queries. All names have one hash tag, so that one server of a cluster holds them."""

MEMBERS: Final = f"{_PREFIX}members"
"""The stream of the members."""

REPLY_SECONDS: Final = 1.0
"""How long the replies of all members are waited for: each answers within milliseconds, unless it judges a very large
review."""

BLOCK_SECONDS: Final = 5.0
"""How long a read of queries blocks. An answer at least this often shows that the connection is alive."""

MEMBER_SECONDS: Final = 12.0
"""For how long after its last entry a process is a member: it makes one after each read that ends ``BLOCK_SECONDS`` or
more after the entry before, so within twice as long, and 2 s for a slow Redis. By the clock of Redis."""

MEMBER_ENTRIES: Final = 1_000
"""The newest entries that are read: those of 300 members, some 200 bytes each."""

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

_NAMED: Final = 5
"""Members without an answer that are named."""

_FIELD: Final = b"m"


class _Message(Struct, frozen=True, kw_only=True):
    """A query in Redis: a random id, the Unix time, and what is looked for."""

    id: str
    at: float
    query: Query


class _Member(Struct, frozen=True, kw_only=True):
    """A process that answers queries, the replica it is of, and whether it has ended."""

    process: str
    replica: str
    has_ended: bool = False


class ReplicaFindings:
    """Finds what other replicas retain, and answers their queries.

    Args:
        address: of Redis.
        seals: the keys; ``refresh`` them when their file may have changed.
        is_shared: whether other replicas have these keys.
        find: what this process finds.
        process: the random id of this process, which its findings have.
    """

    def __init__(
        self,
        address: RedisAddress,
        seals: SealKeys,
        *,
        is_shared: bool,
        find: Callable[[Query], Findings],
        process: str,
    ) -> None:
        self._address = address
        self._seals = seals
        self._is_shared = is_shared
        self._find = find
        self._member = _Member(process=process, replica=replica_name())
        self._announced = 0.0
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
        await self._link.close(self._leave)

    @property
    def is_up(self) -> bool:
        """Whether queries are read, and can be sent."""
        return self._client is not None

    # ------------------------------------------------------------------------------------------------ queries

    async def find_elsewhere(self, query: Query) -> OtherFindings:
        """What the other replicas find. It raises nothing.

        It waits for all members, at most ``REPLY_SECONDS``; but if the subject is not known yet, no longer than until
        the decision is found: the others are asked again then, with its subject.
        """
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
        silent: dict[str, str] = {}
        try:
            with self._link.using(client):
                async with asyncio.timeout(REPLY_SECONDS + ANSWER_SECONDS):
                    content = msgspec.json.encode(message)
                    entry = await self._send(client, STREAM, content, seconds=60, entries=QUERIES * 10)
                    silent |= await self._others(client, entry)
                    await self._read_replies(client, message, found, silent)
        except Exception as error:  # noqa: BLE001 - whatever Redis does, there is an explanation
            return OtherFindings(findings=found, why=f"Redis did not answer: {reason_of(error)}")
        return OtherFindings(findings=found, why=_silence(silent))

    async def _others(self, client: Any, entry: bytes) -> dict[str, str]:
        """The other members at the time of an entry: their replicas, by process."""
        first = max(int(entry.partition(b"-")[0]) - int(MEMBER_SECONDS * 1000), 0)
        command = ("XREVRANGE", MEMBERS, "+", first, "COUNT", MEMBER_ENTRIES)
        members: dict[str, _Member] = {}
        for _, content in _contents(await client.execute_command(*command)):
            member = self._opened_member(content)
            if member is not None:
                # The newest comes first.
                members.setdefault(member.process, member)
        members.pop(self._member.process, None)
        return {each.process: each.replica for each in members.values() if not each.has_ended}

    def _opened_member(self, sealed: bytes) -> _Member | None:
        content = self._open(MEMBERS, sealed)
        try:
            return None if content is None else msgspec.json.decode(content, type=_Member)
        except msgspec.MsgspecError:
            return None

    async def _read_replies(
        self, client: Any, message: _Message, found: list[Findings], silent: dict[str, str]
    ) -> None:
        name = _reply_name(message.id)
        ends, read_to = monotonic() + REPLY_SECONDS, b"0-0"
        while silent and (left := ends - monotonic()) > 0 and len(found) < REPLIES:
            command = ("XREAD", "COUNT", 1, "BLOCK", max(int(left * 1000), 1), "STREAMS", name, read_to)
            for entry, content in _entries(await client.execute_command(*command)):
                read_to = entry
                findings = self._opened_reply(name, content)
                if findings is not None:
                    found.append(findings)
                    silent.pop(findings.process, None)
                    if findings.decisions and message.query.subject is None:
                        silent.clear()
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
        await self._announce(client)
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
                if monotonic() - self._announced >= BLOCK_SECONDS:
                    await self._announce(client)
        finally:
            self._client = None

    async def _announce(self, client: Any, *, has_ended: bool = False) -> None:
        if not self._is_shared:
            return
        self._announced = monotonic()
        content = msgspec.json.encode(msgspec.structs.replace(self._member, has_ended=has_ended))
        async with asyncio.timeout(ANSWER_SECONDS):
            await self._send(client, MEMBERS, content, seconds=60, entries=MEMBER_ENTRIES)

    async def _leave(self, client: Any) -> None:
        await self._announce(client, has_ended=True)

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

    async def _send(self, client: Any, name: str, content: bytes, *, seconds: float, entries: int) -> bytes:
        """The entry's id: the time of Redis, in milliseconds, and a number."""
        sealed = self._seals.seal(Context(b"explain", name.encode()), content)
        entry: bytes = await client.execute_command("XADD", name, "MAXLEN", "~", entries, "*", _FIELD, sealed)
        await client.execute_command("PEXPIRE", name, int(seconds * 1000))
        return entry

    def _open(self, name: str, sealed: bytes) -> bytes | None:
        return self._seals.open(Context(b"explain", name.encode()), sealed)


def _reply_name(query: str) -> str:
    return f"{_PREFIX}reply:{query}"


def _entries(answer: Any) -> Iterable[tuple[bytes, bytes]]:
    """Id and content of each entry that XREAD returned."""
    for _, entries in answer or ():
        yield from _contents(entries)


def _contents(entries: Any) -> Iterable[tuple[bytes, bytes]]:
    """Id and content of each entry."""
    for entry, fields in entries:
        yield entry, fields[1] if fields[:1] == [_FIELD] and len(fields) > 1 else b""


def _silence(silent: dict[str, str]) -> str:
    names = sorted(set(silent.values()))
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return f"{', '.join(names[:_NAMED])}{more} did not answer within {REPLY_SECONDS:g} s" if names else ""
