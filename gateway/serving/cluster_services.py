"""What one gateway does in its cluster: loads the policies there, and registers itself, from the time it is ready."""

from collections.abc import Callable, Iterator

from gateway.cluster.cluster import Cluster
from gateway.serving.admin import Check
from gateway.serving.cluster_policies import ClusterPolicies
from gateway.serving.configuration_switch import ConfigurationSwitch
from gateway.serving.reload import Reload
from gateway.serving.self_registration import SelfRegistration
from gateway.serving.settings import Address, Settings
from gateway.telemetry.metrics import Metrics
from gateway.telemetry.table import CLUSTER_WATCH_OPEN


class ClusterServices:
    """The services that the settings choose.

    Args:
        cluster: it is started and stopped with them.
        settings: choose whether policies are loaded, and whether the gateway registers itself.
        rollout: has the configuration in force.
        reload: loads files and objects together; None: no policies are loaded.
        metrics: the gateway's.
        ready: called once reviews can be judged.
    """

    def __init__(
        self,
        cluster: Cluster,
        settings: Settings,
        rollout: ConfigurationSwitch,
        reload: Reload | None,
        metrics: Metrics,
        ready: Callable[[], object],
    ) -> None:
        self._cluster, self._rollout = cluster, rollout
        self._metrics = metrics
        self._ready = ready
        self._policies: ClusterPolicies | None = None
        if settings.cluster_policies and reload is not None:
            self._policies = ClusterPolicies(cluster.client, reload, rollout, self._be_ready, process=settings.process)
        self._registration: SelfRegistration | None = None
        if settings.registration is not None:
            secret = cluster.certificate
            bundle = None if secret is None else lambda: secret.bundle
            self._registration = SelfRegistration(cluster, settings, rollout, metrics, bundle=bundle)
            if secret is not None:
                secret.subscribe(self._registration.changed)

    async def connect(self) -> None:
        """See Cluster.start."""
        await self._cluster.start()

    def start(self, listen: Address) -> None:
        """Begin: the gateway listens there."""
        if self._policies is None:
            self._be_ready()
        else:
            self._policies.start(listen)

    def _be_ready(self) -> None:
        # Not before: what is registered is judged by the first configuration in force, not by one without policies.
        self._cluster.registered.follow(self._rollout.registered)
        self._ready()
        if self._registration is not None:
            self._registration.start()

    def resign(self) -> None:
        """Let another replica lead: this one is about to stop."""
        if self._registration is not None:
            self._registration.resign()

    async def stop(self) -> None:
        """End all of it, and close the connections."""
        for service in (self._policies, self._registration, self._cluster):
            if service is not None:
                await service.stop()

    def look(self) -> None:
        """See Cluster."""
        self._cluster.look()

    def observe(self) -> None:
        """Set the gauges."""
        problems = [self._cluster.note, None if self._policies is None else self._policies.watch_problem]
        self._metrics.set(CLUSTER_WATCH_OPEN, float(not any(problems)))

    def checks(self) -> Iterator[Check]:
        """Those of the cluster. The gateway works with what it knows while the Kubernetes API is away."""
        yield Check("cluster", note=self._cluster.note)
        if self._policies is not None:
            yield Check("cluster-policies", self._policies.not_ready, self._policies.note)
        if self._cluster.probe is not None:
            yield Check("webhooks", note=self._cluster.probe.last.problem)
        if self._registration is not None:
            yield Check("registration", note=self._registration.note)
