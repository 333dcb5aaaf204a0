"""The admin listener of ``hook-worker``: ``/livez``, ``/readyz`` and ``/metrics``."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import partial

from gateway.cli.standard_streams import COULD_NOT, fail
from gateway.hooks.server.hook_cluster import HookCluster
from gateway.serving.acceptor import ListenError
from gateway.serving.admin import AdminListener, Check
from gateway.serving.settings import Address
from gateway.telemetry.metrics import Metrics
from gateway.telemetry.process import observe_process, watch_lag
from gateway.telemetry.table import HOOK_WORKER, HOOK_WORKER_PREFIX

AdminParts = tuple[Metrics, Callable[[HookCluster | None], AbstractAsyncContextManager[None]]]
"""The metrics, and what makes the listener that shows them."""


def admin_parts(address: Address) -> AdminParts:
    """The metrics of a hook-worker, and its listener at this address."""
    metrics = Metrics(HOOK_WORKER, prefix=HOOK_WORKER_PREFIX)
    return metrics, partial(_listener, address, metrics)


@asynccontextmanager
async def _listener(address: Address, metrics: Metrics, cluster: HookCluster | None) -> AsyncIterator[None]:
    """Listen as long as this is open; end the process if the address cannot be listened at.

    ``/readyz`` never fails: hooks without snapshots can be called, whatever becomes of those of others.
    """

    def checks() -> Iterator[Check]:
        missing = () if cluster is None else tuple(cluster.snapshots.incomplete())
        yield Check("snapshots", note=f"not complete: {', '.join(missing)}; the log says why" if missing else None)

    async def metrics_page(*, openmetrics: bool) -> tuple[str, bytes]:
        observe_process(metrics)
        if cluster is not None:
            cluster.snapshots.observe(metrics)
        return await metrics.written(openmetrics=openmetrics)

    admin = AdminListener(checks=checks, metrics=metrics_page, events=metrics)
    try:
        await admin.start(*address)
    except ListenError as error:
        fail(str(error), COULD_NOT)
    lag = asyncio.create_task(watch_lag(metrics))
    try:
        yield
    finally:
        lag.cancel()
        await admin.stop()
