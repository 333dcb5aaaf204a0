"""Leader election on a Lease, as client-go's leaderelection: at most one replica leads.

kubernetes-asyncio has an election too. It is not used: it judges by the wall clock, leads on while a request hangs, and
never gives the lease back.

=====================================  ==========================================================================
a candidate finds                      and takes the lease
=====================================  ==========================================================================
its own name                           at once: it holds it
a Lease that its holder has released   at once
another holder                         when the record has not changed for ``LEASE_SECONDS``
a Lease that has had no holder         at once if it leads; else, when the record has not changed for
                                       ``LEASE_SECONDS``
no Lease                               never: it creates one without a holder, see above
=====================================  ==========================================================================

A Lease that is not there may have been deleted a moment ago, while a replica leads by it that has not seen that yet.
So a Lease begins without a holder, and the first replica of a new installation leads after ``LEASE_SECONDS``.

Every write has the resource version that was read, so of two candidates one gets a conflict. The leader renews each
``RETRY_SECONDS``, and leads for ``RENEW_SECONDS`` from the *beginning* of the last renewal that succeeded; then its
work is cancelled. So it has stopped ``LEASE_SECONDS - RENEW_SECONDS`` before another replica can lead. All durations
are measured on a replica's own monotonic clock: clocks may differ. The times in the Lease are for people.
"""

import asyncio
import math
import socket
import uuid
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any, Final

import structlog

from gateway.cluster.client import MERGE_PATCH, KubernetesClient, collection_path, object_path
from gateway.cluster.errors import ApiError

_LOG: Final = structlog.get_logger(__name__)

LEASE_SECONDS: Final = 15.0
RENEW_SECONDS: Final = 10.0
RETRY_SECONDS: Final = 2.0
"""client-go's: of kube-controller-manager and kube-scheduler."""

_RELEASE_SECONDS: Final = 2.0
"""How long a leader that stops tries to release the lease. Else another replica leads ``LEASE_SECONDS`` later."""

_RELEASED_SECONDS: Final = 1
"""The duration in a Lease that its holder has released: client-go's. One that has had no holder has none."""

_NOT_FOUND: Final = 404
_CONFLICT: Final = 409
_GROUP: Final = ("coordination.k8s.io", "v1", "leases")


def leases_path(namespace: str) -> str:
    """The path of a namespace's Leases."""
    return collection_path(*_GROUP, namespace)


def lease_path(namespace: str, name: str) -> str:
    """The path of a Lease."""
    return object_path(*_GROUP, name, namespace)


def lease_object(name: str, spec: Mapping[str, Any], **metadata: Any) -> dict[str, Any]:
    """A Lease."""
    return {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {"name": name, **metadata},
        "spec": dict(spec),
    }


def identity() -> str:
    """A name of this process: the host's (a pod's is its own name), and what no other process has."""
    host = "".join(each if each.isalnum() and each.isascii() else "-" for each in socket.gethostname().lower())
    return f"{host[:63].strip('-') or 'gateway'}-{uuid.uuid4().hex[:8]}"


def micro_time(when: datetime) -> str:
    """A time as Kubernetes writes a MicroTime."""
    return when.strftime("%Y-%m-%dT%H:%M:%S.%fZ")


