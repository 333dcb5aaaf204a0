"""The settings of ``serve``, from its options; which options require or exclude each other."""

from pathlib import Path
from typing import TYPE_CHECKING, Any, Optional

import click
from click.core import ParameterSource

from gateway.caching.limits import CacheLimits
from gateway.cli.hook_options import Server, chosen_hooks, chosen_registration, chosen_server, require_policies
from gateway.cli.options import chosen_limits
from gateway.cli.trace_options import chosen_traces, has_exporters
from gateway.cli.transport_options import chosen_transport_config
from gateway.extras import NEEDS_OPENTELEMETRY_EXTRA
from gateway.patching.limits import PatchLimits
from gateway.serving.limits import Limits
from gateway.serving.settings import RegistrationSettings, Settings
from gateway.telemetry.log_level import LogLevel
from gateway.transports.limits import TransportLimits

if TYPE_CHECKING:
    from gateway.hooks.source.directory import HookDirectory


def chosen_settings(policies: tuple[Path, ...], values: dict[str, Any]) -> tuple[Settings, Optional["HookDirectory"]]:
    """The settings of a gateway, and the hooks beside its policies; None: there are none.

    Args:
        policies: the files and directories of policies.
        values: the command's other parameters, by name.

    Raises:
        click.UsageError: options that do not go together.
    """
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
    if (values["recording_dir"] is None) != (values["recording_key_file"] is None):
        raise click.UsageError("--recording-dir and --recording-key-file require each other: recordings are encrypted")
    if values["decision_log"] == "otlp" and not has_exporters():
        raise click.UsageError(f"--decision-log otlp {NEEDS_OPENTELEMETRY_EXTRA}")
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
        registration_name=values["name"],
        registration=_registration(values),
        redis=values["redis"] or "",
        seal_key_file=values["seal_key_file"],
        processes=values["processes"],
        decision_log=values["decision_log"],
        decision_log_level=LogLevel(values["decision_log_level"]),
        recording_dir=values["recording_dir"],
        recording_key_file=values["recording_key_file"],
        recording_sample_ratio=values["recording_sample_ratio"],
        prefetch=not values["no_prefetch"],
        idempotency_sample_ratio=values["idempotency_sample_ratio"],
        shadow_sample_ratio=values["shadow_sample_ratio"],
        traces=chosen_traces(values),
        transport_config=transport_config,
        limits=limits,
        cache_limits=cache_limits,
        transport_limits=transport_limits,
        patch_limits=patch_limits,
    )
    return settings, hooks


def _check_cluster_policies(values: dict[str, Any], *, cluster: bool) -> None:
    if not cluster:
        raise click.UsageError("--cluster-policies requires --cluster or --kubeconfig: the policies are in the cluster")
    if values["strict"]:
        raise click.UsageError(
            "--strict cannot be combined with --cluster-policies: errors in the cluster are in the objects' status"
        )


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
        service=service,
        ca_bundle=values["ca_bundle"] or of_shell_operator.ca,
        excluded_namespaces=values["exclude_namespace"],
        despite_findings=values["register_despite_findings"],
    )
