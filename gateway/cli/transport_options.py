"""The transport configuration of a command: Redis of queues, credentials for webhooks, a factory of hook workers."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Optional

import click
from msgspec.structs import replace

from gateway.cli.standard_streams import note
from gateway.extras import NEEDS_REDIS_EXTRA, has_redis_extra
from gateway.policies.field_errors import few
from gateway.policies.model import Configuration
from gateway.policies.workers.targets import HookTarget
from gateway.telemetry.events import Events
from gateway.transports.limits import TransportLimits
from gateway.transports.transport_config import TransportConfig
from gateway.transports.webhook.client_credentials import AccessError, WebhookAccess

if TYPE_CHECKING:
    from gateway.hooks.execution.runner import HookRunner
    from gateway.hooks.transport.worker import HookWorker
    from gateway.redis.addresses import RedisAddress


def chosen_transport_config(values: dict[str, Any]) -> TransportConfig:
    """Remove the options for connections to workers from a command's parameters, and return them.

    Raises:
        click.UsageError: an option is invalid, with the reason.
    """
    redis = _redis(values.pop("queue_redis"), values.get("redis"))
    webhooks = _webhooks(
        kubeconfig=values.pop("webhook_kubeconfig"),
        configuration=values.pop("admission_control_config_file"),
        resolve=values.pop("resolve"),
    )
    return TransportConfig(redis=redis, webhooks=webhooks, hooks=HookWorkerFactory())


class HookWorkerFactory:
    """Creates the workers of hooks, which share the limits of one process: ``HookWorkers`` of ``transport_config``."""

    def __init__(self) -> None:
        self._runner: HookRunner | None = None

    def __call__(self, name: str, target: HookTarget, limits: TransportLimits, events: Events) -> "HookWorker":
        """A new worker, which describes its hook at once. The limits of the first call apply to all hooks."""
        from gateway.hooks.execution.runner import HookRunner  # noqa: PLC0415 - loaded with the first hook
        from gateway.hooks.transport.worker import HookWorker  # noqa: PLC0415 - see above

        self._runner = self._runner or HookRunner(limits)
        return HookWorker(name, target, limits, events=events, runner=self._runner)


def report_unused_hosts(configuration: Configuration, transport_config: TransportConfig) -> None:
    """Warn of each ``--resolve`` that matches no webhook, as when the namespace is missing."""
    if not transport_config.webhooks.resolved:
        return
    from gateway.transports.webhook.endpoint import WebhookEndpoint  # noqa: PLC0415 - for webhooks only

    webhooks = [worker.webhook for worker in configuration.workers.values() if worker.webhook is not None]
    endpoints = [WebhookEndpoint(webhook) for webhook in webhooks]
    hosts = {(endpoint.host.lower(), endpoint.port) for endpoint in endpoints}
    names = few(sorted({endpoint.target for endpoint in endpoints})) or "none"
    for host, port in transport_config.webhooks.resolved:
        if (host, port) not in hosts:
            note(
                f"warning: --resolve {host}:{port} matches no webhook of the configuration, so it has no effect; "
                f"webhooks: {names}",
                fg="yellow",
            )


def _redis(of_queues: str | None, of_verdicts: str | None) -> Optional["RedisAddress"]:
    """The Redis of the queues; by default that of the cached verdicts."""
    url = of_queues or of_verdicts
    if not url:
        return None
    if not has_redis_extra():
        raise click.UsageError(f"{'--queue-redis' if of_queues else '--redis'} {NEEDS_REDIS_EXTRA}")
    from gateway.redis.addresses import redis_address  # noqa: PLC0415 - for webhooks only

    try:
        return redis_address(url)
    except ValueError as error:
        if of_queues:
            raise click.UsageError(f"--queue-redis: {error}") from None
        # The cache reports this error.
        return None


def _webhooks(*, kubeconfig: Path | None, configuration: Path | None, resolve: Sequence[str]) -> WebhookAccess:
    if kubeconfig is not None and configuration is not None:
        raise click.UsageError("--webhook-kubeconfig and --admission-control-config-file cannot be combined")
    try:
        access = WebhookAccess()
        if configuration is not None:
            from gateway.transports.webhook.admission_configuration import (  # noqa: PLC0415 - for webhooks only
                read_admission_configuration,
            )

            access = read_admission_configuration(configuration)
        if kubeconfig is not None:
            from gateway.transports.webhook.kubeconfig import read_kubeconfig  # noqa: PLC0415 - for webhooks only

            users = read_kubeconfig(kubeconfig)
            access = WebhookAccess(mutating=users, validating=users)
        if resolve:
            from gateway.transports.webhook.host_overrides import read_overrides  # noqa: PLC0415 - for webhooks only

            access = replace(access, resolved=read_overrides(resolve))
    except AccessError as error:
        raise click.UsageError(str(error)) from None
    return access
