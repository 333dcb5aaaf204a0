"""matchConditions: "All of the following conditions must be true for the webhook to be called".

* All conditions are evaluated before the result is decided. If together they cost more than one webhook's budget, that
  is an error whatever their values: kube-apiserver checks this first.
* Any false: not matched, even if another condition is an error or needs an authorization ("If any condition false,
  skip calling webhook always").
* Else a missing authorization is looked up, even if another condition is an error: the condition may become false.
* Else any error: undecidable, and failurePolicy applies. An authorization check that failed is such an error in each
  condition that depends on it. It must not be taken for "not allowed": the policy may be meant for just those users, or
  exempt them.
* An expression sees the current object, and the request as CreateAdmissionRequest makes it: ``kind`` is that of the
  current object, ``resource`` and ``subResource`` are those of the client's request, and empty members are absent.
  ``uid`` and the objects are not in it.
"""

from collections.abc import Callable, Mapping
from functools import cached_property, partial
from typing import Any, Final

import msgspec

from gateway.cel.authorization import Authorization, AuthorizationCheck
from gateway.cel.budget import LARGEST_COST, LARGEST_COST_PER_WEBHOOK, OUT_OF_BUDGET
from gateway.cel.condition import Condition
from gateway.cel.program import UNFINISHED, Evaluation, EvaluationError, NeedsAuthorization, Share
from gateway.matching.outcomes import (
    MATCHED,
    EvaluationSubject,
    Matched,
    NeedsEvaluation,
    NotMatched,
    Undecidable,
    Unknown,
)
from gateway.matching.status_messages import aggregate, forbidden
from gateway.policies.model import MatchCondition, Policy
from gateway.reasons import Reason
from gateway.review.request import Request

Authorizations = Mapping[AuthorizationCheck, Authorization | Unknown]
KnownAuthorizations = Mapping[AuthorizationCheck, Authorization]

AT_ONCE: Final = 20_000
"""Of cost and effort, of all evaluations of one event of a review: at 0.2 to 0.7 µs each, 4 to 14 ms of the event loop.
What takes longer is done elsewhere."""


def by_conditions(  # noqa: C901 - another function would cost each review
    policy: Policy,
    request: Request,
    current: Callable[[], Any],
    authorizations: Authorizations,
    shown: dict[str, Any],
    evaluations: "Evaluations",
) -> Matched | NotMatched | NeedsAuthorization | NeedsEvaluation | Undecidable:
    """Whether all conditions are true for the request and the object that ``current`` returns.

    ``shown`` is the variable ``request``, which all policies of a review share: empty until an expression names it.
    ``evaluations``: see there.
    """
    variables = Variables(request, current, shown)
    known = {check: found for check, found in authorizations.items() if isinstance(found, Authorization)}
    wrong: str | None = None
    errors: list[str] = []
    needed: list[NeedsAuthorization] = []
    budget, dearest = LARGEST_COST_PER_WEBHOOK, len(policy.match_conditions) * LARGEST_COST
    for each in policy.match_conditions:
        evaluation = evaluations.of(each, variables, known)
        budget, dearest = budget - evaluation.cost, dearest - LARGEST_COST
        if budget < 0:
            return _undecidable(policy, request, [OUT_OF_BUDGET])
        match evaluation.outcome:
            case NeedsEvaluation() as long:
                return long
            case False:
                wrong = wrong or each.name
            case EvaluationError(message=message):
                errors.append(_error(each, message))
            case NeedsAuthorization(check=check) as missing:
                match authorizations.get(check):
                    case Unknown(message=message):
                        errors.append(_error(each, message))
                    case _:
                        needed.append(missing)
        if wrong is not None and dearest <= budget:
            break  # neither the values nor the costs of the others can change the result
    if wrong is not None:
        return NotMatched(why=f"matchConditions: {wrong}")
    if needed:
        return needed[0]
    return _undecidable(policy, request, errors) if errors else MATCHED


