"""A matchCondition: an expression of type bool over the variables of an admission request.

``match_conditions`` compiles conditions. It is a module of its own: policies without conditions need not load CEL.
"""

from collections.abc import Callable, Mapping
from typing import Any, Protocol

import msgspec

from gateway.cel.authorization import Authorization, AuthorizationCheck
from gateway.cel.program import (
    Evaluation,
    EvaluationError,
    NeedsAuthorization,
    Program,
    Share,
    Unfinished,
    internal_error,
)

Authorizations = Mapping[AuthorizationCheck, Authorization]
"""The answers so far."""


class Variables(Protocol):
    """What a condition can name. Each is read only if the expression names it."""

    @property
    def object(self) -> Any:
        """The object as it is now: a decoded JSON object, or None."""

    @property
    def old_object(self) -> Any:
        """The old object, or None."""

    @property
    def request(self) -> Mapping[str, Any]:
        """The AdmissionRequest in its JSON shape, without uid, object and oldObject; empty members absent."""


Reader = Callable[[Variables, Authorizations], Any]
"""Reads one variable."""


class Condition(msgspec.Struct, frozen=True, kw_only=True):
    """An expression. ``error`` says why it does not compile, in the API server's words; else it can be evaluated."""

    expression: str
    error: str | None = None
    _program: Program | None = None
    _readers: tuple[Reader, ...] = ()

    def __eq__(self, other: object) -> bool:
        """Two conditions are equal if their texts are."""
        return isinstance(other, Condition) and self.expression == other.expression and self.error == other.error

    def __hash__(self) -> int:
        return hash(self.expression)

    @property
    def variables(self) -> tuple[str, ...]:
        """The variables that the expression names."""
        return () if self._program is None else self._program.variables

    def evaluate(self, variables: Variables, authorizations: Authorizations, share: Share | None = None) -> Evaluation:
        """The condition's value for one request: true, false, EvaluationError, NeedsAuthorization or UNFINISHED. Never
        raises.

        Args:
            variables: what the expression can name; only what it names is read.
            authorizations: the answers so far; a check that is not among them, and matters, is NeedsAuthorization.
            share: what takes more of it than there is left is UNFINISHED; None: it is always finished.
        """
        program = self._program
        if program is None:
            return Evaluation(outcome=EvaluationError(message=self.error or "not compiled"), cost=0)
        try:
            values = [read(variables, authorizations) for read in self._readers]
        except Exception as error:  # noqa: BLE001 - see internal_error
            return Evaluation(outcome=internal_error(error), cost=0)
        evaluation = program.run(values) if share is None else program.run_within(share, values)
        if isinstance(evaluation.outcome, bool | EvaluationError | NeedsAuthorization | Unfinished):
            return evaluation
        return Evaluation(outcome=EvaluationError(message="no such overload"), cost=evaluation.cost)
