"""Where an expression comes to something else than in kube-apiserver: docs/differences.md, "CEL"."""

import pytest

from gateway.cel.match_conditions import compile_condition
from gateway.cel.program import EvaluationError
from tests.cel.world import Given


def outcome(expression, **variables):
    return compile_condition(expression).evaluate(Given(**variables), {}).outcome


def test_the_members_of_an_object_come_in_their_order():
    """In Go a map has no order, and each evaluation may take another one; here it is that of the text."""
    assert outcome("object.map(k, k) == ['b', 'a', 'c']", object={"b": 1, "a": 2, "c": 3}) is True


def test_a_key_that_cannot_be_one_is_not_in_the_map():
    """In Go, testing whether a map has bytes as a key is an internal error."""
    assert outcome("dyn(b'a') in {'a': 1}") is False


def test_an_optional_entry_of_unknown_type_is_reported():
    """kube-apiserver's compiler panics, and says so."""
    assert "expected type 'optional_type(dyn)' but found 'dyn'" in compile_condition("[?object] == []").error


@pytest.mark.parametrize("quantity", ["1" + "0" * 5000, "1e5000"])
def test_a_quantity_beyond_all_bounds_is_refused(quantity):
    """kube-apiserver works them out, for minutes if need be."""
    assert outcome(f"isQuantity('{quantity}')") is False


@pytest.mark.parametrize(
    "expression",
    [
        "object.all(x, object == object)",
        "'%s'.format([object.map(x, object.map(y, object))]) != ''",
    ],
)
def test_work_that_costs_nothing_there_is_counted_here(expression):
    """There a deadline ends it; a pure function has no clock, so it counts what it looks at."""
    found = outcome(expression, object=[list(range(300))] * 2000)
    assert isinstance(found, EvaluationError)
    assert found.message in {"operation interrupted", "operation cancelled: actual cost limit exceeded"}


def test_a_large_text_cannot_be_written_many_times():
    """Neither the cost nor the length of a format string bounds what it becomes."""
    found = outcome("'%s'.format([object.l.map(x, object.s)]) != ''", object={"l": [0] * 9000, "s": "x" * 3_000_000})
    assert found == EvaluationError(message="operation interrupted")


def test_the_zones_of_the_world_are_known():
    """Also where the system has no time zones."""
    assert outcome("timestamp('2024-07-01T00:00:00Z').getHours('Europe/Berlin') == 2") is True


def test_the_machines_own_zone_is_not_known():
    """A verdict must not depend on where the gateway runs."""
    assert isinstance(outcome("timestamp('2024-07-01T00:00:00Z').getHours('Local') == 0"), EvaluationError)


def test_unneeded_messages_are_absent():
    """Any and Value of google.protobuf are not declared."""
    assert "undeclared reference" in compile_condition("google.protobuf.Value{} == null").error
