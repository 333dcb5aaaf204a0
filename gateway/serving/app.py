"""One gateway: creates configuration, certificates, workers and listeners, and starts and stops them in order.

Start: the gateway reads all files first, so that an error ends the start before anything listens. Then it starts the
admin listener (alive, not ready), the workers and the HTTP server for reviews. While it runs, it watches the
configuration and switches to a new one (``reload``). Stop: the HTTP server drains, then the workers are closed, the
admin listener last.
"""

import asyncio
import math
import secrets
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final, Optional

import structlog
from msgspec import Struct

from gateway.certificates.pair import CertificatePair
from gateway.engine.availability import UnavailablePolicy
from gateway.policies.decoding.texts import SourceText
from gateway.policies.errors import ConfigurationError
from gateway.policies.model import Configuration
from gateway.serving.access import AccessControl
from gateway.serving.admin import AdminListener
from gateway.serving.configuration_switch import ConfigurationSwitch
from gateway.serving.development_certificates import DevelopmentCertificates, ensure_development_certificates
from gateway.serving.http_server import HttpServer
from gateway.serving.idempotency_check import IdempotencyCheck
from gateway.serving.loaded_configuration import LoadedConfiguration
from gateway.serving.outdated_calls import OutdatedCalls
from gateway.serving.patch_lines import PatchLines
from gateway.serving.purge import PurgePage
from gateway.serving.reload import Reload
from gateway.serving.reload_report import Report
from gateway.serving.replay import Replays
from gateway.serving.review_handler import DecisionObserver, ReviewHandler, refusal
from gateway.serving.route_table import NOT_SERVING, RouteTable
from gateway.serving.served_certificate import ServedCertificate, system_now
from gateway.serving.settings import Address, Settings
from gateway.serving.shadow_comparison import ShadowComparison
from gateway.serving.tls import read_pair
from gateway.serving.verdict_cache import ServedCache
from gateway.sources.watching import Source
from gateway.telemetry.decisions import DecisionLog
from gateway.telemetry.metrics import Metrics
from gateway.telemetry.table import BODY_BYTES_IN_FLIGHT, CONNECTIONS, REDIS, REVIEWS_IN_FLIGHT
from gateway.transports.workers import Workers

if TYPE_CHECKING:
    from gateway.cluster.cluster import Cluster
    from gateway.serving.cluster_policies import ClusterPolicies
    from gateway.serving.self_registration import SelfRegistration

_LOG: Final = structlog.get_logger(__name__)

_DIGEST_KEY_BYTES: Final = 32
"""Length of the key that hashes values for the log: that of a SHA-256 digest."""


class WatchedSource(Struct, frozen=True, kw_only=True):
    """A configuration source to watch, and the texts that were read from it."""

    source: Source
    texts: tuple[SourceText, ...]


class StrictError(Exception):
    """A strict start is refused. ``errors``: those in the files, and those that workers report."""

    def __init__(self, errors: tuple[ConfigurationError, ...]) -> None:
        super().__init__("a strict start is refused")
        self.errors = errors


