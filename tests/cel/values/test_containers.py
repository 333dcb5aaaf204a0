"""Lists, maps and optionals, and how keys are found."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.cel.values.containers import MISSING, NONE, Keys, Map, Optional, find, is_map, items, made_of
from gateway.cel.values.faults import Aborted
from gateway.cel.values.numbers import Uint

keys = st.integers(-(2**63), 2**63 - 1) | st.booleans() | st.text(max_size=3) | st.integers(0, 2**64 - 1).map(Uint)


def keys_of(*values):
    made = Keys()
    for each in values:
        made.add(each)
    return made


@pytest.mark.parametrize(
    ("kept", "sought"),
    [
        (1, 1),
        (1, Uint(1)),
        (1, 1.0),
        (Uint(1), 1),
        (Uint(1), 1.0),
        (1.5, 1.5),
        ("a", "a"),
        (True, True),
        (False, False),
    ],
)
def test_a_key_is_found_by_every_number_that_equals_it(kept, sought):
    """1, 1u and 1.0 are the same key where only one of them is there."""
    assert sought in keys_of(kept)


@pytest.mark.parametrize(
    ("kept", "sought"), [(1, True), (True, 1), (0, False), (1, "1"), (1, 1.5), (math.nan, math.nan), ("a", None)]
)
def test_a_key_is_not_found_by_another_value(kept, sought):
    """true is not 1, and NaN is never found."""
    assert sought not in keys_of(kept)


def test_numbers_of_different_kinds_are_kept_apart():
    """The exact one is found first."""
    made = Map()
    for key, found in ((1, "int"), (Uint(1), "uint"), (True, "bool")):
        made.add(key, found)
    assert [made.find(key) for key in (1, Uint(1), True)] == ["int", "uint", "bool"]
    assert len(made) == 3


def test_a_later_value_replaces_an_earlier_one():
    """A key stands once, at its first place."""
    made = Map()
    made.add(1, "a")
    made.add(2, "b")
    made.add(1, "c")
    assert list(made.items()) == [(1, "c"), (2, "b")]


def test_a_key_that_is_taken_out_is_gone():
    """And taking out one that is not there changes nothing."""
    made = keys_of(1, 2)
    made.remove(1)
    made.remove(5)
    assert (1 in made, 2 in made, len(made)) == (False, True, 1)


def test_bytes_cannot_be_keys():
    """cel-go cannot hash them, and gives up altogether."""
    with pytest.raises(Aborted, match="hash of unhashable type"):
        keys_of(b"a")


def test_values_that_have_no_hash_are_keys_by_identity():
    """The same list is found, and an equal one is not."""
    one = [1]
    assert one in keys_of(one)
    assert [1] not in keys_of(one)


@pytest.mark.property
@given(st.lists(st.tuples(keys, st.integers()), max_size=6))
def test_a_map_has_what_was_put_in_last(pairs):
    """For keys of all kinds, whatever is put in before."""
    made = Map()
    for key, found in pairs:
        made.add(key, found)
    expected = {(type(key), key): found for key, found in pairs}
    assert {(type(key), key): found for key, found in made.items()} == expected


@pytest.mark.property
@given(st.lists(st.tuples(keys, st.integers()), max_size=6))
def test_a_map_of_texts_alone_is_a_dict(pairs):
    """As in JSON; any other key makes it a Map."""
    made = made_of(pairs)
    assert is_map(made)
    assert isinstance(made, dict) == all(isinstance(key, str) for key, _ in pairs)
    assert all(find(made, key) is not MISSING for key, _ in pairs)


def test_a_dict_has_no_keys_but_texts():
    """Other keys are just not there."""
    assert find({"a": 1}, "a") == 1
    assert find({"a": 1}, 1) is MISSING


def test_integers_out_of_json_are_doubles_if_they_are_large():
    """Wherever they are looked at: by key, and one after the other."""
    given_ = {"a": 2**70}
    assert type(find(given_, "a")) is float
    assert [type(found) for _, found in items(given_)] == [float]


def test_null_is_a_value_and_nothing_is_none():
    """``optional.of(null)`` is present."""
    assert Optional(None).present
    assert not NONE.present
    assert Optional() == NONE
