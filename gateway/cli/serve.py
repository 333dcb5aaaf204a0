"""``admission-gateway serve``: serve kube-apiserver until SIGTERM or SIGINT."""

import asyncio
import gc
import signal
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Final

import click
import uvloop
from click.core import ParameterSource

from gateway.caching.limits import CacheLimits
from gateway.cli.configuration import counted, loaded, report_errors
from gateway.cli.hook_options import Server, chosen_hooks, chosen_registration, chosen_server, require_policies
from gateway.cli.options import (
    chosen_limits,
)
from gateway.cli.standard_streams import COULD_NOT, WRONG_CONFIGURATION, fail, note
from gateway.cli.transport_options import chosen_transport_config, report_unused_hosts
from gateway.cluster.errors import KubeconfigError
from gateway.patching.limits import PatchLimits
from gateway.policies.configuration import load
from gateway.policies.decoding.texts import SourceText
from gateway.policies.model import Configuration
from gateway.serving.app import Gateway, StrictError, WatchedSource, serve_until, start_unless
from gateway.serving.credential_files import CredentialError
from gateway.serving.development_certificates import CertificateError
from gateway.serving.limits import Limits
from gateway.serving.listener import ListenError
from gateway.serving.settings import RegistrationSettings, Settings
from gateway.serving.tls import TlsError
from gateway.serving.verdict_cache import CacheError
from gateway.sources.files import SourceError
from gateway.sources.watching import Source
from gateway.telemetry.logs import configure_logs
from gateway.telemetry.metrics import Metrics
from gateway.telemetry.table import LIMIT_HITS, LOG_LINES
from gateway.transports.limits import TransportLimits

_THREADS: Final = 64
"""Threads for name resolution, files and large answers. A name without a DNS answer blocks one for the resolver's
timeout, some 10 s. Python's default is 4 more than cores: a few webhooks with such names would block all file reads."""

_COLLECT_AFTER: Final = 20_000
"""New objects until a garbage collection: those of some fifty reviews, a few megabytes. A review makes a few hundred,
which reference counting frees; at the default threshold of 700 a collection ran every other review and took 3 % of the
time."""

_REFUSED: Final = (
    SourceError,
    CacheError,
    CredentialError,
    TlsError,
    CertificateError,
    ListenError,
    KubeconfigError,
)
"""What refuses a start: their texts say what to do."""


def run(policies: tuple[Path, ...], **values: Any) -> None:
    """See the command."""
    limits, transport_limits, patch_limits, cache_limits = chosen_limits(
        values, Limits, TransportLimits, PatchLimits, CacheLimits
    )
    transport_config = chosen_transport_config(values)
    hooks = chosen_hooks(values, seconds=transport_limits.hook_config_seconds)
    server = chosen_server(values)
    cluster = values["cluster"] or values["kubeconfig"] is not None
    if values["cluster_policies"]:
        _check_cluster_policies(values, cluster=cluster)
    else:
        require_policies(policies, hooks, "--policies")
    cert, key = _certificate(values, server)
    client_cas = server.client_cas if values["client_ca"] is None else (values["client_ca"],)
    if values["client_allowed_name"] and not client_cas:
        raise click.UsageError("--client-allowed-name requires --client-ca: it selects among certificates of that CA")
    if values["seal_key_file"] is not None and not values["redis"]:
        raise click.UsageError("--seal-key-file requires --redis: it encrypts entries in Redis")
    metrics = Metrics()
    stop_logs = configure_logs(
        level=values["log_level"], form=values["log_format"], dropped=lambda: metrics.count(LIMIT_HITS, LOG_LINES)
    )
    try:
        source = Source(policies, hooks)
        watched = WatchedSource(source=source, texts=source.read())
        if values["cluster_policies"]:
            configuration = _known_with_the_cluster(watched.texts)
        else:
            configuration = loaded(watched.texts, strict=values["strict"])
        report_unused_hosts(configuration, transport_config)
        settings = Settings(
            listen=_listen(values, server),
            admin_listen=values["admin_listen"],
            tls_cert=cert,
            tls_key=key,
            tls_dev_dir=values["tls_dev_dir"],
            tls_dev_names=values["tls_dev_name"],
            tls_secret=values["tls_secret"],
            service=values["service"],
            client_cas=client_cas,
            client_allowed_names=values["client_allowed_name"],
            bearer_token_file=values["bearer_token_file"],
            basic_auth_file=values["basic_auth_file"],
            path_secret_file=values["path_secret_file"],
            admin_token_file=values["admin_token_file"],
            hooks="" if hooks is None else hooks.configuration,
            worker_startup_timeout=values["worker_startup_timeout"],
            drain_seconds=values["drain"],
            shutdown_delay_seconds=values["shutdown_delay"],
            max_connection_age_seconds=values["max_connection_age"],
            strict=values["strict"],
            reload_interval_seconds=values["reload_interval"],
            cluster=cluster,
            kubeconfig=values["kubeconfig"],
            cluster_policies=values["cluster_policies"],
            registration=_registration(values),
            redis=values["redis"] or "",
            seal_key_file=values["seal_key_file"],
            prefetch=not values["no_prefetch"],
            idempotency_sample_ratio=values["idempotency_sample_ratio"],
            shadow_sample_ratio=values["shadow_sample_ratio"],
            transport_config=transport_config,
            limits=limits,
            cache_limits=cache_limits,
            transport_limits=transport_limits,
            patch_limits=patch_limits,
        )
        uvloop.run(_serve(Gateway(configuration, settings, metrics, watched=watched)))
    except StrictError as error:
        report_errors(each for each in error.errors if each not in configuration.errors)
        fail(f"not served: {counted(len(error.errors))} in the configuration with --strict", WRONG_CONFIGURATION)
    except (
        SourceError,
        CacheError,
        CredentialError,
        TlsError,
        CertificateError,
        ListenError,
        KubeconfigError,
    ) as error:
        fail(str(error), COULD_NOT)
    finally:
        stop_logs()