class Gateway:
    """Serves one configuration, and those that replace it.

    Args:
        configuration: complete (not ``fatal``).
        settings: see Settings.
        metrics: the gateway's metrics.
        consumers: observe each decision, in addition to metrics and the decision log.
        watched: where the configuration comes from; None: it is never reloaded.

    Raises:
        CacheError, CredentialError: files or an address in the settings that cannot be used.

    ``drain_seconds`` is how long ``stop`` drains at most; it may be changed until then.
    """

    def __init__(
        self,
        configuration: Configuration,
        settings: Settings,
        metrics: Metrics | None = None,
        consumers: Sequence[DecisionObserver] = (),
        *,
        watched: WatchedSource | None = None,
    ) -> None:
        self.settings = settings
        self.drain_seconds = settings.drain_seconds
        self.metrics = metrics or Metrics()
        self.certificates: DevelopmentCertificates | None = None
        if settings.redis:
            self.metrics.use(REDIS)
        self.cache = ServedCache(
            self.metrics,
            redis=settings.redis,
            seal_key_file=settings.seal_key_file,
            limits=settings.cache_limits,
            configuration=lambda: self._loaded,
        )
        self._access = AccessControl(settings, self.metrics)
        certificates_only = bool(settings.client_cas) and not self._access.clients.has_other_credentials
        self.cluster = _cluster(settings, self.metrics, needs_client_certificate=certificates_only)
        self._report = Report(self.metrics)
        self._outdated = OutdatedCalls(self.metrics)
        self._rollout = ConfigurationSwitch(
            configuration,
            watched.texts if watched and not settings.cluster_policies else (),
            limits=settings.transport_limits,
            wait_seconds=settings.worker_startup_timeout,
            report=self._report,
            keep=self._outdated.kept,
            caching=self.cache.policy_caller,
            worker_events=self.metrics,
            transport_config=settings.transport_config,
            facts=None if self.cluster is None else self.cluster.facts,
        )
        self._reload = (
            Reload(
                watched.source,
                watched.texts,
                rollout=self._rollout,
                report=self._report,
                interval=settings.reload_interval_seconds,
            )
            if watched
            else None
        )
        self._stopping = False
        self._cluster_policies = self._policies_of(self.cluster, self._reload)
        self._background: list[asyncio.Task[None]] = []
        self._replays = Replays(lambda: self._loaded, patch_limits=settings.patch_limits)
        self._routes = RouteTable(self._rollout, settings.hooks)
        self._registration = self._self_registration()
        self._certificate: ServedCertificate | None = None
        self._judge = self._review_handler(consumers)
        self.front = HttpServer(
            judge=self._judge,
            refuse=refusal,
            routes=self._routes,
            authentication=self._access.clients,
            limits=settings.limits,
            events=self.metrics,
        )
        self.admin = AdminListener(
            checks=self._checks,
            notes=self._notes,
            warnings=lambda: self._report.warnings,
            metrics=self._exposition,
            purge=PurgePage(self.cache.policies, self.cache.purge, lambda: self.cache.note),
            access=self._access.admin,
            limits=settings.limits,
        )

    def _review_handler(self, consumers: Sequence[DecisionObserver]) -> ReviewHandler:
        """The handler of all reviews, with those who observe its decisions."""
        settings = self.settings
        lines = PatchLines(secrets.token_bytes(_DIGEST_KEY_BYTES))
        observers: list[DecisionObserver] = [self.metrics, DecisionLog()]
        if settings.idempotency_sample_ratio:
            share = settings.idempotency_sample_ratio
            observers.append(IdempotencyCheck(self._replays, self.metrics, share=share, lines=lines))
        shadows = None
        if settings.shadow_sample_ratio:
            shadows = ShadowComparison(self._replays, self.metrics, share=settings.shadow_sample_ratio, lines=lines)
        return ReviewHandler(
            self._rollout,
            events=self.metrics,
            outdated=self._outdated,
            consumers=(*observers, *consumers),
            shadows=shadows,
            depth=settings.limits.depth,
            patch_limits=settings.patch_limits,
            prefetch=settings.prefetch,
        )

    def _self_registration(self) -> Optional["SelfRegistration"]:
        if self.cluster is None or self.settings.registration is None:
            return None
        from gateway.serving.self_registration import SelfRegistration  # noqa: PLC0415 - as Cluster

        secret = self.cluster.certificate
        registration = SelfRegistration(
            self.cluster.client,
            self.settings,
            self._rollout,
            self.metrics,
            bundle=None if secret is None else lambda: secret.bundle,
        )
        if secret is not None:
            secret.subscribe(registration.changed)
        return registration

    @property
    def _loaded(self) -> LoadedConfiguration:
        return self._rollout.current

    @property
    def configuration(self) -> Configuration:
        """The configuration in force."""
        return self._loaded.configuration

    @property
    def workers(self) -> Workers:
        """The workers of the configuration in force."""
        return self._loaded.workers

    @property
    def unavailable(self) -> tuple[UnavailablePolicy, ...]:
        """The policies of the configuration in force that cannot be called as they are configured."""
        return self._loaded.unavailable()

    async def start(self) -> tuple[Address, Address]:
        """Start everything.

        Returns:
            Host and port of the HTTP server for reviews, and of the admin listener.

        Raises:
            TlsError, CertificateError, ListenError, KubeconfigError: what cannot be used, why, and what to do. Nothing
                is left running.
            StrictError: ``Settings.strict`` is set, and there are errors.
        """
        interval = self.settings.reload_interval_seconds
        if self.settings.tls_secret is None:
            self._certificate = self._served(partial(read_pair, *self._certificate_files()))
        self._report.loaded(self._loaded)
        for error in self.configuration.errors:
            _LOG.error("an error in the configuration", place=str(error.place), error=error.message)
        try:
            admin = await self.admin.start(*self.settings.admin_listen)
            if self.cluster is not None:
                await self.cluster.start()
            await self.cache.start()
            await self._rollout.start()
            self._refuse_errors_if_strict()
            certificate = self._certificate = self._certificate or await self._certificate_of_secret()
            max_age = self.settings.max_connection_age_seconds or math.inf
            front = await self.front.start(*self.settings.listen, certificate.context, max_connection_age=max_age)
        except BaseException:
            await self._close()
            raise
        if self._cluster_policies is None:
            self._be_ready()
        else:
            self._routes.not_ready = "the policies in the cluster are not known yet; /readyz says why"
            self._cluster_policies.start(front)
        self._access.warn(front[0])
        if self._reload is not None:
            self._background.append(asyncio.create_task(self._reload.run()))
        self._background.append(asyncio.create_task(self.cache.watch(interval)))
        self._background.append(asyncio.create_task(self._access.files.watch(interval)))
        self._background.append(asyncio.create_task(certificate.watch(interval, self.front.renew)))
        return front, admin

    def _policies_of(self, cluster: Optional["Cluster"], reload: Reload | None) -> Optional["ClusterPolicies"]:
        if not self.settings.cluster_policies or cluster is None or reload is None:
            return None
        from gateway.serving.cluster_policies import ClusterPolicies  # noqa: PLC0415 - as Cluster

        return ClusterPolicies(cluster.client, reload, self._rollout, self._be_ready)

    def _be_ready(self) -> None:
        if not self._stopping:
            self._routes.not_ready = None
            if self._registration is not None:
                self._registration.start()

    def _refuse_errors_if_strict(self) -> None:
        answers = (error for each in self._loaded.unavailable() if each.answered for error in each.errors)
        errors = (*self.configuration.errors, *answers)
        if self.settings.strict and errors:
            raise StrictError(errors)

    def reload(self) -> None:
        """Read the configuration, the seal keys, the credentials and the certificate again, now."""
        if self._reload is not None:
            self._reload.now()
        self.cache.look()
        self._access.files.look()
        if self._certificate is not None:
            self._certificate.look()
        if self.cluster is not None:
            self.cluster.look()

    def _served(self, pair: Callable[[], CertificatePair]) -> ServedCertificate:
        return ServedCertificate(
            pair,
            self.settings.client_cas,
            self.metrics,
            certificate_optional=self._access.clients.has_other_credentials,
            now=system_now if self.cluster is None else self.cluster.client.now,
        )

    async def _certificate_of_secret(self) -> ServedCertificate:
        """The certificate of the Secret, as soon as there is one: until then the gateway is alive, and not ready."""
        secret = None if self.cluster is None else self.cluster.certificate
        if secret is None:
            raise ValueError("a certificate in a Secret needs the cluster and the gateway's Service")
        await secret.exists.wait()
        certificate = self._served(lambda: secret.pair)
        secret.subscribe(certificate.look)
        return certificate

    def _certificate_files(self) -> tuple[Path, Path]:
        if self.settings.tls_dev_dir is not None:
            self.certificates = ensure_development_certificates(self.settings.tls_dev_dir, self.settings.tls_dev_names)
            return self.certificates.cert_file, self.certificates.key_file
        if self.settings.tls_cert is None or self.settings.tls_key is None:
            raise ValueError("neither certificate and key nor a directory for development certificates")
        return self.settings.tls_cert, self.settings.tls_key

    async def stop(self, *, drain: bool = True) -> None:
        """Stop: serve until no client is connected, as ``HttpServer.drain`` does; then release everything.

        Without ``drain``, clients are not waited for: reviews in flight are decided at once, by their failure policies.
        """
        self._replays.stop()
        if self._registration is not None:
            self._registration.resign()
        if drain:
            await self.front.drain(self.drain_seconds, at_least=self.settings.shutdown_delay_seconds)
        self._stopping = True
        self._routes.not_ready = NOT_SERVING
        if not drain:
            self._judge.break_off("the gateway had to stop at once; try again, another replica may serve")
        await self._close()

    async def _close(self) -> None:
        await self.front.stop()
        for task in self._background:
            task.cancel()
        await asyncio.gather(*self._background, return_exceptions=True)
        await self._replays.idle()
        await self._rollout.close()
        await self.cache.close()
        if self._cluster_policies is not None:
            await self._cluster_policies.stop()
        if self._registration is not None:
            await self._registration.stop()
        if self.cluster is not None:
            await self.cluster.stop()
        await self.admin.stop()

    # -------------------------------------------------------------------------------------------------- state

    def _checks(self) -> dict[str, str | None]:
        """The readiness checks: configuration and certificate; never workers."""
        certificate = self._certificate_problem()
        # As kube-apiserver's: balancers stop sending connections while reviews are still answered.
        shutdown = "the gateway is shutting down" if self.front.draining else None
        checks = {"configuration": self._routes.not_ready, "certificate": certificate, "shutdown": shutdown}
        if self._cluster_policies is not None:
            checks["cluster-policies"] = self._cluster_policies.not_ready
        # These never fail, but carry notes: without Redis everything works, with more calls to workers, and without the
        # Kubernetes API with what is known of it.
        noted = {
            "credentials": bool(self._access.files),
            "cache": bool(self.settings.redis),
            "cluster": self.cluster is not None,
            "webhooks": self.cluster is not None and self.cluster.probe is not None,
            "registration": self._registration is not None,
        }
        return checks | {check: None for check, exists in noted.items() if exists}

    def _certificate_problem(self) -> str | None:
        secret = None if self.cluster is None else self.cluster.certificate
        if self._certificate is None:
            return (None if secret is None else secret.note) or "there is none yet"
        probe = None if self.cluster is None else self.cluster.probe
        replaced = probe is not None and probe.last.problem is None and probe.last.leaf is not None
        return self._certificate.problem(replaced=replaced)

    def _certificate_note(self) -> str | None:
        secret = None if self.cluster is None else self.cluster.certificate
        notes = [each.note for each in (self._certificate, secret) if each is not None]
        return "; ".join(each for each in notes if each is not None) or None

    def _notes(self) -> dict[str, str]:
        certificate = self._certificate_note()
        probe = None if self.cluster is None else self.cluster.probe
        configuration = "; ".join(filter(None, (self._report.note, self._outdated.note))) or None
        notes = {
            "configuration": configuration,
            "certificate": certificate,
            "credentials": self._access.files.note,
            "cache": self.cache.note,
            "cluster": None if self.cluster is None else self.cluster.note,
            "cluster-policies": None if self._cluster_policies is None else self._cluster_policies.note,
            "webhooks": None if probe is None else probe.last.problem,
            "registration": None if self._registration is None else self._registration.note,
        }
        return {check: note for check, note in notes.items() if note is not None}

    def _exposition(self) -> tuple[str, bytes]:
        self.metrics.set(REVIEWS_IN_FLIGHT, self.front.load.reviews)
        self.metrics.set(BODY_BYTES_IN_FLIGHT, self.front.load.body_bytes)
        self.metrics.set(CONNECTIONS, self.front.connections)
        if self.cluster is not None:
            self.cluster.observe()
        return self.metrics.exposition()


