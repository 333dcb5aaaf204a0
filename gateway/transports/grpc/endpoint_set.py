"""The endpoints of a worker: its addresses, resolved periodically, and the connections to each of them.

An old connection is replaced (``worker_connection_age_seconds``), and all connections when their certificates have
changed. Errors (an unknown name, unusable certificates) are retried; ``why`` is the latest one.
"""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from time import monotonic
from typing import Final

import grpc.aio
import structlog

from gateway.transports.credentials import CredentialsError
from gateway.transports.grpc.addresses import ResolveError, is_fixed, selected
from gateway.transports.grpc.connection import Connection, State
from gateway.transports.grpc.dialer import Dialer
from gateway.transports.grpc.endpoint import Endpoint
from gateway.transports.grpc.failures import Failures
from gateway.transports.limits import TransportLimits

_LOG: Final = structlog.get_logger(__name__)

CHECK_SECONDS: Final = 1.0
"""The interval of checks for old connections and changed certificates."""

RESOLVE_SECONDS: Final = 1.0
"""The shortest time between two lookups of a name. A lost connection causes a lookup, because the worker may have a new
address. DNS may not have it yet: cluster DNS answers from a cache for 5 s or more. So while an address has no
connection, the name is looked up again, each time after twice the time, up to ``worker_resolve_seconds``."""


class EndpointSet:
    """Keeps the endpoints up to date.

    Args:
        target: the worker's.
        limits: see TransportLimits.
        wanted: the minimum number of connections.
        dialer: creates channels.
        resolver: resolves a target to addresses.
        failures: converts errors to failures.
        connect: creates a connection of an address and a channel to it.
        changed: called when the connections have changed.
        circuit_changed: called when a circuit opens (True) or closes, with the address and the policy's qualified name.
    """

    def __init__(  # noqa: PLR0913 - all by name
        self,
        *,
        target: str,
        limits: TransportLimits,
        wanted: int,
        dialer: Dialer,
        resolver: Callable[[str], Awaitable[tuple[str, ...]]],
        failures: Failures,
        connect: Callable[[str, grpc.aio.Channel], Connection],
        changed: Callable[[], object],
        circuit_changed: Callable[[str, str, bool], object],
    ) -> None:
        self.why = ""
        """Why there are no connections, in a sentence; empty if that is unknown, or if there are some."""
        self.is_resolved = False
        self._target = target
        self._limits = limits
        self._wanted = wanted
        self._dialer = dialer
        self._resolving = resolver
        self._failures = failures
        self._connect = connect
        self._changed = changed
        self._circuit_changed = circuit_changed
        self._by_address: dict[str, Endpoint] = {}
        self._leaving: set[asyncio.Task[None]] = set()
        self._resolve_again = asyncio.Event()
        loop = asyncio.get_running_loop()
        self._tasks = (loop.create_task(self._keep_addresses()), loop.create_task(self._keep_renewing()))

    @property
    def endpoints(self) -> tuple[Endpoint, ...]:
        """All addresses."""
        return tuple(self._by_address.values())

    def connections(self) -> tuple[Connection, ...]:
        """The connections to all of them."""
        return tuple(connection for endpoint in self._by_address.values() for connection in endpoint.connections)

    def lost(self) -> None:
        """A connection was lost: resolve the name again, because the worker may have a new address."""
        self._resolve_again.set()

    async def _keep_addresses(self) -> None:
        pause = RESOLVE_SECONDS
        while True:
            self._resolve_again.clear()
            try:
                found = await self._resolving(self._target)
            except ResolveError as error:
                if not self.why:
                    _LOG.warning("a worker's name has no addresses", worker=self._failures.name, error=str(error))
                self.why = self._failures.unreachable(str(error)).message
                self._changed()
            except Exception:  # noqa: BLE001 - logged, and tried again: no other task would
                _LOG.exception("resolver a worker's name failed inside the gateway", worker=self._failures.name)
            else:
                self.is_resolved = True
                self._set_addresses(selected(found, tuple(self._by_address), self._limits.worker_addresses))
            if is_fixed(self._target):
                return
            await asyncio.sleep(RESOLVE_SECONDS)
            pause = min(2 * pause, self._limits.worker_resolve_seconds)
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._resolve_again.wait(), self._resolve_pause(pause))
                pause = RESOLVE_SECONDS

    def _resolve_pause(self, pause: float) -> float:
        is_lacking = any(connection.state is State.CONNECTING for connection in self.connections())
        return pause if is_lacking else self._limits.worker_resolve_seconds

    def _set_addresses(self, addresses: tuple[str, ...]) -> None:
        """Connect to these addresses, and close the connections to all others."""
        for address in tuple(self._by_address):
            if address not in addresses:
                _LOG.info("a worker's address was removed", worker=self._failures.name, address=address)
                self._by_address.pop(address).close()
        for address in addresses:
            if address not in self._by_address:
                self._by_address[address] = Endpoint(
                    address,
                    limits=self._limits,
                    dial=self._dial,
                    retire=self._retire,
                    circuit_changed=self._circuit_changed,
                )
        self._fill()
        self._changed()

    def _fill(self) -> None:
        if not self._by_address:
            return
        each = -(-self._wanted // len(self._by_address))
        try:
            for endpoint in self._by_address.values():
                endpoint.fill(each)
            self.why = ""
        except CredentialsError as error:
            self._cannot_dial(error)

    def _cannot_dial(self, error: CredentialsError) -> None:
        if str(error) != self.why:
            _LOG.error("a worker cannot be connected to", worker=self._failures.name, error=str(error))
        self.why = str(error)

    async def _keep_renewing(self) -> None:
        while True:
            await asyncio.sleep(CHECK_SECONDS)
            try:
                self._renew()
            except Exception:  # noqa: BLE001 - logged, and tried again: no other task would
                _LOG.exception("keeping connections to a worker failed inside the gateway", worker=self._failures.name)

    def _renew(self) -> None:
        now = monotonic()
        if self._dialer.changed():
            _LOG.info(
                "the certificates for a worker have changed; its connections are replaced if they can be used",
                worker=self._failures.name,
            )
            for endpoint in self._by_address.values():
                endpoint.expire()
        was_lacking = any(not endpoint.connections for endpoint in self._by_address.values())
        if was_lacking:
            self._fill()
            self._changed()
        try:
            for endpoint in self._by_address.values():
                endpoint.renew(now)
        except CredentialsError as error:
            self._cannot_dial(error)

    def _dial(self, address: str) -> Connection:
        return self._connect(address, self._dialer.channel(address))

    def _retire(self, connection: Connection) -> None:
        connection.drain()
        task = asyncio.get_running_loop().create_task(_close_when_idle(connection))
        self._leaving.add(task)
        task.add_done_callback(self._leaving.discard)

    async def close(self) -> None:
        """Close all connections at once, including draining ones."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        leaving = tuple(self._leaving)
        for task in leaving:
            task.cancel()
        await asyncio.gather(*leaving, return_exceptions=True)
        successors = [connection for endpoint in self._by_address.values() for connection in endpoint.successors]
        await asyncio.gather(*(each.close() for each in (*self.connections(), *successors)), return_exceptions=True)


async def _close_when_idle(connection: Connection) -> None:
    """Close a connection when it has no open calls; at once when cancelled."""
    try:
        await connection.idle()
    finally:
        await asyncio.shield(asyncio.ensure_future(connection.close()))
