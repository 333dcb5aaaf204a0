"""How many reviews each may have in flight: no API server, namespace or entry takes the room that others need.

The threshold is dynamic (Choudhury and Hahne 1998): each may have so many times the reviews for which there is still
room. Alone it gets a part of all, and the rest stays free for those that come later; with others, all get about the
same. Nothing is reserved, and only what has reviews in flight has state.

    =============  =======  ==================  ========================================================================
    dimension      times    alone, at most      why
    =============  =======  ==================  ========================================================================
    API server     3        three quarters      most clusters have one to three, and all of the load
    tenant         1        a half              a namespace, or a user for what has none: there are many
    entry          3        three quarters      a phase with one entry has all of the load
    =============  =======  ==================  ========================================================================

Each may have one while there is any room. Pure: no clock, no loop.
"""

from collections.abc import Hashable
from typing import Final, NamedTuple


class Flow(NamedTuple):
    """Whose review it is."""

    client: Hashable
    tenant: Hashable
    entry: Hashable


_TIMES_OF_CLIENT: Final = 3
_TIMES_OF_TENANT: Final = 1
_TIMES_OF_ENTRY: Final = 3

_Held = dict[Hashable, int]


class InFlightShares:
    """The reviews in flight: ``total`` at most. ``taken`` is their number."""

    def __init__(self, total: int) -> None:
        self._total = total
        self.taken = 0
        self._held: tuple[_Held, _Held, _Held] = ({}, {}, {})

    def is_full(self, flow: Flow) -> bool:
        """Whether a flow has its share already, or there is no room."""
        # Without loops: each review comes here.
        free = self._total - self.taken
        clients, tenants, entries = self._held
        return (
            free <= 0
            or tenants.get(flow.tenant, 0) >= _TIMES_OF_TENANT * free
            or clients.get(flow.client, 0) >= _TIMES_OF_CLIENT * free
            or entries.get(flow.entry, 0) >= _TIMES_OF_ENTRY * free
        )

    def acquire(self, flow: Flow) -> bool:
        """Count a review, until ``release``. False: it is not to be counted, because its flow ``is_full``."""
        if self.is_full(flow):
            return False
        self.taken += 1
        clients, tenants, entries = self._held
        clients[flow.client] = clients.get(flow.client, 0) + 1
        tenants[flow.tenant] = tenants.get(flow.tenant, 0) + 1
        entries[flow.entry] = entries.get(flow.entry, 0) + 1
        return True

    def release(self, flow: Flow) -> None:
        """A review is not in flight any more."""
        self.taken -= 1
        for held, name in zip(self._held, flow, strict=True):
            left = held[name] - 1
            if left:
                held[name] = left
            else:
                del held[name]
