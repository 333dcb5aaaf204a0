"""What a condition may cost: Kubernetes' own limits and its own way of counting, and one limit of ours.

Kubernetes counts what an expression does while it does it (cel-go's runtimecost.go,
k8s.io/apiserver/pkg/cel/library/cost.go): 1 for each name, selection and call, more for what depends on a size,
350,000 for asking the authorizer. An expression may cost a million; the conditions of one webhook together 2,500,000.
"current PerCallLimit gives roughly 0.1 second for each expression validation call"; here it is some tenths of a
second.

Some work costs nothing there: a comparison of two large objects costs what their top levels cost, an iteration whose
body is a constant is free. The API server has a deadline for such things. A pure function has no clock, so it counts:
``effort`` is one for each element looked at, whatever it costs.
"""

from typing import Any, Final

from gateway.cel.values.faults import Aborted

LARGEST_COST: Final = 1_000_000
"""Of one expression (celconfig.PerCallLimit)."""

LARGEST_COST_PER_WEBHOOK: Final = 2_500_000
"""Of all conditions of one webhook (celconfig.RuntimeCELCostBudgetMatchConditions)."""

OUT_OF_BUDGET: Final = "validation failed due to running out of cost budget, no further validation rules will be run"
"""What becomes of a webhook's conditions when together they cost more."""

_TOO_EXPENSIVE: Final = "operation cancelled: actual cost limit exceeded"
_TOO_LONG: Final = "operation interrupted"

LARGEST_EFFORT: Final = 1_000_000
"""Elements. At some 0.5 microseconds each, this is as long as a million of cost takes."""

_LARGE: Final = 4096
"""Characters or elements; what is shorter is not worth counting."""

_PER_STEP: Final = 16
"""Characters or elements that are copied or scanned in the time of one step. Kubernetes counts a tenth of a string's
length for most functions; where it counts nothing, this does."""


class Meter:
    """Counts during one evaluation."""

    __slots__ = ("cost", "effort")

    def __init__(self) -> None:
        self.cost = 0
        self.effort = 0

    def charge(self, cost: int) -> None:
        """Add to the cost; raises Aborted when it is too much."""
        self.cost += cost
        if self.cost > LARGEST_COST:
            raise Aborted(_TOO_EXPENSIVE)

    def strive(self, steps: int) -> None:
        """Add to the effort; raises Aborted when it is too much."""
        self.effort += steps
        if self.effort > LARGEST_EFFORT:
            raise Aborted(_TOO_LONG)

    def heed(self, value: Any) -> None:
        """Add to the effort what it takes to copy or scan a large string or list."""
        if isinstance(value, str | bytes | list) and len(value) > _LARGE:
            self.strive(len(value) // _PER_STEP)

    def settle(self) -> None:
        """Raise Aborted if the cost is too much by now."""
        if self.cost > LARGEST_COST:
            raise Aborted(_TOO_EXPENSIVE)
