"""``admission-gateway bridge``: its options."""

from pathlib import Path
from typing import Any, Final

import click

from gateway.cli.options import ADDRESS, SectionedCommand, limit_options, option
from gateway.cli.trace_options import endpoint_option
from gateway.extras import NEEDS_REDIS_EXTRA, has_redis_extra
from gateway.transports.limits import ConsumerLimits, TransportLimits

_FILE: Final = click.Path(path_type=Path, dir_okay=False)
_LIMITS: Final = ConsumerLimits()

_WORKER_LIMITS: Final = frozenset(
    {
        "describe_seconds",
        "worker_in_flight",
        "worker_backlog_bytes",
        "worker_connect_seconds",
        "worker_connection_age_seconds",
        "worker_circuit_open_seconds",
        "worker_retry_share",
        "queue_redis_seconds",
    }
)
"""The limits of calls to one worker; its connections are ``--worker-connections``."""


@click.command(cls=SectionedCommand)
@option("--queue", metavar="STREAM", required=True, help="The queue: spec.queue.stream of the Worker.")
@option("--key-file", type=_FILE, required=True, help="The queue's keys: the same file as spec.queue.keyFile.")
@option("--redis", metavar="URL", required=True, help="The Redis of the queue.")
@option("--worker", metavar="TARGET", required=True, help="The gRPC worker, as in spec.grpc.target.")
@option("--worker-connections", type=int, help="Minimum number of connections to the worker.")
@option("--worker-tls-ca", type=_FILE, help="PEM: CA bundle that verifies the worker's certificate.")
@option("--worker-tls-cert", type=_FILE, help="PEM: client certificate of the bridge.")
@option("--worker-tls-key", type=_FILE, help="PEM: private key of the client certificate.")
@option("--worker-tls-server-name", help="The name in the worker's certificate; by default the target's host.")
@option(
    "--in-flight",
    type=click.IntRange(1, 100_000),
    default=_LIMITS.in_flight,
    help="Maximum number of calls in progress.",
)
@option(
    "--in-flight-bytes",
    type=click.IntRange(1),
    default=_LIMITS.in_flight_bytes,
    help="Bytes of calls and answers in progress above which the bridge takes no more calls.",
)
@option("--admin-listen", type=ADDRESS, help="Health and metrics, over plain HTTP; without it, none.")
@endpoint_option
@option("--log-level", type=click.Choice(["debug", "info", "warning", "error"]), default="info", help="Log level.")
@option("--log-format", type=click.Choice(["auto", "json", "text"]), default="auto", help="auto: text on a terminal.")
@limit_options(TransportLimits, names=_WORKER_LIMITS)
def bridge(**values: Any) -> None:
    """Take calls from the queue STREAM, send them to the gRPC worker at TARGET, and write its answers back, until
    SIGTERM or SIGINT; then finish the calls in progress and exit 0.

    The bridge uses TLS to the worker if any of its TLS options is set, such as --worker-tls-ca.
    """
    if not has_redis_extra():
        raise click.UsageError(f"bridge {NEEDS_REDIS_EXTRA}")
    from gateway.cli.bridge import run

    run(**values)
