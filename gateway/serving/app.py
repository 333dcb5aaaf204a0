"""One gateway: creates configuration, certificates, workers and listeners, and starts and stops them in order.

Start: the gateway reads all files first, so that an error ends the start before anything listens. Then it starts the
admin listener (alive, not ready), the workers and the HTTP server for reviews. While it runs, it watches the
configuration and switches to a new one (``reload``). Stop: the HTTP server drains, then the workers are closed, the
admin listener last.
"""

import asyncio
import math
import secrets
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final, Optional

import structlog
from msgspec import Struct

from gateway.engine.availability import UnavailablePolicy
from gateway.policies.decoding.texts import SourceText
from gateway.policies.errors import ConfigurationError
from gateway.policies.model import Configuration
from gateway.serving.access import AccessControl
from gateway.serving.admin import AdminListener, Check, Dashboard
from gateway.serving.certificate_source import CertificateSource
from gateway.serving.configuration_switch import ConfigurationSwitch
from gateway.serving.decision_outputs import DecisionOutputs
from gateway.serving.development_certificates import DevelopmentCertificates
from gateway.serving.explain import PATH as EXPLAIN
from gateway.serving.explanations import Explanations
from gateway.serving.http_server import HttpServer
from gateway.serving.idempotency_check import IdempotencyCheck
from gateway.serving.loaded_configuration import LoadedConfiguration
from gateway.serving.outdated_calls import OutdatedCalls
from gateway.serving.patch_lines import PatchLines
from gateway.serving.processes.channel import ProcessChannel
from gateway.serving.purge import PATH as PURGE
from gateway.serving.purge import PurgePage
from gateway.serving.reload import Reload
from gateway.serving.reload_report import Report
from gateway.serving.replay import Replays
from gateway.serving.review_handler import DecisionObserver, ReviewHandler
from gateway.serving.route_table import NOT_SERVING, RouteTable, passed_on
from gateway.serving.settings import Address, Settings
from gateway.serving.shadow_comparison import ShadowComparison
from gateway.serving.verdict_cache import ServedCache
from gateway.sources.watching import Source
from gateway.telemetry.metrics import Metrics
from gateway.telemetry.process import observe_process, watch_lag
from gateway.telemetry.table import (
    BODY_BYTES_IN_FLIGHT,
    BODY_BYTES_IN_FLIGHT_LIMIT,
    CONNECTIONS,
    REDIS,
    REVIEWS_IN_FLIGHT,
    REVIEWS_IN_FLIGHT_LIMIT,
    REVIEWS_WAITING,
)
from gateway.transports.workers import Workers

