"""How many calls of one worker are open, and how many of them one tenant may have.

A tenant is a policy and a namespace. It may have as many open calls as are free for all others, so its slow objects
never take the last place: one tenant alone has half of the limit, two have a third each, and a third is free. (This is
the dynamic threshold of shared-memory switches.) Calls for cluster-scoped objects, and those of a bridge, which knows
no namespaces, have the empty namespace.
"""

from gateway.engine.policy_call import PolicyCall

Tenant = tuple[str, str]
"""A policy, by its qualified name, and a namespace."""


def tenant_of(call: PolicyCall) -> Tenant:
    """The tenant of a call."""
    return call.policy.qualified_name, call.namespace


class InFlight:
    """Counts the open calls of one worker.

    Args:
        limit: of all of them.
    """

    __slots__ = ("_by_tenant", "limit", "open")

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.open = 0
        self._by_tenant: dict[Tenant, int] = {}

    def has_room(self, tenant: Tenant) -> bool:
        """Whether a tenant may have one more open call."""
        free = self.limit - self.open
        return free > 0 and self._by_tenant.get(tenant, 0) <= free

    def take(self, tenant: Tenant) -> bool:
        """Count one more open call, until ``remove``. False: there is no room for it."""
        # Each call comes here: without has_room, which says the same.
        taken, free = self._by_tenant.get(tenant, 0), self.limit - self.open
        if free <= 0 or taken > free:
            return False
        self.open += 1
        self._by_tenant[tenant] = taken + 1
        return True

    def remove(self, tenant: Tenant) -> None:
        """An open call has ended."""
        self.open -= 1
        left = self._by_tenant[tenant] - 1
        if left:
            self._by_tenant[tenant] = left
        else:
            del self._by_tenant[tenant]

    def refusal(self) -> str:
        """What the worker has too many of, and what to do: the end of a sentence for a call that is rejected."""
        open_calls, limit = self.open, self.limit
        if open_calls >= limit:
            return f"{limit} open calls, the limit worker_in_flight; run more replicas of it, or raise the limit"
        return (
            f"{open_calls} of the {limit} open calls that worker_in_flight allows, and this policy has more of them in "
            "this namespace than are free; check why its calls take so long, or run more replicas of the worker"
        )
