"""Types as they are written, shown and measured."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.cel.values import types
from gateway.cel.values.types import (
    LARGEST_TYPE,
    Kind,
    TypeTooLarge,
    all_written,
    list_of,
    map_of,
    message,
    optional_of,
    parameter,
    written,
)

simple = st.sampled_from(["bool", "int", "uint", "double", "string", "bytes", "dyn", "A", "B", "net.IP", "a.Message"])
texts = st.recursive(
    simple,
    lambda inner: (
        st.builds("list({})".format, inner)
        | st.builds("map({}, {})".format, inner, inner)
        | st.builds("optional_type({})".format, inner)
        | st.builds("type({})".format, inner)
    ),
    max_leaves=8,
)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("int", types.INT),
        ("timestamp", types.TIMESTAMP),
        ("duration", types.DURATION),
        ("null", types.NULL),
        ("list(string)", list_of(types.STRING)),
        ("map(string, list(int))", map_of(types.STRING, list_of(types.INT))),
        ("optional_type(A)", optional_of(parameter("A"))),
        ("kubernetes.URL", message("kubernetes.URL")),
        ("list", list_of(types.DYN)),
        ("map", map_of(types.DYN, types.DYN)),
        ("type", types.TYPE),
        (" list ( int ) ", list_of(types.INT)),
    ],
)
def test_a_type_is_read_as_it_is_written(text, found):
    """Names, types within brackets, and the bare name of a list or a map for one of anything."""
    assert written(text) == found


@pytest.mark.parametrize(
    "text",
    [
        *("", "(", "list(", "list(int", "list(int))", "list()", "list(int, int)", "map(int)", "int string", "a b"),
        *("int(string)", "a.Message(int)", ",", "list(,)", "list(int,)", "1", "list(§)"),
    ],
)
def test_what_is_no_type_is_refused(text):
    """The message says what was written, and what can be."""
    with pytest.raises(ValueError, match="is no type: write int"):
        written(text)


@pytest.mark.parametrize(("text", "count"), [("()", 0), ("(int)", 1), ("(int, list(A))", 2), ("(map(A, B), A, B)", 3)])
def test_parameters_are_read_one_by_one(text, count):
    """A pair of brackets holds any number of types."""
    assert len(all_written(text)) == count


@pytest.mark.parametrize("text", ["", "int", "(int", "(int))", "(int int)"])
def test_parameters_stand_in_one_pair_of_brackets(text):
    """All else is refused."""
    with pytest.raises(ValueError, match="is no type"):
        all_written(text)


@pytest.mark.property
@given(texts)
def test_a_type_is_written_as_it_was_read(text):
    """The text of a type is that type; type parameters are shown in angle brackets."""
    assert str(written(text)).replace("<", "").replace(">", "") == text


@pytest.mark.property
@given(st.text(alphabet="listmap(),A. ", max_size=20))
def test_every_text_is_a_type_or_refused(text):
    """No other exception is raised."""
    try:
        found = written(text)
    except ValueError:
        return
    assert written(str(found).replace("<", "").replace(">", "")) == found


@pytest.mark.parametrize(
    ("kind", "shown"),
    [
        (types.NULL, "null"),
        (types.TIMESTAMP, "timestamp"),
        (types.DURATION, "duration"),
        (types.ERROR, "!error!"),
        (list_of(types.TIMESTAMP), "list(timestamp)"),
        (map_of(types.STRING, types.NULL), "map(string, null)"),
        (message("a.Message"), "a.Message"),
    ],
)
def test_the_checker_shows_some_types_by_short_names(kind, shown):
    """As cel-go's FormatCELType."""
    assert kind.displayed == shown


def test_programs_see_long_names():
    """``must evaluate to bool but got google.protobuf.Timestamp``."""
    assert str(list_of(types.TIMESTAMP)) == "list(google.protobuf.Timestamp)"


def test_the_size_of_a_type_counts_those_within():
    """One for itself, and those of its parameters."""
    assert map_of(types.STRING, list_of(types.INT)).size == 4


def test_a_type_may_be_as_large_as_the_limit():
    """And not larger."""
    kind = types.INT
    for _ in range(LARGEST_TYPE - 1):
        kind = list_of(kind)
    assert kind.size == LARGEST_TYPE
    with pytest.raises(TypeTooLarge):
        list_of(kind)


@pytest.mark.parametrize("kind", Kind)
def test_kinds_hash_as_their_names(kind):
    """An Enum's own hash is a function in Python, and types are hashed all through compiling."""
    assert hash(kind) == hash(kind.value)