if TYPE_CHECKING:
    from gateway.cluster.cluster import Cluster
    from gateway.serving.cluster_services import ClusterServices
    from gateway.telemetry.traces.tracer import ReviewTracer

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
        CacheError, CredentialError, OutputError: files or an address in the settings that cannot be used.

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
        if settings.redis:
            self.metrics.use(REDIS)
        self.metrics.set(REVIEWS_IN_FLIGHT_LIMIT, settings.limits.reviews_in_flight)
        self.metrics.set(BODY_BYTES_IN_FLIGHT_LIMIT, settings.limits.body_bytes_in_flight)
        self.cache = ServedCache(
            self.metrics,
            redis=settings.redis,
            seal_key_file=settings.seal_key_file,
            limits=settings.cache_limits,
            configuration=lambda: self._loaded,
        )
        self._access = AccessControl(settings, self.metrics)
        certificates_only = bool(settings.client_cas) and not self._access.clients.has_other_credentials
        cluster = _cluster(settings, self.metrics, needs_client_certificate=certificates_only)
        self._certificate = CertificateSource(
            settings, self.metrics, certificate_optional=self._access.clients.has_other_credentials, cluster=cluster
        )
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
            facts=None if cluster is None else cluster.facts,
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
        self._background: list[asyncio.Task[None]] = []
        self._replays = Replays(lambda: self._loaded, patch_limits=settings.patch_limits)
        self._routes = RouteTable(self._rollout, settings.hooks)
        self._services = self._cluster_services(cluster)
        self._outputs = DecisionOutputs(settings, self.metrics)
        self.explanations = Explanations(settings, self.metrics, self.cache)
        """The decisions that are retained, and who finds them."""
        self._tracer = _tracer(settings, self.metrics)
        self._judge = self._review_handler(consumers)
        self.front = HttpServer(
            judge=self._judge,
            refuse=self._judge.refuse,
            routes=self._routes,
            authentication=self._access.clients,
            limits=settings.limits,
            begin_trace=passed_on if self._tracer is None else self._tracer.begin,
            events=self.metrics,
        )
        self.admin = AdminListener(
            checks=self._checks,
            warnings=lambda: self._report.warnings,
            metrics=self._metrics_page,
            pages={
                PURGE: PurgePage(self.cache.policies, self.cache.purge, lambda: self.cache.note),
                EXPLAIN: self.explanations.page,
            },
            dashboard=self._make_dashboard,
            access=self._access.admin,
            limits=settings.limits,
            events=self.metrics,
        )

    def _review_handler(self, consumers: Sequence[DecisionObserver]) -> ReviewHandler:
        """The handler of all reviews, with those who observe its decisions."""
        settings = self.settings
        lines = PatchLines(secrets.token_bytes(_DIGEST_KEY_BYTES))
        observers: list[DecisionObserver] = [self.metrics, *self._outputs.observers, self.explanations.memory]
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
            traced=() if self._tracer is None else (self._tracer,),
            shadows=shadows,
            limits=settings.limits,
            patch_limits=settings.patch_limits,
            prefetch=settings.prefetch,
        )

    def _cluster_services(self, cluster: Optional["Cluster"]) -> Optional["ClusterServices"]:
        if cluster is None:
            return None
        from gateway.serving.cluster_services import ClusterServices  # noqa: PLC0415 - as Cluster

        return ClusterServices(cluster, self.settings, self._rollout, self._reload, self.metrics, ready=self._be_ready)

    @property
    def _loaded(self) -> LoadedConfiguration:
        return self._rollout.current

    @property
    def configuration(self) -> Configuration:
        """The configuration in force."""
        return self._loaded.configuration

    @property
    def certificates(self) -> DevelopmentCertificates | None:
        """The development certificates that are served, after ``start``; None: others are."""
        return self._certificate.development

    @property
    def workers(self) -> Workers:
        """The workers of the configuration in force."""
        return self._loaded.workers

    @property
    def unavailable(self) -> tuple[UnavailablePolicy, ...]:
        """The policies of the configuration in force that cannot be called as they are configured."""
        return self._loaded.unavailable()

    async def start(self, channel: ProcessChannel | None = None) -> tuple[Address, Address]:
        """Start everything.

        Args:
            channel: from where connections come, if this is one process of several; None: it listens itself.

        Returns:
            Host and port of the HTTP server for reviews, and of the admin listener.

        Raises:
            TlsError, CertificateError, ListenError, KubeconfigError: what cannot be used, why, and what to do. Nothing
                is left running.
            StrictError: ``Settings.strict`` is set, and there are errors.
        """
        interval = self.settings.reload_interval_seconds
        self._certificate.read()
        if self._tracer is not None:
            self._tracer.start()
        self._report.loaded(self._loaded)
        for error in self.configuration.errors:
            _LOG.error("an error in the configuration", place=str(error.place), error=error.message)
        try:
            sources = (None, None) if channel is None else (channel.reviews, channel.admin)
            admin = await self.admin.start(
                *self.settings.admin_listen,
                source=sources[1],
                parent_pages=self.explanations.parent_pages(),
            )
            if self._services is not None:
                await self._services.connect()
            await self.cache.start()
            self.explanations.start()
            await self._rollout.start()
            self._refuse_errors_if_strict()
            context = await self._certificate.wait()
            max_age = self.settings.max_connection_age_seconds or math.inf
            self._outputs.start()
            front = await self.front.start(
                *self.settings.listen, context, max_connection_age=max_age, source=sources[0]
            )
        except BaseException:
            await self._close()
            raise
        if self.settings.cluster_policies:
            self._routes.not_ready = "the policies in the cluster are not known yet; /readyz says why"
        if self._services is None:
            self._be_ready()
        else:
            self._services.start(front)
        self._access.warn(front[0], admin[0])
        watches = [
            self.cache.watch(interval),
            self._access.files.watch(interval),
            self._certificate.watch(interval, self.front.renew),
            watch_lag(self.metrics),
        ]
        if self._reload is not None:
            watches.append(self._reload.run())
        self._background = [asyncio.create_task(watch) for watch in watches]
        return front, admin

    def _be_ready(self) -> None:
        if not self._stopping:
            self._routes.not_ready = None

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
        self._certificate.look()
        if self._services is not None:
            self._services.look()

    async def stop(self, *, drain: bool = True) -> None:
        """Stop: serve until no client is connected, as ``HttpServer.drain`` does; then release everything.

        Without ``drain``, clients are not waited for: reviews in flight are decided at once, by their failure policies.
        """
        self._replays.stop()
        if self._services is not None:
            self._services.resign()
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
        await self.explanations.close()
        await self.cache.close()
        if self._tracer is not None:
            await self._tracer.stop()
        if self._services is not None:
            await self._services.stop()
        await self._outputs.stop()
        await self.admin.stop()

    # -------------------------------------------------------------------------------------------------- state

    def _make_dashboard(self) -> Dashboard:
        from gateway.serving.dashboard.assembly import make_dashboard  # noqa: PLC0415 - see AdminListener

        return make_dashboard(
            metrics=self.metrics,
            retained=self.explanations.memory,
            loaded=lambda: self._loaded,
            checks=self._checks,
            rejected=lambda: self._report.rejected,
        )

    def _checks(self) -> Iterator[Check]:
        """The readiness checks: configuration and certificate; never workers. Others have only notes."""
        notes = "; ".join(filter(None, (self._report.note, self._outdated.note))) or None
        yield Check("configuration", self._routes.not_ready, notes)
        yield self._certificate.check()
        # As kube-apiserver's: balancers stop sending connections while reviews are still answered.
        yield Check("shutdown", "the gateway is shutting down" if self.front.draining else None)
        if self._access.files:
            yield Check("credentials", note=self._access.files.note)
        if self.settings.redis:
            # Without Redis everything works, with more calls to workers.
            yield Check("cache", note=self.cache.note)
        if self._services is not None:
            yield from self._services.checks()

    async def _metrics_page(self, *, openmetrics: bool) -> tuple[str, bytes]:
        self.metrics.set(REVIEWS_IN_FLIGHT, self.front.load.reviews - self.front.waiting)
        self.metrics.set(REVIEWS_WAITING, self.front.waiting)
        self.metrics.set(BODY_BYTES_IN_FLIGHT, self.front.load.body_bytes)
        self.metrics.set(CONNECTIONS, self.front.connections)
        self.explanations.memory.observe()
        observe_process(self.metrics)
        if self._services is not None:
            self._services.observe()
        return await self.metrics.written(openmetrics=openmetrics)


def _tracer(settings: Settings, metrics: Metrics) -> Optional["ReviewTracer"]:
    if settings.traces is None:
        return None
    from gateway.telemetry.traces.tracer import ReviewTracer  # noqa: PLC0415 - most gateways do not need it

    return ReviewTracer(settings.traces, metrics)


def _cluster(settings: Settings, metrics: Metrics, *, needs_client_certificate: bool) -> Optional["Cluster"]:
    if not settings.cluster:
        return None
    # It takes as long to import as everything else.
    from gateway.cluster.cluster import Cluster  # noqa: PLC0415

    return Cluster(
        settings.kubeconfig,
        metrics,
        registration=settings.registration_name,
        service=settings.service,
        tls_secret=settings.tls_secret,
        probe_handshake=not needs_client_certificate,
    )
