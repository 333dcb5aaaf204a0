"""Which policy's turn it is.

* Mutating: one turn at a time, in chain order, until a policy refuses. If the object has changed by the end of the
  chain, a second round follows; ``Reinvocation`` decides which policies are called in it.
* Validating: all turns at once, in a single round.
"""

from collections.abc import Iterator, Sequence
from operator import attrgetter
from typing import Final

from gateway.engine.deadlines import Budget
from gateway.engine.plan import Plan
from gateway.engine.policy_call import PolicyInvocation
from gateway.engine.review_state import ReviewState
from gateway.policies.model import Phase

_DEADLINE: Final = attrgetter("deadline")

ROUNDS: Final = 2
"""kube-apiserver reinvokes at most once."""


class PolicyChain:
    """The current position in the chain; ``active`` are the turns that have begun and not ended.

    ``places`` are the indexes of the policies that have a turn, in chain order: all of them, until the engine sets
    those that have a rule about the request.
    """

    def __init__(self, plan: Plan, budget: Budget, state: ReviewState) -> None:
        self._members = plan.members
        self._parallel = plan.phase is Phase.VALIDATING
        self._budget = budget
        self._state = state
        self._round = 0
        self._position = 0
        self.places: Sequence[int] = range(len(plan.members))
        self.active: list[PolicyInvocation] = []

    def invocations(self, now: float) -> Iterator[PolicyInvocation]:
        """The turns that can begin now, in order. A mutating turn begins only after the one before it has ended."""
        while not self._state.stopped and (self._parallel or not self.active):
            if self._position == len(self.places):
                if self._parallel or not self._state.object.changed or self._round == ROUNDS - 1:
                    return
                self._round, self._position = self._round + 1, 0
            index = self.places[self._position]
            self._position += 1
            member = self._members[index]
            deadline = self._budget.deadline(member.policy, now)
            yield PolicyInvocation(member=member, index=index, round=self._round, started=now, deadline=deadline)

    def end(self, invocation: PolicyInvocation) -> None:
        """The turn has ended."""
        if invocation in self.active:
            self.active.remove(invocation)

    @property
    def first_to_come(self) -> int:
        """The index of the first policy whose turn in the first round is still to come; the number of policies if
        there is none.
        """
        if self._round or self._state.stopped or self._position == len(self.places):
            return len(self._members)
        return self.places[self._position]

    @property
    def ends(self) -> float:
        """The earliest deadline of the active turns; there must be one."""
        first: float = min(map(_DEADLINE, self.active))
        return first
