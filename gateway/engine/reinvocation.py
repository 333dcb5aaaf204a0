"""Who must see the object again: kube-apiserver's webhookReinvokeContext.

After a policy changed the object, every IfNeeded policy that was called before it is marked, and stays so. Marks made
in the second round count for the policies still to come. A policy that failed open was called; one that was never
called is never marked.
"""

from msgspec import Struct

from gateway.engine.invocation_record import InvocationRecord
from gateway.policies.model import ReinvocationPolicy


class Reinvocation(Struct, eq=False):
    """``called`` and ``marked`` are places in the plan. In the second round, only marked policies are called."""

    called: set[int] = set()
    marked: set[int] = set()

    def settled(self, record: InvocationRecord) -> None:
        """A turn is over."""
        if record.changes:
            self.marked |= self.called
        if record.called and record.policy.reinvocation_policy is ReinvocationPolicy.IF_NEEDED:
            self.called.add(record.index)