class LeaderElection:
    """One candidate.

    Args:
        client: connected.
        namespace, name: of the Lease. It is created if there is none.
        identity: unlike every other candidate's.
        observed: called after each look at the Lease.
        now: the time that people see in the Lease.
    """

    def __init__(
        self,
        client: KubernetesClient,
        *,
        namespace: str,
        name: str,
        identity: str,
        observed: Callable[[], object] = lambda: None,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self.problem: str | None = None
        """Why the last look at the Lease failed; None: it did not."""
        self.identity = identity
        self._client, self._namespace, self._name = client, namespace, name
        self._observed, self._now = observed, now
        self._lock = asyncio.Lock()
        self._record: Mapping[str, Any] = {}
        self._uid = self._version = ""
        self._annotations: dict[str, str] = {}
        self._unchanged_since = -math.inf
        self._leads_until = -math.inf
        self._may_hold = False

    @property
    def leads(self) -> bool:
        """Whether this replica leads now."""
        return asyncio.get_running_loop().time() < self._leads_until

    @property
    def holder(self) -> str:
        """Who holds the lease, as far as is known; empty: no replica."""
        return str(self._record.get("holderIdentity") or "")

    @property
    def annotations(self) -> Mapping[str, str]:
        """The annotations of the Lease, as they were read last. If it is deleted, it is created again with them."""
        return self._annotations

    async def run(self, lead: Callable[[], Awaitable[None]]) -> None:
        """Be a candidate until cancelled: run ``lead`` whenever this replica leads, and cancel it before another can.

        When it is cancelled, the lease is released.
        """
        try:
            while True:
                if await self._attempt():
                    _LOG.info("this replica leads", lease=self._name, identity=self.identity)
                    await self._hold(lead)
                    _LOG.warning("this replica leads no more", lease=self._name, problem=self.problem)
                await asyncio.sleep(RETRY_SECONDS)
        finally:
            if self._may_hold:
                with suppress(ApiError, TimeoutError):
                    async with asyncio.timeout(_RELEASE_SECONDS), self._lock:
                        await self._release()

    async def annotate(self, annotations: Mapping[str, str | None]) -> None:
        """Set annotations of the Lease, or remove those that are None.

        Raises:
            ApiError: also if the Lease has changed since it was read (409).
        """
        async with self._lock:
            patch = {"metadata": {"resourceVersion": self._version, "annotations": dict(annotations)}}
            self._observe(await self._client.send("PATCH", self._path, patch, content_type=MERGE_PATCH))

    @property
    def _path(self) -> str:
        return lease_path(self._namespace, self._name)

    async def _hold(self, lead: Callable[[], Awaitable[None]]) -> None:
        """Run ``lead`` for as long as the lease can be renewed."""
        loop = asyncio.get_running_loop()
        work = asyncio.ensure_future(lead())
        try:
            while True:
                left = self._leads_until - loop.time()
                await asyncio.wait((work,), timeout=min(RETRY_SECONDS, max(left, 0)))
                if work.done() or not self.leads:
                    return
                with suppress(TimeoutError):
                    async with asyncio.timeout(self._leads_until - loop.time()):
                        await self._attempt()
                if self.holder not in {"", self.identity}:
                    return
        finally:
            self._leads_until = -math.inf
            work.cancel()
            for error in await asyncio.gather(work, return_exceptions=True):
                if isinstance(error, Exception):
                    _LOG.error("the leader's work failed inside the gateway", exc_info=error)

    async def _attempt(self) -> bool:
        """Look at the Lease, and take or renew it if that is permitted. Whether this replica leads."""
        try:
            async with self._lock:
                return await self._take()
        except ApiError as error:
            # A conflict is a write of another replica, which the next look shows.
            if error.code != _CONFLICT:
                if self.problem != str(error):
                    _LOG.warning("the lease cannot be read or written", lease=self._name, error=str(error))
                self.problem = str(error)
                self._observed()
        except Exception:  # noqa: BLE001 - logged with its traceback; the next look may succeed
            _LOG.exception("the election failed inside the gateway", lease=self._name)
        return False

    async def _take(self) -> bool:
        loop = asyncio.get_running_loop()
        began = loop.time()
        lease = await self._read()
        if lease is None:
            created = lease_object(self._name, {}, annotations=self._annotations)
            lease = await self._client.send("POST", leases_path(self._namespace), created)
        self._observe(lease)
        if not self._is_free and loop.time() < self._unchanged_since + LEASE_SECONDS:
            return False
        self._may_hold = True
        self._observe(await self._client.send("PUT", self._path, lease | {"spec": self._spec()}))
        self._leads_until = began + RENEW_SECONDS
        return self.leads

    @property
    def _is_free(self) -> bool:
        """Whether no other replica can lead by the record that was read."""
        if not self.holder:
            return self.leads or self._record.get("leaseDurationSeconds") == _RELEASED_SECONDS
        return self.holder == self.identity

    async def _read(self) -> Any:
        try:
            return await self._client.send("GET", self._path)
        except ApiError as error:
            if error.code != _NOT_FOUND:
                raise
            return None

    def _observe(self, lease: Any) -> None:
        self.problem = None
        metadata, record = lease["metadata"], lease.get("spec") or {}
        # Leases that have had no holder are equal: one that was deleted and created again has another uid.
        if (metadata["uid"], record) != (self._uid, self._record):
            self._unchanged_since = asyncio.get_running_loop().time()
        self._uid, self._record, self._version = metadata["uid"], record, metadata["resourceVersion"]
        self._annotations = dict(metadata.get("annotations") or {})
        self._observed()

    def _spec(self) -> dict[str, Any]:
        now = micro_time(self._now())
        before = self._record
        changes = before.get("leaseTransitions") or 0
        same = before.get("holderIdentity") == self.identity
        return {
            "holderIdentity": self.identity,
            "leaseDurationSeconds": int(LEASE_SECONDS),
            "acquireTime": before.get("acquireTime") or now if same else now,
            "renewTime": now,
            "leaseTransitions": changes if same else changes + 1,
        }

    async def _release(self) -> None:
        lease = await self._read()
        if lease is not None and (lease.get("spec") or {}).get("holderIdentity") == self.identity:
            # client-go's: a holder is never missing, but empty.
            spec = lease["spec"] | {
                "holderIdentity": "",
                "leaseDurationSeconds": _RELEASED_SECONDS,
                "renewTime": micro_time(self._now()),
            }
            await self._client.send("PUT", self._path, lease | {"spec": spec})
