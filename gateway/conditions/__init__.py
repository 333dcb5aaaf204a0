"""CEL as kube-apiserver has it for matchConditions: text -> condition; condition, variables -> true, false, error."""

from gateway.conditions.authorization import Authorization, AuthorizationCheck
from gateway.conditions.budget import LARGEST_COST, LARGEST_COST_PER_WEBHOOK, OUT_OF_BUDGET
from gateway.conditions.condition import (
    Condition,
    Evaluation,
    EvaluationError,
    NeedsAuthorization,
    Outcome,
    Variables,
    compile_condition,
)

__all__ = [
    "LARGEST_COST",
    "LARGEST_COST_PER_WEBHOOK",
    "OUT_OF_BUDGET",
    "Authorization",
    "AuthorizationCheck",
    "Condition",
    "Evaluation",
    "EvaluationError",
    "NeedsAuthorization",
    "Outcome",
    "Variables",
    "compile_condition",
]
