"""A program is a compiled expression; evaluating it gives an outcome and a cost.

``Environment.compile`` makes programs. They are immutable, hold no state between evaluations, and can be evaluated from
several threads at once.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final

import msgspec

from gateway.cel.authorization import AuthorizationCheck
from gateway.cel.budget import LARGEST_COST, LARGEST_EFFORT, TOO_EXPENSIVE
from gateway.cel.interpreter.frame import Frame
from gateway.cel.values.faults import Aborted, Fault, Unanswered
from gateway.cel.values.types import Type


class EvaluationError(msgspec.Struct, frozen=True, kw_only=True):
    """The expression has no value: ``message`` in the API server's words (``no such key: nope``)."""

    message: str


class NeedsAuthorization(msgspec.Struct, frozen=True, kw_only=True):
    """The value depends on the answer to this check: get it, and evaluate again with it."""

    check: AuthorizationCheck


class Evaluation(msgspec.Struct, frozen=True, kw_only=True):
    """An outcome, and what it cost in Kubernetes' counting (see ``budget``).

    ``outcome`` is an EvaluationError, NeedsAuthorization, UNFINISHED, or else the value: see ``values`` for how CEL's
    values stand as Python objects.
    """

    outcome: Any
    cost: int


class Unfinished(msgspec.Struct, frozen=True):
    """The evaluation takes more than its share; all of it takes up to a second."""


UNFINISHED: Final = Unfinished()


class Share(msgspec.Struct, eq=False):
    """What evaluations may take together before others have their turn: ``left`` of cost and effort."""

    left: int


class Program(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """A compiled expression: ``result`` is its type, ``variables`` are those it names."""

    expression: str
    result: Type
    variables: tuple[str, ...]
    _run: Callable[[Frame], Any]
    _locals: tuple[None, ...]

    def evaluate(self, activation: Mapping[str, Any], *, limit: int = LARGEST_COST) -> Evaluation:
        """The outcome for these values of variables, and its cost. Never raises.

        Args:
            activation: the values of the declared variables by name, as decoded JSON or other values of CEL. Only the
                variables that the expression names are read.
            limit: the largest cost; an expression that costs more is an EvaluationError.
        """
        try:
            values = [activation[name] for name in self.variables]
        except Exception as error:  # noqa: BLE001 - see internal_error
            return Evaluation(outcome=internal_error(error), cost=0)
        return self.run(values, limit)

    def run(self, values: list[Any], limit: int = LARGEST_COST) -> Evaluation:
        """As ``evaluate``, with the values in the order of ``variables``. The list becomes the program's own."""
        values += self._locals
        return self._evaluated(Frame(values, limit))

    def run_within(self, share: Share, values: list[Any]) -> Evaluation:
        """As ``run``, and UNFINISHED if that takes more than what is left of a share, which it reduces."""
        left = max(share.left, 0)
        values += self._locals
        frame = Frame(values, min(left, LARGEST_COST), min(left, LARGEST_EFFORT))
        evaluation = self._evaluated(frame)
        share.left -= frame.cost + frame.effort
        if left < frame.cost <= LARGEST_COST or left < frame.effort <= LARGEST_EFFORT:
            return Evaluation(outcome=UNFINISHED, cost=0)
        return evaluation

    def _evaluated(self, frame: Frame) -> Evaluation:
        try:
            outcome = self._run(frame)
            frame.settle()
        except Unanswered as missing:
            outcome = NeedsAuthorization(check=missing.check)
        except Aborted as aborted:
            outcome = EvaluationError(message=aborted.message)
        except Fault as fault:
            outcome = EvaluationError(message=TOO_EXPENSIVE if frame.cost > frame.limit else fault.message)
        except Exception as error:  # noqa: BLE001 - see internal_error
            outcome = internal_error(error)
        return Evaluation(outcome=outcome, cost=frame.cost)


def internal_error(error: Exception) -> EvaluationError:
    """What an exception of Python's comes to: as in cel-go, whatever happens becomes the expression's error."""
    return EvaluationError(message=f"internal error: {type(error).__name__}: {error}")
