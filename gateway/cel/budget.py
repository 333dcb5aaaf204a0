"""What an expression may cost: Kubernetes' own limits and its own way of counting, and one limit of ours.

Kubernetes counts what an expression does while it does it (cel-go's runtimecost.go,
k8s.io/apiserver/pkg/cel/library/cost.go): 1 for each name, selection and call, more for what depends on a size,
350,000 for an authorization check. An expression may cost a million; the matchConditions of one webhook together
2,500,000. "current PerCallLimit gives roughly 0.1 second for each expression validation call"; here it is some tenths
of a second.

Some work costs nothing there: a comparison of two large objects costs what their top levels cost, an iteration whose
body is a constant is free. The API server has a deadline for such work. A pure function has no clock, so it counts:
``effort`` is one for each element that is read, whatever it costs.
"""

from typing import Final

LARGEST_COST: Final = 1_000_000
"""Of one expression (celconfig.PerCallLimit)."""

LARGEST_COST_PER_WEBHOOK: Final = 2_500_000
"""Of all matchConditions of one webhook (celconfig.RuntimeCELCostBudgetMatchConditions)."""

OUT_OF_BUDGET: Final = "validation failed due to running out of cost budget, no further validation rules will be run"
"""The error of a webhook's matchConditions that together cost more."""

LARGEST_EFFORT: Final = 1_000_000
"""Elements. At some 0.5 microseconds each, this is as long as a million of cost takes."""

LARGE: Final = 4096
"""Characters or elements; what is shorter is read in the time of one step."""

PER_STEP: Final = 16
"""Characters or elements of what is large that are copied or scanned in the time of one step. Kubernetes counts a tenth
of a string's length for most functions; where it counts nothing, this does."""

TOO_EXPENSIVE: Final = "operation cancelled: actual cost limit exceeded"
"""The error of an expression that costs more than its limit (cel-go's words)."""

TOO_LONG: Final = "operation interrupted"
"""The error of an expression that takes more effort than its limit (cel-go's words for the end of a deadline)."""
