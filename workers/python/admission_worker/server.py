"""A worker on its address: gRPC's options, and an orderly end.

Told to stop, the worker says NOT_SERVING to whoever watches, takes no more, answers what is open within its grace
period, and closes.
"""

import asyncio
from collections.abc import AsyncIterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager

import grpc

from admission_worker.address import Address, make_free, parse
from admission_worker.errors import AddressError
from admission_worker.health import Health
from admission_worker.judging import Judge
from admission_worker.limits import Limits
from admission_worker.policies import Policy
from admission_worker.service import Service, description_of

THREAD_NAME = "policy"
"""What the names of the threads of blocking policies begin with."""

PING_MILLISECONDS = 5000
"""How often a gateway may ping an idle connection. gRPC's default of five minutes would cut off one that watches over
its workers: GOAWAY "too_many_pings"."""


def options_of(limits: Limits) -> tuple[tuple[str, int], ...]:
    """GRPC's channel arguments."""
    return (
        # Otherwise a second worker on the same port would start, and be given half of the calls.
        ("grpc.so_reuseport", 0),
        ("grpc.max_receive_message_length", limits.message_bytes),
        ("grpc.max_send_message_length", limits.message_bytes),
        ("grpc.keepalive_permit_without_calls", 1),
        ("grpc.http2.min_ping_interval_without_data_ms", PING_MILLISECONDS),
        ("grpc.http2.min_recv_ping_interval_without_data_ms", PING_MILLISECONDS),
    )


@asynccontextmanager
async def serving(
    *, worker: str, version: str, policies: Mapping[str, Policy], address: str, limits: Limits
) -> AsyncIterator[str]:
    """Serve until the block ends, and then stop gracefully.

    Args:
        worker: the worker's name.
        version: the version of its build.
        policies: by name.
        address: as ``admission_worker.address.parse`` reads it.
        limits: of everything.

    Yields:
        The address for a gRPC client, with the port that was found where 0 was asked for.

    Raises:
        AddressError: the address cannot be listened on.
    """
    where = parse(address)
    make_free(where)
    threads = ThreadPoolExecutor(max_workers=limits.threads, thread_name_prefix=THREAD_NAME)
    stopping = asyncio.Event()
    judge = Judge(worker=worker, policies=policies, version=version, limits=limits, threads=threads)
    description = description_of(worker, version, policies)
    service = Service(description=description, policies=policies, judge=judge, limits=limits, stopping=stopping)
    server = grpc.aio.server(options=options_of(limits))
    server.add_generic_rpc_handlers((service.handler(), Health(stopping).handler()))
    try:
        found = _listen(server, where)
        await server.start()
        try:
            yield str(found)
        finally:
            stopping.set()
            await server.stop(limits.grace_period)
    finally:
        # A thread cannot be stopped; what it still does, nobody waits for.
        threads.shutdown(wait=False, cancel_futures=True)


def _listen(server: grpc.aio.Server, where: Address) -> Address:
    try:
        port = server.add_insecure_port(str(where))
    except RuntimeError:  # somebody took it since it was tried
        raise AddressError(f"cannot listen on {where}: gRPC could not bind to it") from None
    return where if where.path else Address(host=where.host, port=port)
