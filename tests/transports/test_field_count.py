"""Fields of protobuf messages, counted without parsing."""

import pytest
from google.protobuf.message import DecodeError
from hypothesis import given
from hypothesis import strategies as st

from gateway.transports.field_count import fields, parsed
from gateway.transports.proto.admission.worker.v1 import worker_pb2 as pb
from tests.integration.conversations import response
from tests.integration.workers import ALLOW, deny


@pytest.mark.parametrize("count", [0, 1, 7, 500])
def test_each_answer_is_a_field(count):
    """Whatever its size."""
    answers = ((number * 10**9, deny("x" * number) if number % 2 else ALLOW) for number in range(count))
    assert fields(response(*answers), 1000) == count


def test_counting_stops_when_there_are_too_many():
    """It does not go to the end of a message that is too long already."""
    assert fields(b"\x0a\x00" * 1000, 10) == 11


def test_fields_of_every_kind_are_counted():
    """Numbers, fixed ones, texts and groups of a later contract."""
    assert fields(b"\x08\x96\x01" + b"\x11" + bytes(8) + b"\x12\x02ab" + b"\x1b\x1c" + b"\x25" + bytes(4), 100) == 6


@pytest.mark.property
@given(st.binary(max_size=200))
def test_bytes_that_are_no_message_are_counted_to_an_end(content):
    """Whatever they are, counting ends, and no message has fewer answers than were counted fields."""
    counted = fields(content, 1000)
    assert 0 <= counted <= len(content)
    try:
        message = pb.ReviewStreamResponse.FromString(content)
    except Exception:  # noqa: BLE001 - no message
        return
    assert len(message.items) <= counted


SAYINGS = pb.ReviewResponse(
    outcome=pb.Outcome(
        deny=pb.Deny(details=pb.StatusDetails(causes=[pb.StatusCause(reason="r", message="m", field="f")])),
        warnings=["w", "w"],
        audit_annotations={"k": "v"},
    )
)
"""Outcome, deny, details, cause with three texts; two warnings; an annotation with key and value: twelve fields."""


def test_messages_in_messages_are_counted():
    """All that there is to parse counts, wherever it stands."""
    content = SAYINGS.SerializeToString()
    assert parsed(pb.ReviewResponse, content, most=12, small=0) == SAYINGS
    with pytest.raises(DecodeError, match="more than 11 fields"):
        parsed(pb.ReviewResponse, content, most=11, small=0)
    assert parsed(pb.ReviewResponse, content, most=11) == SAYINGS


@pytest.mark.parametrize("member", [b"\x12\x00", b"\x12\x04\x22\x02\x2a\x00", b"\x22\x00", b"\x2a\x00", b"\x7a\x00"])
def test_nothing_that_costs_to_parse_is_passed_over(member):
    """Denials, causes, warnings, annotations, and fields of a later contract: many of them are not parsed."""
    many = member * 10_000
    length = len(many)
    content = b"\x0a" + bytes([length & 127 | 128, length >> 7 & 127 | 128, length >> 14]) + many
    pb.ReviewResponse.FromString(content)
    with pytest.raises(DecodeError, match="more than 5000 fields"):
        parsed(pb.ReviewResponse, content, most=5000, small=0)


@pytest.mark.property
@given(st.binary(max_size=200))
def test_what_can_be_parsed_is_counted_alike(content):
    """Whatever the bytes are: what is parsed without counting is parsed with it, and what is not, is not."""
    try:
        message = pb.ReviewStreamResponse.FromString(content)
    except DecodeError:
        with pytest.raises(DecodeError):
            parsed(pb.ReviewStreamResponse, content, most=1000, small=0)
        return
    assert parsed(pb.ReviewStreamResponse, content, most=1000, small=0) == message
