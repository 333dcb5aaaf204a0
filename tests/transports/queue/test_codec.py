"""A message decodes to what was encoded, or to None: never an exception."""

import base64
import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.documents.documents import hashed
from gateway.engine.policy_call import PolicyCall
from gateway.policies.model import Phase
from gateway.transports.proto.admission.queue.v1 import queue_pb2 as q
from gateway.transports.proto.admission.worker.v1 import worker_pb2 as pb
from gateway.transports.queue.codec import (
    EXPIRED_MS,
    Requests,
    read_presence,
    read_replies,
    read_request,
    sealed_presence,
    sealed_replies,
    settings_request,
)
from gateway.transports.queue.names import Names, is_identifier, lane_of
from gateway.transports.queue.seals import QueueSeals
from tests.world import policy

NOW = 1_763_757_000_000
LANE, GATEWAY, ID = "a" * 32, "c" * 32, b"12345678"


@pytest.fixture(scope="module")
def seals(tmp_path_factory):
    file = tmp_path_factory.mktemp("keys") / "keys"
    file.write_text(base64.b64encode(os.urandom(32)).decode())
    return QueueSeals("s", file)


def entry(seals, content, *, deadline=NOW, **changed):
    """The fields of a call's entry."""
    sealed = seals.seal_call(LANE, GATEWAY, (ID, deadline), content)
    return {b"d": b"%d" % deadline, b"g": GATEWAY.encode(), b"i": ID, b"m": sealed} | changed


@pytest.mark.property
@given(
    document=st.binary(max_size=70_000),
    settings=st.binary(max_size=20_000),
    names=st.tuples(st.text(max_size=300), st.text(max_size=50), st.text(max_size=60)),
    cancellable=st.booleans(),
)
def test_a_request_is_what_was_called(seals, document, settings, names, cancellable):
    """The concatenated parts are the message that protobuf would serialize."""
    name, uid, traceparent = names
    about = policy("one", phase=Phase.MUTATING, policy=name, settings=settings)
    called = PolicyCall(
        id=1,
        policy=about,
        document=hashed(document),
        deadline=1.0,
        uid=uid,
        cancellable=cancellable,
        traceparent=traceparent,
        tracestate="a=1",
    )
    decoded = read_request(seals, LANE, entry(seals, Requests().of(called)))
    expected = pb.PolicyCall(
        policy=name,
        phase=pb.PHASE_MUTATING,
        settings=settings,
        document=document,
        uid=uid,
        traceparent=traceparent,
        tracestate="a=1",
    )
    assert decoded.request == q.Request(call=expected, once=not cancellable)
    assert (decoded.gateway, decoded.id, decoded.deadline) == (GATEWAY, ID, NOW)


def test_policies_of_one_review_and_reviews_of_one_policy_are_kept_apart():
    """Cached parts are reused only for requests that share them."""
    requests = Requests()
    documents = [hashed(b"one"), hashed(b"two")]
    policies = [policy(name, phase=Phase.VALIDATING) for name in ("p", "q")]
    for _ in range(2):
        for document in documents:
            for about in policies:
                for uid in ("u", "v"):
                    called = PolicyCall(id=1, policy=about, document=document, deadline=1.0, uid=uid, cancellable=True)
                    found = q.Request.FromString(requests.of(called)).call
                    assert (found.policy, found.document, found.uid) == (about.policy, document.content, uid)


@pytest.mark.property
@given(
    changed=st.dictionaries(st.sampled_from([b"d", b"g", b"i", b"m"]), st.binary(max_size=40), min_size=1),
    missing=st.sets(st.sampled_from([b"d", b"g", b"i", b"m"])),
)
def test_an_altered_entry_is_dropped(seals, changed, missing):
    """Whichever field is changed or missing, the entry decodes to None."""
    good = entry(seals, settings_request("p", b"{}"))
    fields = {name: value for name, value in (good | changed).items() if name not in missing}
    if fields != good:
        assert read_request(seals, LANE, fields) is None


