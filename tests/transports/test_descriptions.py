"""What workers say of themselves, kept once; and how much may wait to be written."""

import pytest
from google.protobuf.message import DecodeError

from gateway.transports.descriptions import KEPT, MOST_BYTES, Descriptions
from gateway.transports.limits import Backlog
from gateway.transports.proto.admission.worker.v1 import worker_pb2 as pb
from tests.integration.workers import description


def test_equal_words_are_one_description():
    """However many connections say them; other words are another one."""
    descriptions = Descriptions()
    first = descriptions.of(description("judge"))
    assert descriptions.of(description("judge")) is first
    assert descriptions.of(description("judge", version="2")) is not first
    assert descriptions.of(description("judge")) is first


def test_versions_of_policies():
    """A policy has its own version, or the worker's; none if it is not held, or held twice."""
    said = pb.DescribeResponse(
        version="1",
        policies=[
            pb.PolicyDescription(name="own", version="7"),
            pb.PolicyDescription(name="plain"),
            pb.PolicyDescription(name="twice"),
            pb.PolicyDescription(name="twice", version="2"),
        ],
    )
    described = Descriptions().of(said.SerializeToString())
    assert [described.version_of(name) for name in ("own", "plain", "twice", "other")] == ["7", "1", None, None]


def test_bytes_that_are_none_are_not_kept():
    """They are refused each time, and take no other one's place."""
    descriptions = Descriptions()
    for _ in range(2):
        with pytest.raises(DecodeError):
            descriptions.of(b"\xff\xff")
    assert not descriptions._known


def test_a_few_are_kept():
    """A worker that says something else each time does not fill the memory."""
    descriptions = Descriptions()
    for number in range(3 * KEPT):
        descriptions.of(description("judge", version=str(number)))
    assert len(descriptions._known) == KEPT
    latest = description("judge", version=str(3 * KEPT - 1))
    assert descriptions.of(latest) is descriptions.of(latest)


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"\x1a\x00" * 100_000, "more than 20000 fields"),  # policies
        (b"\x1a\x06" + b"\x22\x04\x0a\x02\x0a\x00" * 100_000, "more than 20000 fields"),  # pointers of a claim
        (b"\x0a" + b"\xff\xff\x7f" + b"x" * (2 * MOST_BYTES), "more than the limit of 1048576"),  # a name
    ],
)
def test_too_large_a_description_is_rejected(content, why):
    """It is refused before it is parsed, and what others said stays."""
    descriptions = Descriptions()
    before = [descriptions.of(description("judge", version=str(number))) for number in range(KEPT)]
    with pytest.raises(DecodeError, match=why):
        descriptions.of(content)
    assert before == [descriptions.of(description("judge", version=str(number))) for number in range(KEPT)]


def test_a_large_description_is_accepted():
    """A thousand policies, each with fifteen pointers."""
    claim = pb.Claim(pointers=pb.Claim.Pointers(pointers=[f"/object/spec/{number}" for number in range(14)]))
    policies = [pb.PolicyDescription(name=f"p{number}", version="1", inputs=claim) for number in range(1000)]
    said = Descriptions().of(pb.DescribeResponse(version="1", policies=policies).SerializeToString())
    assert said.version_of("p999") == "1"


def test_one_document_may_always_wait():
    """Whatever its size; a second one only within the limit."""
    backlog = Backlog(10)
    assert backlog.has_room(1000)
    backlog.bytes = 6
    assert backlog.has_room(4)
    assert not backlog.has_room(5)
