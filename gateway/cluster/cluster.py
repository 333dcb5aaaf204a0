"""What one gateway does with the Kubernetes API: its client, and the tasks that use it for as long as it serves."""

import asyncio
from contextlib import suppress
from pathlib import Path
from typing import Final

from gateway.certificates.rotation import service_names
from gateway.cluster.certificate_secret import CertificateSecret
from gateway.cluster.client import KubernetesClient
from gateway.cluster.facts import ClusterFacts
from gateway.cluster.registered_objects import RegisteredObjects
from gateway.cluster.webhook_probe import ProbeResult, WebhookProbe
from gateway.policies.workers.targets import ServiceReference
from gateway.telemetry.metrics import Metrics
from gateway.telemetry.table import (
    CLUSTER,
    WEBHOOK_CERTIFICATE_EXPIRATION,
    WEBHOOK_PROBE,
    WEBHOOK_PROBE_SUCCESS,
)

_FIRST_LIST_SECONDS: Final = 3.0
"""How long a start waits for the list of namespaces: 10,000 take one second. Without it, a review looks up its own. As
long it waits for what is registered; without it, old paths are known by the entries' names only."""


class Cluster:
    """The cluster that the gateway serves.

    Args:
        kubeconfig: a kubeconfig file; None: the pod's service account.
        metrics: the gateway's.
        registration: the name of the webhook configurations that register the gateway.
        service: the gateway's Service, which is probed; None: there is none, or it is not known.
        tls_secret: namespace and name of the Secret with the certificate; None: it comes from elsewhere. It needs
            ``service``.
        probe_handshake: see WebhookProbe.
    """

    def __init__(
        self,
        kubeconfig: Path | None,
        metrics: Metrics,
        *,
        registration: str,
        service: ServiceReference | None = None,
        tls_secret: tuple[str, str] | None = None,
        probe_handshake: bool = True,
    ) -> None:
        metrics.use(CLUSTER)
        self._metrics = metrics
        self.client = KubernetesClient(kubeconfig)
        self.facts = ClusterFacts(self.client, metrics)
        self.registered = RegisteredObjects(self.client, registration)
        self._tasks: list[asyncio.Task[None]] = []
        self.probe: WebhookProbe | None = None
        self.certificate: CertificateSecret | None = None
        if service is not None:
            metrics.use(WEBHOOK_PROBE)
            self.probe = WebhookProbe(self.client, service, handshake=probe_handshake, found=self._probed)
            if tls_secret is not None:
                names = service_names(service.namespace, service.name)
                self.certificate = CertificateSecret(self.client, tls_secret, names, trusted=self.probe.trusted)

    async def start(self) -> None:
        """Connect, and begin to watch. An API server that is away delays the start, and does not prevent it.

        Raises:
            KubeconfigError: there are no credentials.
        """
        await self.client.connect()
        for each in (self.facts, self.registered, self.certificate, self.probe):
            if each is not None:
                self._tasks.append(asyncio.create_task(each.run()))
        with suppress(TimeoutError):
            async with asyncio.timeout(_FIRST_LIST_SECONDS):
                await self.facts.synced()
                await self.registered.synced()

    async def stop(self) -> None:
        """End the tasks, and close the connections."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self.client.close()

    @property
    def note(self) -> str | None:
        """Why what is known of the cluster may be out of date, for /readyz; None if it is not."""
        problem = self.facts.note or self.registered.note
        return None if problem is None else f"what is known of the cluster may be out of date: {problem}"

    def look(self) -> None:
        """Read the Secret again, and probe, now."""
        for each in (self.certificate, self.probe):
            if each is not None:
                each.look()

    def _probed(self, result: ProbeResult) -> None:
        self._metrics.set(WEBHOOK_PROBE_SUCCESS, float(result.problem is None))
        for certificate, expires in (("leaf", result.leaf), ("ca", result.ca)):
            if expires is not None:
                self._metrics.set(WEBHOOK_CERTIFICATE_EXPIRATION, expires.timestamp(), certificate)
