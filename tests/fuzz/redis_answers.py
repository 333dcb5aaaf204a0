"""Whatever Redis holds and answers: a value that the gateway did not seal for this very place is a miss.

* A lookup ends once, with an entry or without one, whatever the values are: bytes, none, numbers, lists, errors.
* An entry that does come was sealed here. Content that is sealed and is no entry is a miss too, as if a key had leaked.
* Requests, replies and presences of a queue are read, or are none.

The first byte of an input says what it is: see ``run``. With bit 128 the gateway seals it first, so that what is read
behind the seal is reached.
"""

import asyncio
from collections.abc import Iterator
from contextlib import closing
from functools import cache
from pathlib import Path
from typing import Any

from gateway.caching.entries import Entry, packed, unpacked
from gateway.caching.limits import CacheLimits
from gateway.caching.names import entry_name, marker_name, named
from gateway.caching.redis import RedisStore
from gateway.engine.verdicts import Allow, Change, ChangeKind, Deny
from gateway.policies.model import Phase
from gateway.redis.addresses import redis_address
from gateway.redis.sealing import SealKey, SealKeys
from gateway.telemetry.events import NoEvents
from gateway.transports.messages import outcome_answer
from gateway.transports.proto.admission.queue.v1 import queue_pb2 as q
from gateway.transports.proto.admission.worker.v1 import worker_pb2 as pb
from gateway.transports.queue.codec import read_presence, read_replies, read_request
from gateway.transports.queue.seals import QueueSeals
from tests.fuzz import judging

SECRET = bytes(range(32))
CACHE_KEY = bytes(48)
GATEWAY = "ab" * 16
LANE = "cd" * 16
NUMBER = bytes(8)
DEADLINE = 1_800_000_000_000
NOW = 1_700_000_001_000
KINDS = 5
WORDS = (
    b"\xa5allow | \xa4deny | json_patch | merge_patch | object | \xcbA\xd9T\xfc@\x00\x00\x00 | \xc0 | \x01 | "
    b'[{"op":"add","path":"/metadata/labels/b","value":"2"}] | \xcb\x7f\xf0\x00\x00\x00\x00\x00\x00 | '
    b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01 | abababababababababababababababab"
).split(b" | ")


@cache
def _seals() -> tuple[SealKeys, QueueSeals, RedisStore]:
    key = SealKey(SECRET, lambda: NOW / 1000)
    cache_seals, queue_seals = SealKeys(None), QueueSeals("q", Path("/nonexistent"))
    cache_seals.keys = queue_seals.keys = (key,)

    async def store() -> RedisStore:
        address = redis_address("redis://127.0.0.1:1")
        return RedisStore(address, cache_seals, CacheLimits(), NoEvents(), lambda: NOW / 1000)

    with closing(asyncio.new_event_loop()) as loop:
        return cache_seals, queue_seals, loop.run_until_complete(store())


def seeds() -> Iterator[bytes]:
    """Entries and messages of each kind, sealed and not."""
    patch = b'[{"op":"add","path":"/metadata/labels/b","value":"2"}]'
    verdicts = [
        Allow(version="1", reuse=5.0),
        Allow(change=Change(kind=ChangeKind.JSON_PATCH, content=patch), warnings=("w",), audit_annotations={"k": "v"}),
        Deny(message="no", details={"causes": [{"message": "m"}]}),
    ]
    contents = [(0, packed(Entry(called_at=NOW / 1000, verdict=verdict)) or b"") for verdict in verdicts]
    outcome = pb.Outcome(allow=pb.Allow())
    contents += [
        (1, b"\xcb\x41\xd9\x54\xfc\x40\x00\x00\x00"),
        (2, q.Request(call=pb.PolicyCall(policy="judge", document=b"{}")).SerializeToString()),
        (3, q.Replies(replies=[q.Reply(id=NUMBER, deadline=DEADLINE, verdict=outcome)], at=NOW).SerializeToString()),
        (4, q.Presence(at=NOW, lane=LANE, capacity=4, description=b"").SerializeToString()),
    ]
    for kind, content in contents:
        yield bytes([kind]) + content
        yield bytes([kind | 128]) + content


def run(data: bytes) -> None:
    """First byte: 0 an entry, 1 the marker of a purge, 2 a request, 3 replies, 4 a presence."""
    bits, content = (data[0] if data else 0), data[1:]
    kind, seals = (bits & 127) % KINDS, bits & 128
    if kind <= 1:
        _look_up(content, is_marker=kind == 1, sealed=bool(seals))
    elif kind == 2:
        _request(content, sealed=bool(seals))
    elif kind == 3:
        sealed = _seals()[1].seal_replies(GATEWAY, content) if seals else content
        replies = read_replies(_seals()[1], GATEWAY, sealed, NOW)
        assert seals or replies is None, "replies that were not sealed are read"
        for reply in replies.replies if replies is not None else ():
            judging.check(reply_answer(reply), Phase.MUTATING)
    else:
        sealed = _seals()[1].seal_presence(GATEWAY, content) if seals else content
        presence = read_presence(_seals()[1], GATEWAY, sealed)
        assert seals or presence is None, "a presence that was not sealed is read"


def reply_answer(reply: q.Reply) -> Any:
    return outcome_answer(judging.call(Phase.MUTATING), reply.verdict, characters=500)


def _look_up(content: bytes, *, is_marker: bool, sealed: bool) -> None:
    keys, _, store = _seals()
    key = keys.keys[0]
    names = [entry_name(key, CACHE_KEY), marker_name(key, CACHE_KEY[:16])]
    value: Any = key.seal(named(names[is_marker]), content) if sealed else content
    for answer in (value, None, int.from_bytes(content[:4], "big"), [value], ConnectionError("x")):
        values = [b"", answer] if is_marker else [answer, b""]
        found: list[Entry | None] = []
        store._found(keys.keys, names, CACHE_KEY[:16], found.append, values)
        assert len(found) == 1
        if found[0] is not None:
            assert (sealed, answer) == (True, value), "an entry that was not sealed here"
            assert packed(found[0]) is not None, "an entry that cannot be written again"
            # As bytes: the time of an entry that is sealed here may be NaN, which no age permits to be used.
            assert packed(unpacked(packed(found[0]))) == packed(found[0])
            judging.check(found[0].verdict, Phase.MUTATING)


def _request(content: bytes, *, sealed: bool) -> None:
    seals = _seals()[1]
    number, deadline, gateway = NUMBER, str(DEADLINE).encode(), GATEWAY.encode()
    if not sealed:
        number, deadline, gateway, content = (*content.split(b"|", 3), b"", b"", b"", b"")[:4]
    else:
        content = seals.seal_call(LANE, GATEWAY, (NUMBER, DEADLINE), content)
    read = read_request(seals, LANE, {b"i": number, b"d": deadline, b"g": gateway, b"m": content})
    assert sealed or read is None, "a request that was not sealed is read"
