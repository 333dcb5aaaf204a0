"""A worker as a gRPC server: options, TLS, and a graceful stop.

A worker that stops first reports NOT_SERVING, also to each ``Watch``, and still answers new calls, because the gateway
notices a moment later; it then sends no more and half-closes its streams. When no more messages come, the worker
accepts no more calls, answers the open ones, and closes. At the end of the grace period it cancels those that are
still open.
"""

import asyncio
from collections.abc import AsyncIterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, suppress

import grpc

from admission_worker.address import Address, make_free, parse
from admission_worker.call_handler import CallHandler
from admission_worker.certificates import Certificates, Tls
from admission_worker.errors import AddressError
from admission_worker.health import Health
from admission_worker.limits import Limits
from admission_worker.policies import Policy
from admission_worker.service import Service, description_of

THREAD_NAME = "policy"
"""The prefix of the names of the threads for blocking policies."""

QUIET_MILLISECONDS = 60_000
PONG_MILLISECONDS = 20_000
"""The worker pings a gateway that was silent for a minute, and disconnects if it does not answer within 20 s. Otherwise
a gateway on a failed machine would keep its connection, streams and calls for hours."""

PING_MILLISECONDS = 4000
"""The shortest interval of a gateway's pings. With gRPC's default of five minutes the worker would disconnect a gateway
that pings its workers: GOAWAY "too_many_pings". The contract is five seconds; the fifth allows for network jitter."""


def options_of(limits: Limits) -> tuple[tuple[str, int], ...]:
    """The channel arguments of gRPC."""
    return (
        # Otherwise a second worker can start on the same port, and gets half of the calls.
        ("grpc.so_reuseport", 0),
        ("grpc.max_receive_message_length", limits.message_bytes),
        ("grpc.max_send_message_length", limits.message_bytes),
        ("grpc.keepalive_permit_without_calls", 1),
        ("grpc.keepalive_time_ms", QUIET_MILLISECONDS),
        ("grpc.keepalive_timeout_ms", PONG_MILLISECONDS),
        ("grpc.http2.min_ping_interval_without_data_ms", PING_MILLISECONDS),
        ("grpc.http2.min_recv_ping_interval_without_data_ms", PING_MILLISECONDS),
    )


@asynccontextmanager
async def serving(
    *, worker: str, version: str, policies: Mapping[str, Policy], address: str, limits: Limits, tls: Tls | None
) -> AsyncIterator[str]:
    """Serve until the block ends, and then stop gracefully.

    Args:
        worker: the worker's name.
        version: the version of its build.
        policies: by name.
        address: as ``admission_worker.address.parse`` reads it.
        limits: the worker's limits.
        tls: None: without TLS.

    Yields:
        The address for a gRPC client, with the actual port if the port was 0.

    Raises:
        AddressError: the worker cannot listen on the address.
        CertificateError: TLS cannot be served with these files.
    """
    where = parse(address)
    credentials = None if tls is None else Certificates(tls).credentials()
    make_free(where)
    threads = ThreadPoolExecutor(max_workers=limits.threads, thread_name_prefix=THREAD_NAME)
    stopping = asyncio.Event()
    judge = CallHandler(worker=worker, policies=policies, version=version, limits=limits, threads=threads)
    description = description_of(worker, version, policies)
    service = Service(description=description, policies=policies, judge=judge, limits=limits, stopping=stopping)
    server = grpc.aio.server(options=options_of(limits))
    server.add_generic_rpc_handlers((service.handler(), Health(stopping).handler()))
    try:
        found = _listen(server, where, credentials)
        await server.start()
        try:
            yield str(found)
        finally:
            end = asyncio.get_running_loop().time() + limits.grace_period
            stopping.set()
            try:
                with suppress(TimeoutError):
                    async with asyncio.timeout_at(end):
                        await service.wait_until_idle()
            finally:
                await server.stop(max(0.0, end - asyncio.get_running_loop().time()))
    finally:
        # A thread cannot be stopped; its result is dropped.
        threads.shutdown(wait=False, cancel_futures=True)


def _listen(server: grpc.aio.Server, where: Address, credentials: grpc.ServerCredentials | None) -> Address:
    try:
        if credentials is None:
            port = server.add_insecure_port(str(where))
        else:
            port = server.add_secure_port(str(where), credentials)
    except RuntimeError:  # another process took it after the check
        raise AddressError(f"cannot listen on {where}: gRPC could not bind to it") from None
    return where if where.path else Address(host=where.host, port=port)