def _check_cluster_policies(values: dict[str, Any], *, cluster: bool) -> None:
    if not cluster:
        raise click.UsageError("--cluster-policies requires --cluster or --kubeconfig: the policies are in the cluster")
    if values["strict"]:
        raise click.UsageError(
            "--strict cannot be combined with --cluster-policies: errors in the cluster are in the objects' status"
        )


def _known_with_the_cluster(texts: Sequence[SourceText]) -> Configuration:
    """What is served until the cluster's objects are known: nothing. Exits if the files alone cannot be served.

    The errors of policies are reported then: what a file names may be in the cluster.
    """
    if load(texts).fatal:
        loaded(texts)
    return Configuration()


def _listen(values: dict[str, Any], server: Server) -> tuple[str, int]:
    """The gateway's own address, unless it is the default and shell-operator's options give another."""
    source = click.get_current_context().get_parameter_source("listen")
    if server.listen is not None and source is ParameterSource.DEFAULT:
        return server.listen
    listen: tuple[str, int] = values["listen"]
    return listen


def _certificate(values: dict[str, Any], server: Server) -> tuple[Path | None, Path | None]:
    """The files of certificate and key; None and None for development certificates."""
    pair = (values["tls_cert"], values["tls_key"])
    development = values["tls_dev_dir"] is not None
    if _in_secret(values, others=development or any(pair)):
        return None, None
    if development and (any(pair) or server.names_files):
        files = "--tls-cert and --tls-key" if any(pair) else "--validating-webhook-server-cert and -server-key"
        raise click.UsageError(f"--tls-dev-dir cannot be combined with {files}: it creates certificate and key")
    if development:
        return None, None
    cert, key = pair[0] or server.cert, pair[1] or server.key
    if cert is None or key is None or (any(pair) and not all(pair) and not server.names_files):
        raise click.UsageError(
            "no certificate: set --tls-cert and --tls-key, --tls-secret in a cluster, or --tls-dev-dir for development"
        )
    return cert, key


def _in_secret(values: dict[str, Any], *, others: bool) -> bool:
    """Whether the certificate is in a Secret."""
    cluster = values["cluster"] or values["kubeconfig"] is not None
    for flag in ("tls_secret", "service"):
        if values[flag] is not None and not cluster:
            raise click.UsageError(f"--{flag.replace('_', '-')} requires --cluster or --kubeconfig")
    if values["tls_secret"] is None:
        return False
    if others:
        raise click.UsageError("--tls-secret cannot be combined with --tls-cert, --tls-key or --tls-dev-dir")
    if values["service"] is None:
        raise click.UsageError("--tls-secret requires --service: the certificate has its name")
    return True


def _registration(values: dict[str, Any]) -> RegistrationSettings | None:
    """How a gateway registers itself; None without ``--register``.

    Raises:
        click.UsageError: there is no cluster to register with, or no Service.
    """
    if not values["register"]:
        return None
    if not values["cluster"] and values["kubeconfig"] is None:
        raise click.UsageError("--register requires --cluster or --kubeconfig: it registers by the Kubernetes API")
    of_shell_operator = chosen_registration(values)
    service = values["service"] or of_shell_operator.service
    if service is None:
        raise click.UsageError("--register requires --service: the Service by which kube-apiserver calls the gateway")
    return RegistrationSettings(
        name=values["name"],
        service=service,
        ca_bundle=values["ca_bundle"] or of_shell_operator.ca,
        excluded_namespaces=values["exclude_namespace"],
        despite_findings=values["register_despite_findings"],
    )


async def _serve(gateway: Gateway) -> None:
    stop = asyncio.Event()
    asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(_THREADS, thread_name_prefix="gateway"))

    def interrupt() -> None:
        # Ctrl-C in a terminal: no endpoint leads here, and the user waits.
        gateway.drain_seconds = 0.0
        stop.set()

    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    asyncio.get_running_loop().add_signal_handler(signal.SIGINT, interrupt)
    asyncio.get_running_loop().add_signal_handler(signal.SIGHUP, gateway.reload)
    started = await start_unless(stop, gateway)
    if started is None:
        return
    (host, port), (admin_host, admin_port) = started
    if gateway.certificates is not None:
        note(f"caBundle: {gateway.certificates.ca_bundle}", err=False)
    note(
        f"serving https://{_url_host(host)}:{port}/mutate and /validate; http://{_url_host(admin_host)}:{admin_port}/readyz",
        err=False,
    )
    if gateway.settings.strict:
        for each in gateway.unavailable:
            note(f"warning: {each.policy.place}: not verified: {each.message}", fg="yellow")
    _configure_garbage_collection()
    await serve_until(stop, gateway)


def _configure_garbage_collection() -> None:
    """Enable garbage collection, except of the startup's objects: they live as long as the process."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(_COLLECT_AFTER, 10, 10)


def _url_host(host: str) -> str:
    return f"[{host}]" if ":" in host else host
