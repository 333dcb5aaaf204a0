"""Numbers of the document keep their digits unless a policy changes them."""

import copy
import json

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from admission_worker import InvalidAnswerError, Request, Worker, merge, mutated, patch
from admission_worker.json_text import Number, decoder, encoded, json_object, quoted
from admission_worker.testing import review

ODD = ("1.0", "9007199254740993", "1e400", "-1E+2", "0.10000000000000000000001", "1" + 30 * "0", "-0.0", "-0")


def _request(number):
    return Request(b'{"object":{"a":' + number.encode() + b',"b":1}}')


@pytest.mark.parametrize("number", ODD)
def test_the_object_goes_back_with_its_numbers(number):
    """Numbers that the policy does not change keep their digits."""
    request = _request(number)
    request.object["b"] = 2
    assert mutated(request.object).change.content == b'{"a":' + number.encode() + b',"b":2}'


@pytest.mark.parametrize("number", ODD)
def test_a_number_that_is_copied_stays_as_it_was(number):
    """Numbers keep their digits in a patch, a merge patch and a copy of the object."""
    found = copy.deepcopy(_request(number).object)["a"]
    assert patch([{"op": "test", "path": "/a", "value": found}]).change.content.endswith(
        f'"value":{number}}}]'.encode()
    )
    assert merge({"a": copy.copy(found)}).change.content == f'{{"a":{number}}}'.encode()
    assert quoted(found) == number


def test_a_number_calculates_as_a_float():
    """A calculation with a Number gives a plain number."""
    found = _request("1.50").object["a"]
    assert (found, found + 1, isinstance(found, float)) == (1.5, 2.5, True)
    assert quoted(found * 2) == "3.0"


def test_a_calculated_infinity_is_an_invalid_answer():
    """A number beyond a float's range can be returned, but not an infinity from a calculation."""
    found = _request("1e400").object["a"]
    with pytest.raises(InvalidAnswerError, match="NaN and infinities"):
        mutated({"a": found * 2})


def test_the_whole_document_has_its_numbers_too():
    """Numbers of ``request.document`` keep their digits too."""
    assert encoded(_request("1E2").document) == b'{"object":{"a":1E2,"b":1}}'


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_only_a_number_that_would_change_is_kept_as_text(value):
    """A float whose text is Python's own is a plain float."""
    text = msgspec.json.encode(value)
    assert type(decoder().decode(text)) is float
    assert float(Number(repr(value))) == value


@given(st.recursive(st.floats(allow_nan=False, allow_infinity=False) | st.integers() | st.text(), st.lists))
def test_any_json_goes_back_as_it_came(value):
    """Any JSON value stays equal when it is read and written, numbers included."""
    text = json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode("utf-8", "surrogatepass")
    try:
        read = decoder().decode(text)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return  # a lone surrogate
    assert json.loads(encoded(read)) == value


def test_a_test_may_give_numbers_as_they_are_written():
    """A request that the SDK has decoded can be passed to ``review``."""
    worker = Worker("test", version="1")
    worker.mutating("same")(lambda request: mutated(request.object))
    admission = json_object(b'{"operation":"CREATE","object":{"a":1e400,"b":-0}}')
    assert review(worker, "same", admission).change.content == b'{"a":1e400,"b":-0}'
