"""Thousands of expressions, and what became of each in Kubernetes: true, false, an error, or no expression at all."""

import json
from pathlib import Path
from typing import Any

import pytest

from gateway.cel.authorization import Authorization, AuthorizationCheck
from gateway.cel.match_conditions import compile_condition
from gateway.cel.program import EvaluationError, NeedsAuthorization
from tests.cel.world import Given

CASES = Path(__file__).parent / "cases" / "outcomes.jsonl"


def allowed(check: AuthorizationCheck) -> bool:
    """The authorizer that Kubernetes' environment was given."""
    return check.verb == "breakglass" or (check.resource == "deployments" and check.namespace == "prod")


def outcome(expression: str, given: Any) -> str:
    """What becomes of an expression here."""
    condition = compile_condition(expression)
    if condition.error is not None:
        return "compileError"
    answers: dict[AuthorizationCheck, Authorization] = {}
    while isinstance(found := condition.evaluate(given, answers).outcome, NeedsAuthorization):
        answers[found.check] = Authorization(allowed=allowed(found.check))
    return "error" if isinstance(found, EvaluationError) else str(found).lower()


@pytest.mark.parametrize("expected", ["true", "false", "error", "compileError"])
def test_an_expression_comes_to_what_it_comes_to_in_kubernetes(expected):
    """Functions with all kinds of arguments, macros, optionals, conversions, comparisons, texts, times, numbers."""
    cases = [case for kind, case in map(json.loads, CASES.read_bytes().splitlines()) if kind == expected]
    given = Given()
    assert len(cases) >= 500
    assert {each: found for each in cases if (found := outcome(each, given)) != expected} == {}
