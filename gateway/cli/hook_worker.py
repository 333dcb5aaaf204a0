"""``admission-gateway hook-worker``: serves a directory of shell-operator hooks as a gRPC worker.

It is a worker of the Python SDK, and accepts all flags of such a worker's command. Exit codes: 0 stopped by
SIGTERM, SIGINT or SIGHUP, or because a hook has changed; 1 errors in the hooks or the objects, or it cannot listen; 2 a
file or the cluster's credentials cannot be read, or wrong usage.
"""

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from gateway.cli.options import chosen_limits
from gateway.cli.standard_streams import COULD_NOT, WRONG_CONFIGURATION, fail, note
from gateway.cli.trace_options import chosen_traces
from gateway.cluster.client import KubernetesClient
from gateway.cluster.errors import KubeconfigError
from gateway.hooks.server.handlers import UnservedError, serve_hooks
from gateway.hooks.source.directory import HookDirectory
from gateway.sources.files import SourceError
from gateway.sources.loading import load_configuration
from gateway.telemetry.events import Events, NoEvents
from gateway.transports.limits import TransportLimits

if TYPE_CHECKING:
    from gateway.cli.hook_worker_admin import AdminParts
    from gateway.telemetry.traces.provider import SpanProvider
    from gateway.telemetry.traces.settings import TraceSettings


def run(
    hooks_dir: Path,
    listen: str | None,
    flags: tuple[str, ...],
    *,
    objects: tuple[Path, ...],
    cluster: bool,
    kubeconfig: Path | None,
    **values: Any,
) -> None:
    """See the command."""
    traces = chosen_traces(values)
    (chosen,) = chosen_limits(values, TransportLimits)
    in_cluster = cluster or kubeconfig is not None
    if in_cluster and objects:
        raise click.UsageError(
            "--objects cannot be combined with --cluster or --kubeconfig: set one source of snapshots"
        )
    client = _client(kubeconfig) if in_cluster else None
    directory = HookDirectory(hooks_dir, seconds=chosen.hook_config_seconds)
    try:
        configuration = load_configuration(objects, hooks=directory)
    except SourceError as error:
        fail(str(error), COULD_NOT)
    for found in configuration.errors:
        note(str(found), fg="red")
    if configuration.errors:
        raise SystemExit(WRONG_CONFIGURATION)
    arguments = [*(("--listen", listen) if listen is not None else ()), *flags]
    try:
        events, listener = (None, None) if values["admin_listen"] is None else _admin(values["admin_listen"])
        spans = None if traces is None else _spans(traces, events or NoEvents())
        serve_hooks(configuration, chosen, arguments, client, spans=spans, events=events, listener=listener)
    except UnservedError as error:
        fail(str(error), WRONG_CONFIGURATION)


def _spans(settings: "TraceSettings", events: Events) -> "SpanProvider":
    from gateway.telemetry.traces.provider import SpanProvider  # noqa: PLC0415 - needs OpenTelemetry, which is an extra

    return SpanProvider(settings, events)


def _admin(address: tuple[str, int]) -> "AdminParts":
    # Imported here: without it, a start does not wait for the import of an HTTP server.
    from gateway.cli.hook_worker_admin import admin_parts  # noqa: PLC0415

    return admin_parts(address)


def _client(kubeconfig: Path | None) -> KubernetesClient:
    """A client whose credentials can be used. It is not connected: its event loop is the worker's."""
    client = KubernetesClient(kubeconfig)

    async def check() -> None:
        await client.connect()
        await client.close()

    try:
        asyncio.run(check())
    except KubeconfigError as error:
        fail(str(error), COULD_NOT)
    return client
