"""What Kubernetes' own CEL environment made of two thousand expressions: values, costs, and errors word by word."""

import json
from pathlib import Path

import pytest

from tests.conditions.world import Given, worked_out

TABLE = json.loads((Path(__file__).parent / "cases" / "values.json").read_text())


@pytest.mark.parametrize("group", TABLE)
def test_expressions_come_to_what_they_come_to_in_kubernetes(group):
    """A value is the same and costs the same; an error and a mistake are told in the same words."""
    given = Given()
    differing = {}
    for expression, kind, detail, *cost in TABLE[group]:
        found = worked_out(expression, given)
        if (found.kind, found.detail) != (kind, detail) or (cost and found.cost != cost[0]):
            differing[expression] = found
    assert differing == {}