class Evaluations:
    """The evaluations of one review: what they may take at once, and the results of those that took longer.

    Args:
        at_once: the cost and effort of all of them until ``refill``; None: they are finished, however long they take.
    """

    __slots__ = ("_at_once", "_results", "_share")

    def __init__(self, at_once: int | None) -> None:
        self._at_once = at_once
        self._share = None if at_once is None else Share(at_once)
        self._results: list[tuple[EvaluationSubject, Evaluation]] = []

    def refill(self) -> None:
        """The evaluations of the next event have the whole share again."""
        if self._share is not None and self._at_once is not None:
            self._share.left = self._at_once

    def finished(self, subject: EvaluationSubject, evaluation: Evaluation) -> None:
        """Keep the result of an evaluation that was needed."""
        self._results.append((subject, evaluation))

    def of(self, condition: MatchCondition, variables: "Variables", known: KnownAuthorizations) -> Evaluation:
        """The evaluation of a condition; its outcome is NeedsEvaluation if it takes long, and is not known."""
        if self._results:
            wanted = _subject(condition.condition, variables, known)
            for subject, result in self._results:
                if subject.is_same(wanted):
                    return result
        evaluation = condition.condition.evaluate(variables, known, self._share)
        if evaluation.outcome is not UNFINISHED:
            return evaluation
        need = NeedsEvaluation(
            condition=condition.name,
            subject=_subject(condition.condition, variables, known),
            # What it names has been read by now.
            finish=partial(condition.condition.evaluate, variables, known),
        )
        return Evaluation(outcome=need, cost=0)


FINISHED_AT_ONCE: Final = Evaluations(None)


def _subject(condition: Condition, variables: "Variables", known: KnownAuthorizations) -> EvaluationSubject:
    return EvaluationSubject(
        expression=condition.expression,
        object=variables.object if "object" in condition.variables else None,
        authorizations=len(known),
    )


def _error(condition: MatchCondition, message: str) -> str:
    if condition.condition.error is not None:
        return f"compilation error: {condition.condition.error}"
    return f"expression '{condition.condition.expression}' resulted in error: {message}"


def _undecidable(policy: Policy, request: Request, errors: list[str]) -> Undecidable:
    resource = request.request_resource
    message, details = forbidden(resource.group, resource.resource, request.name, aggregate(errors))
    return Undecidable(
        reason=Reason.CONDITION_ERROR,
        message=message,
        details=details,
        hint=f"the matchConditions of policy {policy.name} have no value for this request: guard them with has()",
    )


class Variables:
    """The variables of expressions, made from a request; each is computed only if an expression names it."""

    def __init__(self, request: Request, current: Callable[[], Any], shown: dict[str, Any]) -> None:
        self._request = request
        self._current = current
        self._shown = shown

    @cached_property
    def object(self) -> Any:
        """The current object."""
        return self._current()

    @property
    def old_object(self) -> Any:
        """The old object."""
        return self._request.old_object

    @property
    def request(self) -> Mapping[str, Any]:
        """The AdmissionRequest, as kube-apiserver's CreateAdmissionRequest makes it for expressions."""
        if not self._shown:
            self._shown.update(self._made())
        return self._shown

    def _made(self) -> dict[str, Any]:
        request = self._request
        original = msgspec.to_builtins(request.request_resource)
        members = {
            "kind": msgspec.to_builtins(request.kind),
            "resource": original,
            "subResource": request.request_sub_resource,
            "requestKind": msgspec.to_builtins(request.request_kind),
            "requestResource": original,
            "requestSubResource": request.request_sub_resource,
            "name": request.name,
            "namespace": request.namespace,
            "operation": request.operation,
        }
        user = msgspec.to_builtins(request.user_info)
        return {
            **{key: value for key, value in members.items() if value},
            "userInfo": {key: value for key, value in user.items() if value},
            "dryRun": request.dry_run,
            "options": request.options,
        }
