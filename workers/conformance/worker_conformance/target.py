"""The worker's address, with gRPC channels to it, and raw sockets for bytes that gRPC does not send."""

import asyncio
import ssl
from dataclasses import dataclass
from pathlib import Path

import grpc

from worker_conformance.findings import StartError


@dataclass(frozen=True, kw_only=True, slots=True)
class Tls:
    """What a client needs to reach a worker that serves TLS.

    Args:
        ca: PEM file with the CAs of the worker's certificate.
        cert: PEM file with the client's certificate; None: it has none.
        key: PEM file with its key.
        server_name: the name that the worker's certificate must have; "": the address's.
    """

    ca: Path
    cert: Path | None = None
    key: Path | None = None
    server_name: str = ""

    def credentials(self) -> grpc.ChannelCredentials:
        """For gRPC."""
        key = self.key.read_bytes() if self.key else None
        cert = self.cert.read_bytes() if self.cert else None
        return grpc.ssl_channel_credentials(self.ca.read_bytes(), key, cert)

    def context(self) -> ssl.SSLContext:
        """For a raw socket."""
        context = ssl.create_default_context(cafile=self.ca)
        context.set_alpn_protocols(["h2"])
        if self.cert:
            context.load_cert_chain(self.cert, self.key)
        return context


@dataclass(frozen=True, kw_only=True, slots=True)
class Target:
    """A worker's address.

    Args:
        address: as gRPC clients take it: ``HOST:PORT``, ``dns:///HOST:PORT``, ``unix:PATH``, ``unix:///ABSOLUTE``.
        tls: how to reach it; None: without TLS.
    """

    address: str
    tls: Tls | None = None

    def channel(self) -> grpc.aio.Channel:
        """A channel with its own connection, for messages of any size."""
        options: list[tuple[str, int | str]] = [
            ("grpc.use_local_subchannel_pool", 1),
            ("grpc.max_send_message_length", -1),
            ("grpc.max_receive_message_length", -1),
            ("grpc.initial_reconnect_backoff_ms", 100),
            ("grpc.enable_retries", 0),
            # On a Unix socket gRPC sends the percent-encoded path as :authority, which Rust's h2 rejects.
            *([("grpc.default_authority", "localhost")] if self.address.startswith("unix:") else []),
        ]
        if self.tls is None:
            return grpc.aio.insecure_channel(self.address, options)
        if self.tls.server_name:
            options.append(("grpc.ssl_target_name_override", self.tls.server_name))
        return grpc.aio.secure_channel(self.address, self.tls.credentials(), options)

    async def socket(self, *, plain: bool = False) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """A raw connection; ``plain``: without TLS, even if the worker serves TLS.

        Raises:
            OSError: no process accepts it.
        """
        context = self.tls.context() if self.tls and not plain else None
        if self.address.startswith("unix:"):
            return await asyncio.open_unix_connection(self.path, ssl=context, server_hostname=self._name(context))
        host, _, port = self.address.removeprefix("dns:///").rpartition(":")
        host = host.removeprefix("[").removesuffix("]")
        name = self._name(context) or (host if context else None)
        return await asyncio.open_connection(host, int(port), ssl=context, server_hostname=name)

    def _name(self, context: ssl.SSLContext | None) -> str | None:
        return (self.tls.server_name or None) if self.tls and context else None

    @property
    def path(self) -> str:
        """The path of its Unix socket."""
        return self.address.removeprefix("unix:").replace("//", "", 1) if "unix://" in self.address else self._bare

    @property
    def _bare(self) -> str:
        return self.address.removeprefix("unix:")


async def reached(target: Target, patience: float) -> None:
    """Wait until a process accepts connections there.

    Raises:
        StartError: none does in time.
    """
    clock = asyncio.get_running_loop().time
    end = clock() + patience
    while True:
        begun = clock()
        try:
            _, writer = await asyncio.wait_for(target.socket(plain=True), patience)
        except (OSError, TimeoutError, ValueError) as error:
            if isinstance(error, ValueError) or begun > end:
                within = f"within {patience:g} s ({error})"
                message = f"no process accepts connections at {target.address} {within}: is the worker running?"
                raise StartError(message) from None
            await asyncio.sleep(0.05)  # the interval of polls: a listening socket sends no event
            continue
        writer.close()
        return
