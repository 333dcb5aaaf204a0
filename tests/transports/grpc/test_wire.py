"""Fields of protobuf messages, counted without parsing."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.transports.grpc.wire import fields
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
