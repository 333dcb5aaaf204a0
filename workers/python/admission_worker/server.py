"""A worker on its address: gRPC's options, TLS, and an orderly end.

Told to stop, the worker is a lame duck first. It says NOT_SERVING, to whoever watches as well, and answers whatever
still comes: the gateway needs a moment to hear of it, then sends nothing more and half-closes its streams. When nothing
comes any more it takes no more calls, answers what is open, and closes. All of that has the grace period; what is
still open then is cancelled.
"""

import asyncio
from collections.abc import AsyncIterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, suppress

import grpc

from admission_worker.address import Address, make_free, parse
from admission_worker.certificates import Certificates, Tls
from admission_worker.errors import AddressError
from admission_worker.health import Health
from admission_worker.judging import Judge
from admission_worker.limits import Limits
from admission_worker.policies import Policy
from admission_worker.service import Service, description_of

THREAD_NAME = "policy"
"""What the names of the threads of blocking policies begin with."""

QUIET_MILLISECONDS = 60_000
PONG_MILLISECONDS = 20_000
"""A gateway that says nothing for a minute is pinged, and let go of when it does not answer within 20 s: one whose
machine has died would else keep its connection, its streams and what it had asked for hours."""

PING_MILLISECONDS = 4000
"""How often a gateway may ping an idle connection. gRPC's default of five minutes would cut off one that watches over
its workers: GOAWAY "too_many_pings". Every five seconds is promised; the fifth is for pings that a network brings
together."""


def options_of(limits: Limits) -> tuple[tuple[str, int], ...]:
    """GRPC's channel arguments."""
    return (
        # Otherwise a second worker on the same port would start, and be given half of the calls.
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
        limits: of everything.
        tls: None: without.

    Yields:
        The address for a gRPC client, with the port that was found where 0 was asked for.

    Raises:
        AddressError: the address cannot be listened on.
        CertificateError: TLS cannot be served with these files.
    """
    where = parse(address)
    credentials = None if tls is None else Certificates(tls).credentials()
    make_free(where)
    threads = ThreadPoolExecutor(max_workers=limits.threads, thread_name_prefix=THREAD_NAME)
    stopping = asyncio.Event()
    judge = Judge(worker=worker, policies=policies, version=version, limits=limits, threads=threads)
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
                        await service.fall_silent()
            finally:
                await server.stop(max(0.0, end - asyncio.get_running_loop().time()))
    finally:
        # A thread cannot be stopped; what it still does, nobody waits for.
        threads.shutdown(wait=False, cancel_futures=True)


def _listen(server: grpc.aio.Server, where: Address, credentials: grpc.ServerCredentials | None) -> Address:
    try:
        if credentials is None:
            port = server.add_insecure_port(str(where))
        else:
            port = server.add_secure_port(str(where), credentials)
    except RuntimeError:  # somebody took it since it was tried
        raise AddressError(f"cannot listen on {where}: gRPC could not bind to it") from None
    return where if where.path else Address(host=where.host, port=port)
