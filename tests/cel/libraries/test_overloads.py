"""What a library is made of."""

import pytest

from gateway.cel.libraries.overloads import Library, fits, function, functions, member
from gateway.cel.values import types
from gateway.cel.values.containers import Map, Optional
from gateway.cel.values.durations import Duration
from gateway.cel.values.numbers import Uint
from gateway.cel.values.types import list_of, parameter, written


def test_a_function_is_read_from_its_signature():
    """Its name, its parameters and its result."""
    found = function("x", "optional.of(V) -> optional_type(V)")
    assert (found.function, found.member) == ("optional.of", False)
    assert found.parameters == (parameter("V"),)
    assert found.result == written("optional_type(V)")


def test_a_member_has_its_target_as_first_parameter():
    """Also where the target's type has brackets of its own."""
    found = member("x", "list(list(T)).flatten(int) -> list(T)")
    assert (found.function, found.member) == ("flatten", True)
    assert found.parameters == (list_of(list_of(parameter("T"))), types.INT)


def test_a_function_may_have_no_parameters():
    """``optional.none()``."""
    assert function("x", "optional.none() -> optional_type(V)").parameters == ()


@pytest.mark.parametrize("signature", ["f", "a.f", "a.f) -> int"])
def test_a_signature_without_parameters_is_refused(signature):
    """It is a defect of the package."""
    with pytest.raises(ValueError, match=r"has no parameters|is no type"):
        member("x", signature)


def test_overloads_of_a_name_are_tried_in_the_order_of_their_libraries():
    """The first library's first."""
    one, other = function("one", "f(int) -> int"), function("other", "f(string) -> int")
    found = functions([Library(overloads=(one,)), Library(overloads=(other,))])
    assert [overload.identity for overload in found["f"].overloads] == ["one", "other"]


def test_a_singleton_belongs_to_all_overloads_of_its_name():
    """It looks at the values itself."""
    library = Library(overloads=(function("one", "f(int) -> int"),), singletons={"f": abs}, unguarded=frozenset({"f"}))
    assert functions([library])["f"].singleton is abs
    assert functions([library])["f"].guarded is False


@pytest.mark.parametrize(
    ("kind", "value", "expected"),
    [
        ("int", 1, True),
        ("int", True, False),
        ("int", Uint(1), False),
        ("uint", Uint(1), True),
        ("double", 1.0, True),
        ("double", 1, False),
        ("bool", True, True),
        ("string", "", True),
        ("bytes", b"", True),
        ("dyn", object(), True),
        ("A", None, True),
        ("list(A)", [], True),
        ("list(A)", {}, False),
        ("list(int)", [1, "x"], True),
        ("list(int)", ["x", 1], False),
        ("list(int)", [], True),
        ("list(double)", [2**70], True),
        ("map(A, B)", {}, True),
        ("map(A, B)", Map(), True),
        ("map(A, B)", [], False),
        ("map(string, int)", {"a": 1, "b": "x"}, True),
        ("map(string, int)", {"a": "x"}, False),
        ("map(int, int)", {"a": 1}, False),
        ("map(string, int)", {}, True),
        ("map(string, int)", 5, False),
        ("duration", Duration(0), True),
        ("duration", 0, False),
        ("null", None, True),
        ("optional_type(int)", Optional("x"), True),
        ("optional_type(int)", 1, False),
    ],
)
def test_what_fits_a_parameter(kind, value, expected):
    """Of a list or a map only the first element is looked at, of an optional nothing."""
    assert fits(written(kind))(value) is expected
