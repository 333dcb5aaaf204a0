"""A condition is compiled once, and evaluated for each request.

Compiling: parse, check types, check constants, plan (``language``). All mistakes that the API server would find are
found, in its words (k8s.io/apiserver/pkg/admission/plugin/cel/compile.go): ``compilation failed: ...`` with all
places, ``must evaluate to bool but got ...``, ``program instantiation failed: ...``.

Evaluating: the plan walks over the decoded objects and touches only what the expression names; so the size of an object
does not matter. It counts what Kubernetes counts, and stops where Kubernetes stops (``budget``).
"""

from collections.abc import Mapping
from functools import lru_cache, partial
from typing import Final

from gateway.cel.authorization import Authorization, AuthorizationCheck
from gateway.cel.budget import LARGEST_COST
from gateway.cel.condition import Condition, Evaluation, EvaluationError, NeedsAuthorization, Outcome, Variables
from gateway.cel.language.checker import check
from gateway.cel.language.frame import Frame
from gateway.cel.language.literals import validate
from gateway.cel.language.parser import parse
from gateway.cel.language.plan import GLOBALS, Plan, Uninstantiable, plan
from gateway.cel.language.source import describe
from gateway.cel.language.wording import reworded
from gateway.cel.libraries.authorizer import Authorizer, request_resource
from gateway.cel.values import types
from gateway.cel.values.faults import Aborted, Fault, Unanswered


def _weighed(
    planned: Plan, variables: Variables, authorizations: Mapping[AuthorizationCheck, Authorization]
) -> Evaluation:
    frame = Frame([None] * planned.slots)
    try:
        _fill(frame, planned.used, variables, authorizations)
        outcome = _run(planned, frame)
    except Exception as error:  # noqa: BLE001 - as cel-go does: whatever happens becomes the expression's error
        outcome = EvaluationError(message=f"internal error: {type(error).__name__}: {error}")
    return Evaluation(outcome=outcome, cost=frame.cost)


def _fill(
    frame: Frame,
    used: frozenset[str],
    variables: Variables,
    authorizations: Mapping[AuthorizationCheck, Authorization],
) -> None:
    """Put the variables that the expression names into their slots. (namespaceObject is null for webhooks.)"""
    for slot, name in enumerate(GLOBALS):
        if name not in used:
            continue
        if name == "object":
            frame.slots[slot] = variables.object
        elif name == "oldObject":
            frame.slots[slot] = variables.old_object
        elif name == "request":
            request = variables.request
            frame.slots[slot] = request if isinstance(request, dict) else dict(request)
        elif name == "authorizer":
            frame.slots[slot] = Authorizer(authorizations)
        elif name == "authorizer.requestResource":
            frame.slots[slot] = request_resource(Authorizer(authorizations), variables.request)


def _run(planned: Plan, frame: Frame) -> Outcome:
    try:
        value = planned.run(frame)
        frame.settle()
    except Unanswered as missing:
        return NeedsAuthorization(check=missing.check)
    except Aborted as spent:
        return EvaluationError(message=spent.message)
    except Fault as fault:
        if frame.cost > LARGEST_COST:
            return EvaluationError(message=_TOO_EXPENSIVE)
        return EvaluationError(message=fault.message)
    return value if isinstance(value, bool) else EvaluationError(message="no such overload")


_TOO_EXPENSIVE: Final = "operation cancelled: actual cost limit exceeded"

_MOST_KEPT: Final = 4096
"""Compiled conditions: 64 webhooks with 64 conditions each, a few kilobytes apiece."""


@lru_cache(maxsize=_MOST_KEPT)
def compile_condition(expression: str) -> Condition:
    """Compile; never raises: what is wrong stands in ``error``."""
    try:
        return _compiled(expression)
    except RecursionError:
        return Condition(expression=expression, error=f"{_FAILED}ERROR: <input>:-1:0: max recursion depth exceeded")


_FAILED: Final = "compilation failed: "


def _compiled(expression: str) -> Condition:
    parsed = parse(expression)
    if parsed.tree is None:
        return Condition(expression=expression, error=_FAILED + reworded(expression, parsed.problems))
    checked = check(parsed.tree)
    problems = checked.problems or validate(parsed.tree, checked)
    if problems:
        return Condition(expression=expression, error=_FAILED + describe(expression, problems))
    if checked.type != types.BOOL:
        return Condition(expression=expression, error=f"must evaluate to bool but got {checked.type}")
    try:
        return Condition(expression=expression, _evaluation=partial(_weighed, plan(parsed.tree, checked)))
    except Uninstantiable as error:
        return Condition(expression=expression, error=f"program instantiation failed: {error}")
