"""Keeps the webhook configurations in the cluster equal to what `render` prints: by the replica that leads.

Each look of the leader is one pass over what the API server has now; nothing is remembered that could be out of date:

====================================================  =================================================================
what it finds                                         what it does
====================================================  =================================================================
suspended, in the Lease                               nothing (``suspension``)
an object that was registered is gone, or one has     writes to the Lease that the registration is suspended
the annotation ``suspended``
an object of another gateway                          nothing, but says so
objects equal to the desired ones                     nothing
other paths than the desired ones                     waits until all replicas serve these, ``WAIT_SECONDS`` at most
anything else                                         examines whether it could lock the cluster as that is now, sends
                                                      all changes as a dry run, and if the API server accepts all of
                                                      them, sends them
====================================================  =================================================================

Every write has the resource version that was read: what somebody does in between is never overwritten. Objects are
compared as the API server defaults them in the dry run. The leader looks every ``LOOK_SECONDS`` instead of watching,
because a watch lags: it would take its own new object for a deleted one. A look at unchanged objects reads metadata.
"""

import asyncio
import hashlib
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final

import structlog
from msgspec import Struct

from gateway.cluster.client import KubernetesClient
from gateway.cluster.election import LeaderElection, identity
from gateway.cluster.errors import ApiError
from gateway.cluster.replica_reports import ReplicaReport, ReplicaReports
from gateway.cluster.suspension import REGISTERED, SUSPENDED, lease_name, registered_kinds, rescue
from gateway.cluster.webhook_objects import RESOURCES, ForeignObjectError, ObjectChange, change, metadata
from gateway.policies.workers.targets import ServiceReference
from gateway.registration.entries import Entries
from gateway.telemetry.events import Events, NoEvents
from gateway.telemetry.labels import RegistrationState
from gateway.telemetry.table import REGISTRATION_STATE

_LOG: Final = structlog.get_logger(__name__)

LOOK_SECONDS: Final = 2.0
_WAITING_LOOK_SECONDS: Final = 0.5
_LONGEST_PAUSE: Final = 30.0
"""Between attempts that fail: 2 s, doubled up to this."""

WAIT_SECONDS: Final = 120.0
"""How long a new path waits for replicas that do not serve it: a changed ConfigMap reaches all nodes within kubelet's
minute of syncing and a minute of its cache. A replica that cannot load a configuration must not hold it up for ever."""

_REFUSED: Final = frozenset({400, 413, 422})
"""BadRequest, RequestEntityTooLarge, Invalid; a ValidatingAdmissionPolicy's denial is Invalid too."""

_CONFLICT: Final = 409

_LISTED: Final = 3
"""Replicas that a message names."""


class RegistrationError(Exception):
    """There is nothing to register. ``str(error)`` says why; what is registered stays."""


class DesiredRegistration(Struct, frozen=True, kw_only=True):
    """What is to be registered: both objects.

    ``examine`` is awaited before anything is sent; it raises RegistrationError if this must not be registered.
    ``incomplete``: why other webhooks that are registered must stay; empty: they must go.
    """

    objects: tuple[dict[str, Any], ...]
    examine: Callable[[], Awaitable[None]]
    incomplete: str = ""


class _Status(Struct, frozen=True, kw_only=True):
    state: RegistrationState
    message: str = ""


_FAILING: Final = frozenset({RegistrationState.CONFLICT, RegistrationState.FAILED, RegistrationState.REFUSED})


