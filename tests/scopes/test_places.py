"""Sets of places, against a model that is a list of patterns."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.scopes.pointer_set import ANY, PointerSet
from tests.scopes.model import POINTERS, SETS, TOKENS, inside


def places(*texts: str) -> PointerSet:
    """A set, as it is written."""
    return PointerSet(tuple(text[1:].split("/")) for text in texts)


@pytest.mark.property
@given(SETS, st.lists(POINTERS, min_size=1, max_size=5))
def test_a_set_covers_what_lies_in_one_of_its_places(patterns, pointers):
    """Covered is what a pattern names or lies below it; ``*`` in the question is met by ``*`` alone."""
    made = PointerSet(patterns)
    for pointer in pointers:
        assert made.covers(pointer) == inside(pointer, patterns)


@pytest.mark.property
@given(SETS, TOKENS)
def test_a_step_down_keeps_what_goes_on_there(patterns, token):
    """Below a token stand the rests of the patterns that begin with it or with ``*``."""
    rests = [pattern[1:] for pattern in patterns if pattern[0] in {token, ANY}]
    assert PointerSet(patterns).below(token) == (PointerSet(rests) if rests else None)


@pytest.mark.property
@given(SETS, SETS)
def test_sets_are_equal_if_each_covers_the_other(one, other):
    """However they are written; and equal sets have equal hashes and print alike."""
    mutual = all(inside(each, other) for each in one) and all(inside(each, one) for each in other)
    assert (PointerSet(one) == PointerSet(other)) == mutual
    if mutual:
        assert hash(PointerSet(one)) == hash(PointerSet(other))
        assert repr(PointerSet(one)) == repr(PointerSet(other))


@pytest.mark.property
@given(SETS, st.randoms(use_true_random=False))
def test_the_wider_wins_in_any_order(patterns, random):
    """No pointer that is left lies in another one, all that were given lie in those that are left, order is nothing."""
    widest = PointerSet(patterns).pointers
    assert all(not inside(each, [other for other in widest if other != each]) for each in widest)
    assert all(inside(each, widest) for each in patterns)
    random.shuffle(patterns)
    assert PointerSet(patterns).pointers == widest == PointerSet(widest).pointers


@pytest.mark.property
@given(SETS, POINTERS)
def test_walking_changes_nothing(patterns, pointer):
    """A set is a value: it is the same before and after two descents into it."""
    made = PointerSet(patterns)
    before = (made.pointers, made.at(pointer), made.covers(pointer))
    assert (made.pointers, made.at(pointer), made.covers(pointer)) == before
    assert made == PointerSet(patterns)


def test_everything_is_whole_at_every_depth():
    """Below a place of the set, everything is in it."""
    below = places("/a/b").at(("a", "b", "c", "0"))
    assert below is not None
    assert below.whole
    assert below.pointers == ((),)
    assert below == PointerSet([()])


def test_the_empty_set_is_false_and_leads_nowhere():
    """Nothing is in it."""
    assert not PointerSet()
    assert PointerSet().below("a") is None
    assert PointerSet().pointers == ()
    assert PointerSet([()])
    assert places("/a")


@pytest.mark.parametrize("token", ["00", "01", "-", "-1", "+0", " 0", "0.0", "٠"])
def test_what_is_no_index_reaches_no_element(token):
    """An element is selected by its index in plain digits, and these tokens are other names."""
    below = PointerSet([("list", token)]).below("list")
    assert below is not None
    assert all(below.below(str(index)) is None for index in range(12))


def test_a_member_called_star_is_reached_by_star_only():
    """``*`` is every child, one of that name as well; ``/a/b`` is not."""
    assert places("/*/b").covers(("*", "b"))
    assert not places("/a/b").covers(("*", "b"))


def test_a_named_place_beside_star_says_more_of_its_own_child_alone():
    """Both are seen below it, and only ``*`` elsewhere."""
    made = places("/*/x", "/a/y")
    assert made.below("a") == places("/x", "/y")
    assert made.below("b") == places("/x") == made.every
    assert made.named == {"a"}


def test_a_set_made_to_explode_stays_as_small_as_its_pointers():
    """Each of these sets of patterns can be in any of 2**n states; a step holds no more branches than pointers."""
    wide = 40
    made = PointerSet([(*[ANY] * index, "a", *[ANY] * (wide - index)) for index in range(wide)])
    at: PointerSet | None = made
    for _ in range(wide):
        assert at is not None
        assert len(at._branches) <= wide
        at = at.below("a")
    assert len(made.pointers) == wide


def test_a_pointer_may_be_longer_than_any_stack():
    """Nothing recurses by the length of a pointer."""
    pointer = ("a",) * 100_000
    made = PointerSet([pointer])
    assert made.covers(pointer)
    assert not made.covers(pointer[1:])
    assert made.pointers == (pointer,)
