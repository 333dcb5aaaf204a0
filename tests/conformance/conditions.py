"""Cases of one matchCondition each: an expression and an input -> true, false, an error, or no configuration at all.

``error`` is that of one request; ``compileError`` one of the expression. Error texts are shown, and not compared.
"""

from typing import TYPE_CHECKING, Any

from gateway.cel.match_conditions import compile_condition
from gateway.cel.program import EvaluationError, NeedsAuthorization
from gateway.matching.conditions import Variables
from tests.conformance.cases import Case, CaseError, Result, member
from tests.conformance.requests import authorize, complete, review

if TYPE_CHECKING:
    from gateway.cel.authorization import Authorization, AuthorizationCheck

KIND = "condition"

_CHECKS_AT_MOST = 100
"""More than any condition can pay for: kube-apiserver's budget is that of two."""


def recognizes(case: Case) -> bool:
    """Whether this is such a case."""
    return case.has("expr", "outcome")


def run(case: Case) -> Result:
    """Compile, and evaluate."""
    given = case.get("input", dict)
    outcome = case.get("outcome", (str, bool))
    expected = {
        "outcome": str(outcome).lower() if isinstance(outcome, bool) else outcome,
        "error": case.members.get("error") or "",
    }
    got = _outcome(case.get("expr", str), given)
    return Result(expected=expected, got=got, agrees=got["outcome"] == expected["outcome"])


def _outcome(expression: str, given: Any) -> dict[str, str]:
    condition = compile_condition(expression)
    if condition.error is not None:
        return {"outcome": "compileError", "error": condition.error}
    # Without a uid there is no review; no expression can see it.
    body = {
        **complete(member(given, "request", dict, {})),
        "uid": "of no interest",
        "object": member(given, "object", dict, None),
        "oldObject": member(given, "oldObject", dict, None),
    }
    request = review(body)
    variables = Variables(request, lambda: request.object, {})
    authorizations: dict[AuthorizationCheck, Authorization] = {}
    for _ in range(_CHECKS_AT_MOST):
        match condition.evaluate(variables, authorizations).outcome:
            case bool() as value:
                return {"outcome": str(value).lower(), "error": ""}
            case EvaluationError(message=message):
                return {"outcome": "error", "error": f"expression '{expression}' resulted in error: {message}"}
            case NeedsAuthorization(check=check):
                user = request.user_info.username
                authorizations[check] = authorize(given.get("authorizer"), check, user)
    raise CaseError(f"after {_CHECKS_AT_MOST} checks the condition needs another one")
