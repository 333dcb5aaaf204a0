"""What commands reach workers with: the Redis of queues, credentials for webhooks, a factory of hooks' workers."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Optional

import click
from msgspec.structs import replace

from gateway.cli.streams import note
from gateway.extras import NEEDS_REDIS_EXTRA, has_redis_extra
from gateway.policies.field_errors import few
from gateway.policies.model import Configuration
from gateway.policies.workers.targets import HookTarget
from gateway.telemetry.events import Events
from gateway.transports.limits import TransportLimits
from gateway.transports.transport_config import TransportConfig
from gateway.transports.webhook.access import AccessError, WebhookAccess

if TYPE_CHECKING:
    from gateway.hooks.execution.runner import HookRunner
    from gateway.hooks.transport.worker import HookWorker
    from gateway.redis.addresses import RedisAddress


def chosen_transport_config(values: dict[str, Any]) -> TransportConfig:
    """The means among a command's parameters, which are taken out of them.

    Raises:
        click.UsageError: something that cannot be used, and why.
    """
    redis = _redis(values.pop("queue_redis"), values.get("redis"))
    webhooks = _webhooks(
        kubeconfig=values.pop("webhook_kubeconfig"),
        configuration=values.pop("admission_control_config_file"),
        resolve=values.pop("resolve"),
    )
    return TransportConfig(redis=redis, webhooks=webhooks, hooks=HookWorkerFactory())


class HookWorkerFactory:
    """Makes the workers of hooks, which share the limits of one process: ``HookWorkers`` of ``transport_config``."""

    def __init__(self) -> None:
        self._runner: HookRunner | None = None

    def __call__(self, name: str, target: HookTarget, limits: TransportLimits, events: Events) -> "HookWorker":
        """A new worker, which describes its hook at once. The limits of the first call apply to all hooks."""
        from gateway.hooks.execution.runner import HookRunner  # noqa: PLC0415 - loaded with the first hook
        from gateway.hooks.transport.worker import HookWorker  # noqa: PLC0415 - see above

        self._runner = self._runner or HookRunner(limits)
        return HookWorker(name, target, limits, events=events, runner=self._runner)


def report_unused_hosts(configuration: Configuration, transport_config: TransportConfig) -> None:
    """Warn of each ``--resolve`` whose name is that of no webhook, as it is when its namespace is missing."""
    if not transport_config.webhooks.resolved:
        return
    from gateway.transports.webhook.endpoint import WebhookEndpoint  # noqa: PLC0415 - nobody else needs it

    webhooks = [worker.webhook for worker in configuration.workers.values() if worker.webhook is not None]
    ends = [WebhookEndpoint(webhook) for webhook in webhooks]
    called = {(end.host.lower(), end.port) for end in ends}
    names = few(sorted({end.target for end in ends})) or "none"
    for host, port in transport_config.webhooks.resolved:
        if (host, port) not in called:
            note(
                f"warning: --resolve {host}:{port}: no webhook of the configuration is called so, so nothing is "
                f"dialled there; webhooks that there are: {names}",
                fg="yellow",
            )


def _redis(of_queues: str | None, of_verdicts: str | None) -> Optional["RedisAddress"]:
    """That of the queues, which is that of the cached verdicts where nobody says otherwise."""
    url = of_queues or of_verdicts
    if not url:
        return None
    if not has_redis_extra():
        raise click.UsageError(f"{'--queue-redis' if of_queues else '--redis'} {NEEDS_REDIS_EXTRA}")
    from gateway.redis.addresses import redis_address  # noqa: PLC0415 - nobody else needs it

    try:
        return redis_address(url)
    except ValueError as error:
        if of_queues:
            raise click.UsageError(f"--queue-redis: {error}") from None
        # The cache refuses it as well, in its own words.
        return None


def _webhooks(*, kubeconfig: Path | None, configuration: Path | None, resolve: Sequence[str]) -> WebhookAccess:
    if kubeconfig is not None and configuration is not None:
        raise click.UsageError(
            "--webhook-kubeconfig and --admission-control-config-file say the same; give one of them"
        )
    try:
        access = WebhookAccess()
        if configuration is not None:
            from gateway.transports.webhook.admission_configuration import (  # noqa: PLC0415 - nobody else needs it
                read_admission_configuration,
            )

            access = read_admission_configuration(configuration)
        if kubeconfig is not None:
            from gateway.transports.webhook.kubeconfig import read_kubeconfig  # noqa: PLC0415 - nobody else needs it

            users = read_kubeconfig(kubeconfig)
            access = WebhookAccess(mutating=users, validating=users)
        if resolve:
            from gateway.transports.webhook.host_overrides import read_places  # noqa: PLC0415 - nobody else needs it

            access = replace(access, resolved=read_places(resolve))
    except AccessError as error:
        raise click.UsageError(str(error)) from None
    return access