class RegistrationController:
    """One replica of the gateway, as far as its registration goes.

    Args:
        client: connected.
        name: of both objects.
        service: the gateway's, in whose namespace the Leases are.
        desired: for the configuration in force. Raises RegistrationError.
        entries: of the configuration in force.
        events: has the state as a metric.
    """

    def __init__(
        self,
        client: KubernetesClient,
        *,
        name: str,
        service: ServiceReference,
        desired: Callable[[], Awaitable[DesiredRegistration]],
        entries: Callable[[], Entries],
        events: Events | None = None,
    ) -> None:
        own = identity()
        self._client, self._name, self._desired, self._entries = client, name, desired, entries
        self._owner = f"{service.namespace}/{service.name}"
        self._namespace = service.namespace
        self._events = events or NoEvents()
        self._election = LeaderElection(
            client,
            namespace=service.namespace,
            name=lease_name(name),
            identity=own,
            observed=self._lease_observed,
        )
        self._report = ReplicaReport(
            client,
            namespace=service.namespace,
            registration=name,
            identity=f"{own}-entries",
            digest=lambda: entries_digest(entries()),
        )
        self._wake = asyncio.Event()
        self._status = _Status(state=RegistrationState.FAILED)
        self._set(_Status(state=RegistrationState.STANDBY))
        self._equal: dict[str, tuple[str, Mapping[str, Any]]] = {}
        self._keeps = False
        self._waiting: tuple[frozenset[str], float] | None = None

    @property
    def note(self) -> str | None:
        """What an operator should know of the registration; None: nothing."""
        return self._status.message or self._report.problem

    def changed(self) -> None:
        """Another configuration is in force."""
        self._report.changed()
        self._wake.set()

    async def report(self) -> None:
        """Report what this replica serves, until cancelled: as long as it serves."""
        await self._report.run()

    async def run(self) -> None:
        """Keep the registration whenever this replica leads, until cancelled."""
        await self._election.run(self._lead)

    # ---------------------------------------------------------------------------------------------- the leader

    async def _lead(self) -> None:
        reports = ReplicaReports(self._client, namespace=self._namespace, registration=self._name)
        self._equal.clear()
        self._waiting = None
        pause = LOOK_SECONDS
        while True:
            self._wake.clear()
            status = await self._look(reports)
            self._set(status)
            failing = status.state in _FAILING
            waiting = status.state is RegistrationState.WAITING
            seconds = pause if failing else _WAITING_LOOK_SECONDS if waiting else LOOK_SECONDS
            pause = min(2 * pause, _LONGEST_PAUSE) if failing else LOOK_SECONDS
            with suppress(TimeoutError):
                async with asyncio.timeout(seconds):
                    await self._wake.wait()

    async def _look(self, reports: ReplicaReports) -> _Status:
        try:
            return await self._reconcile(reports)
        except ApiError as error:
            if error.code == _CONFLICT:
                # Somebody wrote in between: the next look shows what.
                return self._status
            return _Status(state=RegistrationState.FAILED, message=str(error))
        except RegistrationError as error:
            return _Status(state=RegistrationState.REFUSED, message=str(error))
        except ForeignObjectError as error:
            return _Status(state=RegistrationState.CONFLICT, message=str(error))
        except Exception:  # noqa: BLE001 - logged with its traceback; what is registered stays
            _LOG.exception("keeping the registration failed inside the gateway")
            return _Status(state=RegistrationState.FAILED, message="an error inside the gateway; see its log")

    async def _reconcile(self, reports: ReplicaReports) -> _Status:
        annotations = self._election.annotations
        if SUSPENDED in annotations:
            return _suspended(annotations[SUSPENDED])
        live = {kind: await metadata(self._client, kind, self._name) for kind in RESOURCES}
        reason = rescue(self._name, live, annotations)
        if reason is not None:
            await self._election.annotate({SUSPENDED: reason})
            return _suspended(reason)
        outdated = await reports.outdated(entries_digest(self._entries()))
        desired = await self._desired()
        keep = bool(desired.incomplete)
        if keep != self._keeps:
            self._keeps = keep
            self._equal.clear()
        different = [obj for obj in desired.objects if not self._is_equal(obj, live[obj["kind"]])]
        changes = [await change(self._client, obj, self._owner, keep=keep) for obj in different]
        waiting = self._wait(changes, outdated)
        if waiting is not None:
            return waiting
        if changes:
            await desired.examine()
            if not await self._publish(changes, desired.objects):
                return self._status
        return _Status(state=RegistrationState.REGISTERED, message=desired.incomplete)

    def _is_equal(self, desired: Mapping[str, Any], live: Any) -> bool:
        """Whether the object is the one that was found equal."""
        version, equal = self._equal.get(desired["kind"], ("", {}))
        return live is not None and live["metadata"]["resourceVersion"] == version and equal == desired

    def _wait(self, changes: Iterable[ObjectChange], outdated: Sequence[str]) -> _Status | None:
        """The status while replicas do not serve what is to be registered; None: the changes may be sent.

        It waits before a path goes, too: what this replica has may be older than what the others have.
        """
        paths = frozenset[str]().union(*(each.different_paths for each in changes))
        if not paths or not outdated:
            self._waiting = None
            return None
        now = asyncio.get_running_loop().time()
        if self._waiting is None or self._waiting[0] != paths:
            self._waiting = (paths, now)
        waited = now - self._waiting[1]
        if waited > WAIT_SECONDS:
            _LOG.warning("new entries are registered, although replicas do not serve them", replicas=outdated)
            return None
        message = (
            f"{len(paths)} paths are not changed yet: {len(outdated)} replicas serve other entries "
            f"({', '.join(outdated[:_LISTED])}); they are waited for until {WAIT_SECONDS:g} s have passed"
        )
        return _Status(state=RegistrationState.WAITING, message=message)

    async def _publish(self, changes: Sequence[ObjectChange], desired: Iterable[Mapping[str, Any]]) -> bool:
        """Send the changes. Whether all were: this replica still leads."""
        results = []
        for each in changes:
            try:
                results.append(await each.send(self._client, dry_run=True))
            except ApiError as error:
                if error.code not in _REFUSED:
                    raise
                raise RegistrationError(f"refused by the API server; what was registered stays: {error}") from error
        wanted = {obj["kind"]: obj for obj in desired}
        for each, result in zip(changes, results, strict=True):
            written = each.live
            if each.alters(result):
                if not self._election.leads:
                    return False
                written = await each.send(self._client, dry_run=False)
                number = len(written.get("webhooks") or ())
                _LOG.info("registered", kind=each.kind, name=each.name, webhooks=number)
            if written is not None:
                self._equal[each.kind] = (written["metadata"]["resourceVersion"], wanted[each.kind])
        if registered_kinds(self._election.annotations) != RESOURCES.keys():
            await self._election.annotate({REGISTERED: ",".join(RESOURCES)})
        return True

    # ---------------------------------------------------------------------------------------------- all replicas

    def _lease_observed(self) -> None:
        """Every replica reports a suspension; the leader does so at its next look."""
        if self._election.leads:
            return
        if SUSPENDED in self._election.annotations:
            self._set(_suspended(self._election.annotations[SUSPENDED]))
        elif self._election.problem is not None:
            self._set(_Status(state=RegistrationState.FAILED, message=self._election.problem))
        else:
            self._set(_Status(state=RegistrationState.STANDBY))

    def _set(self, status: _Status) -> None:
        if status == self._status:
            return
        before, self._status = self._status, status
        for state in RegistrationState:
            self._events.set(REGISTRATION_STATE, state is status.state, state)
        if status.message:
            _LOG.warning("registration", state=status.state.value, message=status.message)
        elif before.message:
            _LOG.info("registration", state=status.state.value)


def entries_digest(entries: Entries) -> str:
    """A digest of the paths of all entries: equal on replicas that serve the same ones."""
    paths = sorted(entry.path for entry in (*entries.mutating, *entries.validating))
    return hashlib.sha256("\n".join(paths).encode()).hexdigest()[:16]


def _suspended(reason: str) -> _Status:
    message = f"suspended ({reason}): the registration is not touched until `admission-gateway resume`"
    return _Status(state=RegistrationState.SUSPENDED, message=message)