def _cluster(settings: Settings, metrics: Metrics, *, needs_client_certificate: bool) -> Optional["Cluster"]:
    if not settings.cluster:
        return None
    # It takes as long to import as everything else.
    from gateway.cluster.cluster import Cluster  # noqa: PLC0415

    return Cluster(
        settings.kubeconfig,
        metrics,
        service=settings.service,
        tls_secret=settings.tls_secret,
        probe_handshake=not needs_client_certificate,
    )


async def start_unless(stop: asyncio.Event, gateway: Gateway) -> tuple[Address, Address] | None:
    """Start a gateway, as ``Gateway.start`` does; None, with nothing left running, if ``stop`` is set meanwhile."""
    starting = asyncio.create_task(gateway.start())
    stopping = asyncio.create_task(stop.wait())
    await asyncio.wait((starting, stopping), return_when=asyncio.FIRST_COMPLETED)
    stopping.cancel()
    if not starting.done():
        starting.cancel()
    await asyncio.gather(starting, stopping, return_exceptions=True)
    return None if starting.cancelled() else starting.result()


async def serve_until(stop: asyncio.Event, gateway: Gateway) -> None:
    """Serve a started gateway until ``stop`` is set, then drain; when ``stop`` is set again, stop at once."""
    await stop.wait()
    stop.clear()
    _LOG.info("stopping: serving until no client is connected", seconds=gateway.drain_seconds)
    draining = asyncio.create_task(gateway.stop())
    timeout = asyncio.create_task(stop.wait())
    await asyncio.wait((draining, timeout), return_when=asyncio.FIRST_COMPLETED)
    if not draining.done():
        draining.cancel()
        await asyncio.gather(draining, return_exceptions=True)
        await gateway.stop(drain=False)
    timeout.cancel()
    await asyncio.gather(timeout, return_exceptions=True)
    if not draining.cancelled():
        # Raises the error of a failed stop: it must not end as exit code 0.
        draining.result()
