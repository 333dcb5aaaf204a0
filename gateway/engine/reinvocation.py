"""Who must see the object again: kube-apiserver's webhookReinvokeContext.

After a policy changed the object, every IfNeeded policy that was called before it is marked, and stays so. Marks made
in the second round count for the policies still to come. A policy that failed open was called; one that was never
called is never marked.
"""

from gateway.engine.invocation_record import InvocationRecord
from gateway.policies.model import ReinvocationPolicy


class Reinvocation:
    """Marks, by a policy's place in the plan."""

    __slots__ = ("_called", "_marked")

    def __init__(self) -> None:
        self._called: set[int] = set()
        self._marked: set[int] = set()

    def due(self, index: int, round_: int) -> bool:
        """Whether the policy is asked in this round: in the first, or marked."""
        return round_ == 0 or index in self._marked

    def settled(self, record: InvocationRecord) -> None:
        """A turn is over."""
        if record.changes:
            self._marked |= self._called
        if record.called and record.policy.reinvocation_policy is ReinvocationPolicy.IF_NEEDED:
            self._called.add(record.index)
