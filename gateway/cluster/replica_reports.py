"""Which entries each replica serves: a Lease per replica, so that the leader registers a path that all of them serve.

A replica renews its Lease each ``REPORT_SECONDS``, and at once when it serves another configuration. The leader ignores
a report that has not changed for ``EXPIRY_SECONDS``, by its own monotonic clock, and deletes it: that replica is gone.
"""

import asyncio
import math
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any, Final

import structlog

from gateway.cluster.client import APPLY, KubernetesClient
from gateway.cluster.election import lease_object, lease_path, leases_path, micro_time
from gateway.cluster.errors import ApiError

_LOG: Final = structlog.get_logger(__name__)

REPORT_SECONDS: Final = 5.0
EXPIRY_SECONDS: Final = 15.0
"""Two renewals may be lost."""

_RETRY_SECONDS: Final = 1.0
_DELETE_SECONDS: Final = 2.0
"""How long a replica that stops tries to delete its report."""

ENTRIES: Final = "admission-gateway.dev/entries"
"""Annotation: a digest of the entries that the replica serves."""

REGISTRATION: Final = "admission-gateway.dev/registration"
"""Annotation: the name of the registration that the replica serves."""

_LABEL: Final = "admission-gateway.dev/replica"


class ReplicaReport:
    """This replica's report.

    Args:
        client: connected.
        namespace: of the gateway.
        registration: its name.
        identity: unlike every other replica's.
        digest: of the entries that are served now.
    """

    def __init__(
        self, client: KubernetesClient, *, namespace: str, registration: str, identity: str, digest: Callable[[], str]
    ) -> None:
        self.problem: str | None = None
        """Why the report could not be written; None: it was."""
        self._client, self._namespace = client, namespace
        self._registration, self._identity, self._digest = registration, identity, digest
        self._changed = asyncio.Event()

    def changed(self) -> None:
        """Report now."""
        self._changed.set()

    async def run(self) -> None:
        """Report until cancelled, then delete the report."""
        try:
            while True:
                self._changed.clear()
                written = await self._write()
                with suppress(TimeoutError):
                    async with asyncio.timeout(REPORT_SECONDS if written else _RETRY_SECONDS):
                        await self._changed.wait()
        finally:
            with suppress(ApiError, TimeoutError):
                async with asyncio.timeout(_DELETE_SECONDS):
                    await self._client.send("DELETE", self._path)

    @property
    def _path(self) -> str:
        return lease_path(self._namespace, self._identity)

    async def _write(self) -> bool:
        lease = lease_object(
            self._identity,
            {
                "holderIdentity": self._identity,
                "leaseDurationSeconds": int(EXPIRY_SECONDS),
                "renewTime": micro_time(datetime.now(UTC)),
            },
            labels={_LABEL: "true"},
            annotations={ENTRIES: self._digest(), REGISTRATION: self._registration},
        )
        query: dict[str, str | int] = {"fieldManager": "admission-gateway", "force": "true"}
        try:
            await self._client.send("PATCH", self._path, lease, query=query, content_type=APPLY)
        except ApiError as error:
            if self.problem != str(error):
                _LOG.warning("the report of this replica's entries cannot be written", error=str(error))
            self.problem = str(error)
            return False
        self.problem = None
        return True


class ReplicaReports:
    """The reports of all replicas, as the leader reads them."""

    def __init__(self, client: KubernetesClient, *, namespace: str, registration: str) -> None:
        self._client, self._namespace, self._registration = client, namespace, registration
        self._seen: dict[str, tuple[str, float]] = {}

    async def outdated(self, digest: str) -> list[str]:
        """The replicas that are alive and do not serve the entries of this digest.

        Raises:
            ApiError: the reports cannot be read.
        """
        now = asyncio.get_running_loop().time()
        found: dict[str, tuple[str, float]] = {}
        names = []
        for lease in await self._list():
            metadata = lease["metadata"]
            annotations = metadata.get("annotations") or {}
            if annotations.get(REGISTRATION) != self._registration:
                continue
            name, version = metadata["name"], metadata["resourceVersion"]
            before, since = self._seen.get(name, ("", math.inf))
            found[name] = (version, since if before == version else now)
            if now - found[name][1] > EXPIRY_SECONDS:
                await self._delete(name, version)
            elif annotations.get(ENTRIES) != digest:
                names.append(name)
        self._seen = found
        return names

    async def _list(self) -> list[Any]:
        # As many as there are replicas: no pages.
        page = await self._client.send("GET", leases_path(self._namespace), query={"labelSelector": _LABEL})
        return page.get("items") or []

    async def _delete(self, name: str, version: str) -> None:
        options = {"kind": "DeleteOptions", "apiVersion": "v1", "preconditions": {"resourceVersion": version}}
        with suppress(ApiError):
            await self._client.send("DELETE", lease_path(self._namespace, name), options)
