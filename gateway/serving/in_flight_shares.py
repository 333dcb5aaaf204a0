"""How much each may have in flight: no API server, namespace or entry takes the room that others need.

The room is for reviews, for bytes of bodies, or for JSON values. The threshold is dynamic (Choudhury and Hahne 1998):
each may have so many times the room that is free then. Alone it gets a part of all, and the rest stays free for those
that come later. Nothing is reserved, and only what has something in flight has state.

    =============  =======  ==================  ========================================================================
    dimension      times    alone, at most      why
    =============  =======  ==================  ========================================================================
    tenant         1        a half              a namespace, or a user for what has none: there are many
    API server     3        three quarters      most clusters have one to three, and all of the load
    entry          3        three quarters      a phase with one entry has all of the load
    the last two,  15       fifteen sixteenths  two tenants that take what they can leave a quarter, which is for those
    for a tenant                                that have nothing; the last part is for another API server or entry
    with nothing
    =============  =======  ==================  ========================================================================

Who is alone, or new in all three dimensions, may have one review of any size while there is room for it. Pure: no
clock, no loop.
"""

from collections.abc import Hashable
from typing import Final, NamedTuple


class Flow(NamedTuple):
    """Whose review it is."""

    client: Hashable
    tenant: Hashable
    entry: Hashable


NO_FLOW: Final = Flow("", "", "")
"""Of reviews that come from no API server."""

_TIMES_OF_TENANT: Final = 1
_TIMES_OF_OTHERS: Final = 3
_TIMES_FOR_NEW_TENANT: Final = 15

_Held = dict[Hashable, int]


class InFlightShares:
    """What is in flight: ``total`` at most. ``taken`` is how much that is."""

    def __init__(self, total: int) -> None:
        self._total = total
        self.taken = 0
        self._held: tuple[_Held, _Held, _Held] = ({}, {}, {})

    def is_full(self, flow: Flow, amount: int = 1) -> bool:
        """Whether a flow would exceed its share, or all of the room, with so much more."""
        # Without loops: each review comes here.
        free = self._total - self.taken - amount
        clients, tenants, entries = self._held
        held = tenants.get(flow.tenant, 0)
        if free < 0 or (held and held + amount > _TIMES_OF_TENANT * free):
            return True
        most = (_TIMES_OF_OTHERS if held else _TIMES_FOR_NEW_TENANT) * free - amount
        return 0 < (held := clients.get(flow.client, 0)) > most or 0 < (held := entries.get(flow.entry, 0)) > most

    def acquire(self, flow: Flow, amount: int = 1) -> bool:
        """Count so much, until ``release``. False: it is not to be counted, because its flow ``is_full``."""
        if self.is_full(flow, amount):
            return False
        self.taken += amount
        clients, tenants, entries = self._held
        clients[flow.client] = clients.get(flow.client, 0) + amount
        tenants[flow.tenant] = tenants.get(flow.tenant, 0) + amount
        entries[flow.entry] = entries.get(flow.entry, 0) + amount
        return True

    def release(self, flow: Flow, amount: int = 1) -> None:
        """So much, of what was acquired, is not in flight any more."""
        if not amount:
            return
        self.taken -= amount
        for held, name in zip(self._held, flow, strict=True):
            left = held[name] - amount
            if left:
                held[name] = left
            else:
                del held[name]