@pytest.mark.parametrize("content", [b"", b"\xff", q.Request(once=True).SerializeToString()])
def test_a_sealed_entry_without_a_request_is_dropped(seals, content):
    """Who has the key may be of another version."""
    assert read_request(seals, LANE, entry(seals, content)) is None


def test_a_deadline_with_another_spelling_is_another_deadline(seals):
    """Digits that are none in ASCII, or a number that no clock shows, open nothing."""
    good = entry(seals, settings_request("p", b"{}"))
    for text in (b"-1", b"1e3", "١".encode(), b"9" * 17, b" 1"):
        assert read_request(seals, LANE, good | {b"d": text}) is None


def test_replies_expire(seals):
    """Replies that are older than every deadline, or from the future, decode to None."""
    sealed = sealed_replies(seals, GATEWAY, [q.Reply(id=ID, deadline=NOW)], NOW)
    assert read_replies(seals, GATEWAY, sealed, NOW + EXPIRED_MS).replies[0].id == ID
    assert read_replies(seals, GATEWAY, sealed, NOW + EXPIRED_MS + 1) is None
    assert read_replies(seals, GATEWAY, sealed, NOW - EXPIRED_MS - 1) is None
    assert read_replies(seals, "d" * 32, sealed, NOW) is None
    assert read_replies(seals, GATEWAY, seals.seal_replies(GATEWAY, b"\xff"), NOW) is None


def test_a_presence_is_bound_to_its_consumer(seals):
    """A presence of another name, without capacity, or without a lane decodes to None."""
    good = q.Presence(description=b"", at=NOW, lane=LANE, capacity=1)
    assert read_presence(seals, "b", sealed_presence(seals, "b", good)) == good
    assert read_presence(seals, "c", sealed_presence(seals, "b", good)) is None
    for bad in (q.Presence(lane=LANE, at=NOW), q.Presence(lane="workers", capacity=1, at=NOW)):
        assert read_presence(seals, "b", sealed_presence(seals, "b", bad)) is None
    assert read_presence(seals, "b", seals.seal_presence("b", b"\xff")) is None


def described(*policies, version="1"):
    return pb.DescribeResponse(worker="w", version=version, policies=policies)


def claims(name="p", **fields):
    return pb.PolicyDescription(name=name, phases=[pb.PHASE_VALIDATING], **fields)


NOTHING = pb.Claim(pointers=pb.Claim.Pointers())
EVERYTHING = pb.Claim(everything=pb.Claim.Everything())
LABELS = pb.Claim(pointers=pb.Claim.Pointers(pointers=["/object/metadata/labels"]))


def test_versions_share_a_lane():
    """Versions, order, texts and schemas do not change the lane."""
    one = described(claims("p", version="1"), claims("q"))
    other = described(claims("q", description="x"), claims("p", version="2", settings_schema=b"{}"), version="9")
    assert lane_of(one) == lane_of(other)
    assert is_identifier(lane_of(one))


def test_different_claims_have_different_lanes():
    """Each claim has its own lane, also nothing, everything and none; so do names and phases."""
    descriptions = [
        described(),
        described(claims()),
        described(claims("q")),
        described(claims(), claims("q")),
        described(claims(), claims()),
        described(claims(inputs=NOTHING)),
        described(claims(inputs=EVERYTHING)),
        described(claims(inputs=LABELS)),
        described(claims(writes=LABELS)),
        described(claims(inputs=pb.Claim())),
        described(pb.PolicyDescription(name="p", phases=[pb.PHASE_VALIDATING, pb.PHASE_MUTATING])),
    ]
    assert len({lane_of(each) for each in descriptions}) == len(descriptions)


def test_all_names_of_a_queue_are_in_one_slot_of_a_cluster():
    """All names have the same part in braces, which is hashed."""
    names = Names("team-a:labels")
    for name in (names.workers, names.calls(LANE), names.replies(GATEWAY)):
        assert name.startswith("{team-a:labels}:")
        assert name.count("{") == name.count("}") == 1
