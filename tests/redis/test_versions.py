"""What two versions of the gateway exchange while one replaces the other, as an earlier version wrote it.

A test that fails here says that two versions on one Redis, or behind one registration, no longer agree. What a change
has to do then:

* Cache entries of another shape are no entries for the other version, so each would replace the other's. Change ``v1``
  in ``gateway.caching.names.PREFIX``, and write purge markers under the former name, too: a purge must reach both.
* A queue's messages get new fields, as its ``.proto`` says; seals, lanes and names stay.
* Another verdict identity is right when the same configuration gets another meaning, and costs calls only.
* Another path of an entry makes replicas of the other version answer 404 for a new name, and decide by the name alone
  for a new revision.
"""

import base64

import msgspec
import pytest

from gateway.caching.entries import Entry, packed, unpacked
from gateway.caching.names import entry_name, marker_name, named
from gateway.documents.identity import verdict_identity
from gateway.documents.verdict_key import key_prefix, verdict_key
from gateway.engine.verdicts import Allow, Change, ChangeKind, Deny
from gateway.policies.model import Configuration, Phase
from gateway.policies.workers.targets import GrpcTarget, Worker
from gateway.redis.sealing import SealKey
from gateway.registration.entries import make_entries
from gateway.transports.proto.admission.queue.v1 import queue_pb2 as q
from gateway.transports.proto.admission.worker.v1 import worker_pb2 as pb
from gateway.transports.queue.codec import read_presence, read_replies, read_request
from gateway.transports.queue.names import Names, lane_of
from gateway.transports.queue.seals import QueueSeals
from tests.registration.chains import policy

SECRET = b"k" * 32
KEY = SealKey(SECRET)
CACHE_KEY = b"m" * 16 + b"q" * 32
NOW = 1_763_757_000_000
LANE, GATEWAY, ID = "a" * 32, "c" * 32, b"12345678"
QUEUE_LANE = "0d2c9446f3e991555d0cec702f9e1c7b"

ALLOW = Entry(
    called_at=1.5,
    verdict=Allow(
        change=Change(kind=ChangeKind.JSON_PATCH, content=b"[]"),
        warnings=("w",),
        audit_annotations={"a": "b"},
        version="1",
        reuse=2.0,
    ),
)
DENY = Entry(called_at=1.5, verdict=Deny(code=403, message="m", reason="r", details={"d": 1}, version="1"))

RECORDED = {
    "allow": "kss/+AAAAAAAAJelYWxsb3eqanNvbl9wYXRjaMQCW12RoXeBoWGhYqExy0AAAAAAAAAA",
    "deny": "kss/+AAAAAAAAJmkZGVuec0Bk6FtoXKBoWQBkIChMcA=",
    "entry": "AQAGaqDSRsW7RZ0uVporoRLGx/l4U/pHij9IvZO9e0CiY50OdjyBDniKe77471hUbwNjTEuM38185r6ibsTeTiY=",
    "marker": "AQAGaqDiTprsAAT7jdlUf+N80csvADgZF6c6z2z/k66oZKp+b4ffgm3J",
    "request": "AQAGaqC/RX21Z9INuSWKMr2woBrFp+YTYZG0AVIXLrnH9Sa8PP1KgtY1",
    "replies": "AQAGaqAiu8ZZaOzUtDfsOnyUFX9b0v/dp3eZeN706KPBg5zHT+kr2w48Tm/wXY9W5F6gvMOaWX/vTcO7L7qy",
    "presence": "AQAGaqC/g90PB3KyxqB8GuQD4c2DandjN19yZXGdWR7qKMFiZzHiykbzATl+X5j0F8B3VJKmAh/McvgiJYw1bGuv8pmRx5HVVyqp"
    "8pNGZgrkltCcs3c=",
}
"""What an earlier version wrote: content, and the same content sealed."""


def recorded(name):
    return base64.b64decode(RECORDED[name])


@pytest.fixture
def seals(tmp_path):
    """Of a queue whose key file is always the same."""
    (tmp_path / "keys").write_text(base64.b64encode(SECRET).decode())
    return QueueSeals("s", tmp_path / "keys")


def test_names_in_redis():
    """Both versions look for the same entry, and for the same purge."""
    tag = "admission-gateway:v1:{}-IK5OpC5g9aLIZTRkHUsxQ"
    assert entry_name(KEY, CACHE_KEY) == tag.format("") + ":5j3ubWIz0WYIboSWlrMMpVB6pslRGuTgT7xIwo0fgPw"
    assert marker_name(KEY, CACHE_KEY[:16]) == tag.format("purged:")


