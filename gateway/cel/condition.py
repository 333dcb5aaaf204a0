"""One condition: what it can name, and what it comes to.

``compilation`` makes it. That is a module of its own: whoever reads policies without conditions need not load CEL.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from gateway.cel.authorization import Authorization, AuthorizationCheck


class Variables(Protocol):
    """What an expression can name. Each is worked out only if the expression names it."""

    @property
    def object(self) -> Any:
        """The object as it is now: a decoded JSON object, or None."""

    @property
    def old_object(self) -> Any:
        """The old object, or None."""

    @property
    def request(self) -> Mapping[str, Any]:
        """The AdmissionRequest in its JSON shape, without uid, object and oldObject; empty members absent."""


@dataclass(frozen=True, kw_only=True, slots=True)
class EvaluationError:
    """The expression has no value: ``message`` in the API server's words (``no such key: nope``)."""

    message: str


@dataclass(frozen=True, kw_only=True, slots=True)
class NeedsAuthorization:
    """The value depends on the answer to this check."""

    check: AuthorizationCheck


Outcome = bool | EvaluationError | NeedsAuthorization


@dataclass(frozen=True, kw_only=True, slots=True)
class Evaluation:
    """An outcome, and what it cost in Kubernetes' counting (see ``budget``)."""

    outcome: Outcome
    cost: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Condition:
    """An expression. ``error`` says why it does not compile, in the API server's words; else it can be evaluated.

    ``warnings`` say what of it is not as in the API server: nothing, since budgets and functions are the same.
    """

    expression: str
    error: str | None = None
    warnings: tuple[str, ...] = ()
    _evaluation: "_Evaluate | None" = field(default=None, repr=False, compare=False)

    def evaluate(self, variables: Variables, authorizations: Mapping[AuthorizationCheck, Authorization]) -> Outcome:
        """The condition's value for one request; an EvaluationError if it does not compile. Never raises.

        Args:
            variables: what the expression can name; only what it names is asked for.
            authorizations: the answers so far; a check that is not among them, and matters, is NeedsAuthorization.
        """
        return self.weigh(variables, authorizations).outcome

    def weigh(self, variables: Variables, authorizations: Mapping[AuthorizationCheck, Authorization]) -> Evaluation:
        """As ``evaluate``, with the cost: the conditions of a webhook together have a budget, too."""
        if self._evaluation is None:
            return Evaluation(outcome=EvaluationError(message=self.error or "not compiled"), cost=0)
        return self._evaluation(variables, authorizations)


_Evaluate = Callable[[Variables, Mapping[AuthorizationCheck, Authorization]], Evaluation]
