"""What Kubernetes' own CEL environment made of two thousand expressions: values, costs, and errors word by word."""

import json
from pathlib import Path

import pytest

from tests.cel.world import Given, worked_out

TABLE = [*map(json.loads, (Path(__file__).parent / "cases" / "values.jsonl").read_bytes().splitlines())]
"""Each: its group, the expression, and ``value`` with value and cost, or ``error`` or ``compile`` with its words."""


@pytest.mark.parametrize("group", dict.fromkeys(group for group, *_ in TABLE))
def test_expressions_come_to_what_they_come_to_in_kubernetes(group):
    """A value is the same and costs the same; an error has the same text."""
    given = Given()
    differing = {}
    for _, expression, kind, detail, *cost in (case for case in TABLE if case[0] == group):
        found = worked_out(expression, given)
        if (found.kind, found.detail) != (kind, detail) or (cost and found.cost != cost[0]):
            differing[expression] = found
    assert differing == {}
