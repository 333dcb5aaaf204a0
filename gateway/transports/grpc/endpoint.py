"""One address of a worker: its connections, and a circuit breaker for each policy that has ever failed there.

A place for a connection is never without one: when a connection is old, or its certificates have been replaced, a
**successor** is made, and takes its place when it may be called. What it replaces answers what is open, and closes.
"""

import random
from collections.abc import Callable
from time import monotonic
from typing import Final

from msgspec import Struct

from gateway.transports.descriptions import Description
from gateway.transports.grpc.breaker import CircuitBreaker
from gateway.transports.grpc.connection import Connection
from gateway.transports.limits import TransportLimits

MOST_BREAKERS: Final = 1000
"""Circuit breakers of one address. Policies that are configured no more leave theirs behind; beyond this all start
anew."""

TURN_SECONDS: Final = 0.005
"""How long calls to an address go over the same connection, before it is the next one's turn. Behind a virtual address
each leads to another replica: at 2,000 calls a second that is ten at a time."""

WAIT_SECONDS: Final = 10.0
"""Times ``worker_connect_seconds`` that a successor has to become ready, before it is given up and made anew."""


class ConnectionSlot(Struct, kw_only=True, eq=False):
    """For one connection at an address; ``replace_at`` and ``give_up_at`` are moments."""

    connection: Connection
    replace_at: float
    successor: Connection | None = None
    give_up_at: float = 0.0


class Endpoint:
    """One address.

    Args:
        address: a gRPC target.
        limits: see TransportLimits.
        dial: makes a connection to the address.
        retire: takes a connection that is used no more.
        opened: called when a circuit opens, with the address and the policy's qualified name.
    """

    def __init__(
        self,
        address: str,
        *,
        limits: TransportLimits,
        dial: Callable[[str], Connection],
        retire: Callable[[Connection], object],
        opened: Callable[[str, str], object],
    ) -> None:
        self.address = address
        self._limits = limits
        self._dial = dial
        self._retire = retire
        self._opened = opened
        self._places: list[ConnectionSlot] = []
        self.breakers: dict[str, CircuitBreaker] = {}
        """Of policies that have failed here, by qualified name; while there are none, everybody is let through."""
        self._usable: list[Connection] = []
        self._turn = 0
        self._turn_ends = 0.0

    # ------------------------------------------------------------------------------------------- connections

    @property
    def connections(self) -> tuple[Connection, ...]:
        """Those that hold a place."""
        return tuple(place.connection for place in self._places)

    @property
    def successors(self) -> tuple[Connection, ...]:
        """Those that are to take a place."""
        return tuple(place.successor for place in self._places if place.successor is not None)

    def fill(self, count: int) -> None:
        """Have so many connections.

        Raises:
            CredentialsError: none can be made now.
        """
        while len(self._places) < count:
            self._places.append(ConnectionSlot(connection=self._dial(self.address), replace_at=self._age_end()))
        while len(self._places) > count:
            self._drop(self._places.pop())
        self.look()

    def renew(self, now: float) -> None:
        """Make successors for those that are due, and give up those that do not become ready.

        Raises:
            CredentialsError: none can be made now. What there is stays.
        """
        for place in self._places:
            if place.successor is not None and now >= place.give_up_at:
                self._retire(place.successor)
                place.successor = None
            if place.successor is None and now >= place.replace_at:
                place.successor = self._dial(self.address)
                place.give_up_at = now + WAIT_SECONDS * self._limits.worker_connect_seconds

    def expire(self) -> None:
        """All connections are due: what they were made with has changed."""
        for place in self._places:
            if place.successor is not None:
                self._retire(place.successor)
                place.successor = None
            place.replace_at = 0.0

    def look(self) -> None:
        """See which connections may be called, and let successors take their places."""
        for place in self._places:
            if place.successor is not None and place.successor.can_be_called:
                before, place.connection, place.successor = place.connection, place.successor, None
                place.replace_at = self._age_end()
                self._retire(before)
        self._usable = [place.connection for place in self._places if place.connection.can_be_called]

    def leave(self) -> None:
        """The address is used no more."""
        while self._places:
            self._drop(self._places.pop())
        self._usable = []

    def _drop(self, place: ConnectionSlot) -> None:
        self._retire(place.connection)
        if place.successor is not None:
            self._retire(place.successor)

    def _age_end(self) -> float:
        age = self._limits.worker_connection_age_seconds
        # Not all at once: a hundred gateways that started together would reconnect together.
        return monotonic() + age * random.uniform(0.9, 1.1)  # noqa: S311 - spreads load, guards nothing

    # ------------------------------------------------------------------------------------------------ calling

    @property
    def can_be_called(self) -> bool:
        """Whether one of its connections may be."""
        return bool(self._usable)

    def pick(self, fits: frozenset[Description] | None, now: float) -> Connection | None:
        """The connection whose turn it is: each for a moment, so that calls of one moment travel together; the next one
        at once where its turn finds it behind with writing.

        Args:
            fits: descriptions, of which the connection must have one; None: any.
            now: the moment.
        """
        usable = self._usable
        if not usable:
            return None
        count = len(usable)
        picked = usable[self._turn % count]
        if count > 1 and (now >= self._turn_ends or picked.is_behind(now)):
            self._turn += 1
            self._turn_ends = now + TURN_SECONDS
            picked = usable[self._turn % count]
        if fits is None or picked.description in fits:
            return picked
        return next((connection for connection in usable if connection.description in fits), None)

    def holds(self, fits: frozenset[Description] | None) -> bool:
        """Whether a connection that may be called has one of these descriptions; None: any."""
        return any(fits is None or connection.description in fits for connection in self._usable)

    def lets_through(self, policy: str, now: float) -> bool:
        """Whether a policy, by its qualified name, may be called here."""
        breaker = self.breakers.get(policy)
        return breaker is None or breaker.lets_through(now)

    def is_closed(self, policy: str) -> bool:
        """Whether the circuit of a policy is closed: not open, nor half-open."""
        breaker = self.breakers.get(policy)
        return breaker is None or breaker.is_closed

    def entered(self, policy: str, now: float) -> None:
        """A policy is called."""
        breaker = self.breakers.get(policy)
        if breaker is not None:
            breaker.entered(now)

    def ended(self, policy: str, now: float, began: float, *, failed: bool | None) -> None:
        """A call that began then has ended; None: it says nothing of the endpoint."""
        breaker = self.breakers.get(policy)
        if breaker is None:
            if not failed:
                return
            if len(self.breakers) >= MOST_BREAKERS:
                self.breakers.clear()
            breaker = self.breakers[policy] = CircuitBreaker(self._limits, lambda: self._opened(self.address, policy))
        if failed is None:
            breaker.forgotten(began)
        else:
            breaker.ended(now, began, failed=failed)
