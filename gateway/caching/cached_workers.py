"""What a cache needs of the workers behind it."""

from typing import Protocol

from gateway.engine.policy_call import PolicyCall
from gateway.engine.policy_caller import PolicyCaller


class CachedWorkers(PolicyCaller, Protocol):
    """Workers that a cache can stand in front of."""

    def settled(self, call: PolicyCall) -> bool:
        """Whether all live connections of the policy's worker report the version of the call. Cheap."""