@pytest.mark.parametrize(("name", "entry"), [("allow", ALLOW), ("deny", DENY)])
def test_cache_entries(name, entry):
    """Both versions write the same verdict the same way, and read it."""
    assert packed(entry) == recorded(name)
    assert unpacked(recorded(name)) == entry


def test_sealed_entries_and_purges():
    """What an earlier version sealed opens."""
    assert KEY.open(named(entry_name(KEY, CACHE_KEY)), recorded("entry")) == recorded("deny")
    marker = KEY.open(named(marker_name(KEY, CACHE_KEY[:16])), recorded("marker"))
    assert marker == msgspec.msgpack.encode(1.5)


@pytest.mark.parametrize("change", [lambda verdict: [*verdict, "new"], lambda verdict: ["defer", *verdict[1:]]])
def test_an_entry_of_another_shape_is_none(change):
    """A later version's verdict with one more member, or of another kind, is a miss: never half of a verdict."""
    called_at, verdict = msgspec.msgpack.decode(recorded("deny"))
    assert unpacked(msgspec.msgpack.encode([called_at, verdict])) == DENY
    assert unpacked(msgspec.msgpack.encode([called_at, change(verdict)])) is None
    assert unpacked(msgspec.msgpack.encode([called_at, verdict, "new"])) is None


def test_a_seal_of_another_version_does_not_open():
    """Its first byte is the version."""
    content = recorded("entry")
    assert KEY.open(named(entry_name(KEY, CACHE_KEY)), b"\x02" + content[1:]) is None


def test_messages_of_a_queue(seals):
    """A gateway and a bridge of different versions read each other."""
    fields = {b"d": b"%d" % NOW, b"g": GATEWAY.encode(), b"i": ID, b"m": recorded("request")}
    request = read_request(seals, LANE, fields)
    assert request.request.call == pb.PolicyCall(policy="p", document=b"{}")
    assert read_replies(seals, GATEWAY, recorded("replies"), NOW).replies[0].verdict.HasField("allow")
    presence = read_presence(seals, "consumer", recorded("presence"))
    assert presence.lane == lane_of(pb.DescribeResponse.FromString(presence.description)) == QUEUE_LANE
    assert Names("s").calls("l") == "{s}:calls:l"


def test_unknown_fields_of_messages_are_ignored(seals):
    """A later version's Request and Presence, with a field 1000."""
    unknown = b"\xc2\x3e\x03new"
    request = q.Request(call=pb.PolicyCall(policy="p")).SerializeToString() + unknown
    sealed = seals.seal_call(LANE, GATEWAY, (ID, NOW), request)
    fields = {b"d": b"%d" % NOW, b"g": GATEWAY.encode(), b"i": ID, b"m": sealed, b"n": b"a field of the entry"}
    assert read_request(seals, LANE, fields).request.call.policy == "p"
    presence = q.Presence(at=NOW, lane=LANE, capacity=3).SerializeToString() + unknown
    assert read_presence(seals, "consumer", seals.seal_presence("consumer", presence)).capacity == 3


def test_verdict_keys():
    """The same question has the same key; else the versions only do not share verdicts."""
    identity = verdict_identity(policy("a.x.y"), Worker(name="w", grpc=GrpcTarget(target="dns:///w:1")))
    assert identity.hex() == "780f05a0fcd1d0a0a5c72ec825de368f9880323acb08a6cf1f240e08e46fb593"
    key = verdict_key(key_prefix(phase="mutating", identity=b"i" * 32, version="1"), b"d" * 32)
    assert key.hex() == "1b34d18817a7b794b5573ae9bf4787927e10a9ff98b16715924ee7f52f1a967f"


def test_paths_of_entries():
    """Either version answers at the paths that the other has registered."""
    entries = make_entries(
        Configuration(
            mutating=(policy("a.x.y"), policy("b.x.y", isolate=True, index=1)),
            validating=(policy("c.x.y", phase=Phase.VALIDATING),),
        )
    )
    assert [entry.path for entry in (*entries.mutating, *entries.validating)] == [
        "/mutate/chain.a.x.y/e993ebe7",
        "/mutate/b.x.y/51cc6fb9",
        "/validate/group.c.x.y/538c5e92",
    ]
