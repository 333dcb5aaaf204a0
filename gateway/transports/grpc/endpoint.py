"""One address of a worker: its connections, and a circuit breaker for each policy that is called there.

A connection has a **slot**. When it is old, or its certificates have been replaced, the endpoint creates a
**successor**, which takes the slot when it can be called. The replaced connection answers its open calls and closes.
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
"""The maximum number of circuit breakers of one address. Those of removed policies remain; beyond this all are
reset."""

ROTATION_SECONDS: Final = 0.005
"""The time for which the calls to an address use the same connection before the next one is used. Behind a virtual
address each may lead to another replica: at 2,000 calls a second, ten calls share a batch."""

SUCCESSOR_TIMEOUT_FACTOR: Final = 10.0
"""Multiplied by ``worker_connect_seconds``: the time that a successor has to become ready before it is replaced."""


class ConnectionSlot(Struct, kw_only=True, eq=False):
    """One connection at an address, and its successor. The successor is closed if it is not ready at ``give_up_at``."""

    connection: Connection
    replace_at: float
    successor: Connection | None = None
    give_up_at: float = 0.0


class Endpoint:
    """One address.

    Args:
        address: a gRPC target.
        limits: see TransportLimits.
        dial: creates a connection to the address.
        retire: called with a connection that is not used any more.
        circuit_changed: called when a circuit opens (True) or closes, with the address and the policy's qualified name.
    """

    def __init__(
        self,
        address: str,
        *,
        limits: TransportLimits,
        dial: Callable[[str], Connection],
        retire: Callable[[Connection], object],
        circuit_changed: Callable[[str, str, bool], object],
    ) -> None:
        self.address = address
        self._limits = limits
        self._dial = dial
        self._retire = retire
        self._circuit_changed = circuit_changed
        self._slots: list[ConnectionSlot] = []
        self._breakers: dict[str, CircuitBreaker] = {}
        self.open_circuits: set[str] = set()
        """The qualified names of policies whose circuit is open here."""
        self._usable: list[Connection] = []
        self._turn = 0
        self._turn_ends = 0.0

    # ------------------------------------------------------------------------------------------- connections

    @property
    def connections(self) -> tuple[Connection, ...]:
        """The connections in the slots."""
        return tuple(slot.connection for slot in self._slots)

    @property
    def successors(self) -> tuple[Connection, ...]:
        """The connections that are to replace others."""
        return tuple(slot.successor for slot in self._slots if slot.successor is not None)

    def fill(self, count: int) -> None:
        """Open or close connections until there are ``count``.

        Raises:
            CredentialsError: no connection can be created now.
        """
        while len(self._slots) < count:
            self._slots.append(ConnectionSlot(connection=self._dial(self.address), replace_at=self._age_end()))
        while len(self._slots) > count:
            self._drop(self._slots.pop())
        self.update()

    def renew(self, now: float) -> None:
        """Create successors of old connections, and close successors that do not become ready.

        Raises:
            CredentialsError: no connection can be created now. Existing ones stay.
        """
        for slot in self._slots:
            if slot.successor is not None and now >= slot.give_up_at:
                self._retire(slot.successor)
                slot.successor = None
            if slot.successor is None and now >= slot.replace_at:
                slot.successor = self._dial(self.address)
                slot.give_up_at = now + SUCCESSOR_TIMEOUT_FACTOR * self._limits.worker_connect_seconds

    def expire(self) -> None:
        """Replace all connections, because the certificates have changed."""
        for slot in self._slots:
            if slot.successor is not None:
                self._retire(slot.successor)
                slot.successor = None
            slot.replace_at = 0.0

    def update(self) -> None:
        """Determine which connections can be called, and move ready successors into their slots."""
        for slot in self._slots:
            if slot.successor is not None and slot.successor.can_be_called:
                before, slot.connection, slot.successor = slot.connection, slot.successor, None
                slot.replace_at = self._age_end()
                self._retire(before)
        self._usable = [slot.connection for slot in self._slots if slot.connection.can_be_called]

    def close(self) -> None:
        """Close all connections: the address is not used any more."""
        while self._slots:
            self._drop(self._slots.pop())
        self._usable = []

    def _drop(self, slot: ConnectionSlot) -> None:
        self._retire(slot.connection)
        if slot.successor is not None:
            self._retire(slot.successor)

    def _age_end(self) -> float:
        age = self._limits.worker_connection_age_seconds
        # With jitter: a hundred gateways that started together would otherwise reconnect together.
        return monotonic() + age * random.uniform(0.9, 1.1)  # noqa: S311 - spreads load, guards nothing

    # ------------------------------------------------------------------------------------------------ calling

    @property
    def can_be_called(self) -> bool:
        """Whether one of its connections can be called."""
        return bool(self._usable)

    def pick(self, fits: frozenset[Description] | None, now: float) -> Connection | None:
        """The connection to use now: each for ``ROTATION_SECONDS``, so that concurrent calls share a message; the next
        one at once if writing to the current one is delayed.

        Args:
            fits: descriptions, of which the connection must have one; None: any.
            now: the time.
        """
        usable = self._usable
        if not usable:
            return None
        count = len(usable)
        picked = usable[self._turn % count]
        if count > 1 and (now >= self._turn_ends or picked.is_behind(now)):
            self._turn += 1
            self._turn_ends = now + ROTATION_SECONDS
            picked = usable[self._turn % count]
        if fits is None or picked.description in fits:
            return picked
        return next((connection for connection in usable if connection.description in fits), None)

    def has_fitting(self, fits: frozenset[Description] | None) -> bool:
        """Whether a connection that can be called has one of these descriptions; None: any."""
        return any(fits is None or connection.description in fits for connection in self._usable)

    def breaker(self, policy: str) -> CircuitBreaker:
        """The circuit breaker of a policy, by its qualified name."""
        breaker = self._breakers.get(policy)
        if breaker is None:
            if len(self._breakers) >= MOST_BREAKERS:
                self._breakers.clear()
                self.open_circuits.clear()
            breaker = CircuitBreaker(self._limits, lambda is_open: self._changed(policy, is_open=is_open))
            self._breakers[policy] = breaker
        return breaker

    def _changed(self, policy: str, *, is_open: bool) -> None:
        if is_open:
            self.open_circuits.add(policy)
        else:
            self.open_circuits.discard(policy)
        self._circuit_changed(self.address, policy, is_open)
