"""``admission-gateway bridge``: takes calls from a queue and sends them to a gRPC worker.

Exit codes: 0 after SIGTERM or SIGINT, when all calls in progress are answered; 2 if it could not start, or the flags
are invalid. If Redis or the worker is unreachable, the bridge starts and waits for it; its log and ``/readyz`` report
it.
"""

import asyncio
import signal
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import click
import msgspec
import uvloop

from gateway.cli.options import chosen_limits
from gateway.cli.standard_streams import COULD_NOT, fail
from gateway.cli.trace_options import chosen_traces
from gateway.policies.configuration import load
from gateway.policies.decoding.texts import SourceText
from gateway.policies.workers.targets import GrpcTarget, QueueTarget
from gateway.redis.addresses import RedisAddress, redis_address
from gateway.serving.acceptor import ListenError
from gateway.serving.admin import AdminListener, Check
from gateway.telemetry.logs import configure_logs
from gateway.telemetry.metrics import Metrics
from gateway.telemetry.process import observe_process, watch_lag
from gateway.telemetry.table import BRIDGE, BRIDGE_CALLS_IN_FLIGHT, BRIDGE_CONSUMING, BRIDGE_PREFIX, LOG_LINES_DROPPED
from gateway.telemetry.traces.consumer_tracer import ConsumerTracer
from gateway.transports.limits import ConsumerLimits, TransportLimits
from gateway.transports.queue.bridge import Bridge
from gateway.transports.queue.seals import QueueSeals

_FLAGS: Final = {
    "spec.queue.stream": "--queue",
    "spec.queue.keyFile": "--key-file",
    "spec.grpc.target": "--worker",
    "spec.grpc.connections": "--worker-connections",
    "spec.grpc.tls.caFile": "--worker-tls-ca",
    "spec.grpc.tls.certFile": "--worker-tls-cert",
    "spec.grpc.tls.keyFile": "--worker-tls-key",
    "spec.grpc.tls.serverName": "--worker-tls-server-name",
}
"""The fields of Workers that the flags set: both have the same rules and error messages."""


def run(**values: Any) -> None:
    """See the command."""
    (limits,) = chosen_limits(values, TransportLimits)
    traces = chosen_traces(values)
    queue, worker = _targets(values)
    address = _address(values["redis"])
    metrics = Metrics(BRIDGE, prefix=BRIDGE_PREFIX)
    stop_logs = configure_logs(
        level=values["log_level"],
        form=values["log_format"],
        dropped=lambda: metrics.count(LOG_LINES_DROPPED),
    )
    try:
        seals = QueueSeals(queue.stream, values["key_file"])
        if seals.why:
            fail(seals.why, COULD_NOT)
        tracer = None if traces is None else ConsumerTracer(traces, queue.stream, metrics)
        uvloop.run(_bridge(address, queue, worker, seals, limits, metrics, tracer, values))
    except ListenError as error:
        fail(str(error), COULD_NOT)
    finally:
        stop_logs()


def _targets(values: Mapping[str, Any]) -> tuple[QueueTarget, GrpcTarget]:
    """Queue and worker, read as in Worker documents."""
    tls = {
        field: str(values[name])
        for field, name in (
            ("caFile", "worker_tls_ca"),
            ("certFile", "worker_tls_cert"),
            ("keyFile", "worker_tls_key"),
            ("serverName", "worker_tls_server_name"),
        )
        if values[name] is not None
    }
    grpc: dict[str, Any] = {"target": values["worker"]} | ({"tls": tls} if tls else {})
    if values["worker_connections"] is not None:
        grpc["connections"] = values["worker_connections"]
    queue = {"stream": values["queue"], "keyFile": str(values["key_file"])}
    content = b"\n---\n".join(
        _document(name, spec) for name, spec in (("queue", {"queue": queue}), ("worker", {"grpc": grpc}))
    )
    read = load([SourceText(name="", content=content, directory=str(Path.cwd()))])
    for error in read.errors:
        flag = next((flag for path, flag in _FLAGS.items() if error.place.path == path), "")
        # Not a BadParameter: its message would repeat "Invalid value".
        raise click.UsageError(f"{flag or error.place.path}: {error.message}")
    queue_target, grpc_target = read.workers["queue"].queue, read.workers["worker"].grpc
    assert queue_target is not None  # noqa: S101 - there was no error
    assert grpc_target is not None  # noqa: S101 - the same
    return queue_target, grpc_target


def _document(name: str, spec: Mapping[str, Any]) -> bytes:
    head = {"apiVersion": "admission-gateway.dev/v1alpha1", "kind": "Worker", "metadata": {"name": name}}
    return msgspec.json.encode(head | {"spec": spec})


def _address(url: str) -> RedisAddress:
    try:
        return redis_address(url)
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint="--redis") from None


async def _bridge(  # noqa: PLR0913, PLR0917 - the command's parameters
    address: RedisAddress,
    queue: QueueTarget,
    worker: GrpcTarget,
    seals: QueueSeals,
    limits: TransportLimits,
    metrics: Metrics,
    tracer: ConsumerTracer | None,
    values: Mapping[str, Any],
) -> None:
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    made = Bridge(
        address,
        queue.stream,
        seals=seals,
        worker=worker,
        limits=limits,
        consumer_limits=ConsumerLimits(in_flight=values["in_flight"], in_flight_bytes=values["in_flight_bytes"]),
        events=metrics,
        tracer=tracer,
    )

    async def metrics_page(*, openmetrics: bool) -> tuple[str, bytes]:
        metrics.set(BRIDGE_CALLS_IN_FLIGHT, made.in_hand)
        metrics.set(BRIDGE_CONSUMING, not made.why)
        observe_process(metrics)
        return await metrics.written(openmetrics=openmetrics)

    working = asyncio.create_task(made.run(stop))
    lag = asyncio.create_task(watch_lag(metrics))
    started = f"bridge started for queue {queue.stream} and worker {worker.target}"
    try:
        if values["admin_listen"] is None:
            click.echo(f"{started}; the log reports when it takes calls")
            await working
            return
        admin = AdminListener(checks=lambda: (Check("queue", made.why or None),), metrics=metrics_page, events=metrics)
        host, port = await admin.start(*values["admin_listen"])
        printed = f"[{host}]" if ":" in host else host
        click.echo(f"{started}; http://{printed}:{port}/readyz reports when it takes calls")
        try:
            await working
        finally:
            await admin.stop()
    finally:
        working.cancel()
        lag.cancel()
        await asyncio.gather(working, lag, return_exceptions=True)
