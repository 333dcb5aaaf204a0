"""Where the worker is, and how one connects: gRPC channels, and bare sockets for bytes that gRPC would not send."""

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
        ca: PEM file with the authorities of the worker's certificate.
        cert: PEM file with the client's certificate; None: it has none.
        key: PEM file with its key.
        server_name: the name that the worker's certificate must have; "": the address's.
    """

    ca: Path
    cert: Path | None = None
    key: Path | None = None
    server_name: str = ""

    def credentials(self) -> grpc.ChannelCredentials:
        """As gRPC takes it."""
        key = self.key.read_bytes() if self.key else None
        cert = self.cert.read_bytes() if self.cert else None
        return grpc.ssl_channel_credentials(self.ca.read_bytes(), key, cert)

    def context(self) -> ssl.SSLContext:
        """As a bare socket takes it."""
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
        """A connection that is shared with no other channel, and takes messages of any size."""
        options: list[tuple[str, int | str]] = [
            ("grpc.use_local_subchannel_pool", 1),
            ("grpc.max_send_message_length", -1),
            ("grpc.max_receive_message_length", -1),
            ("grpc.initial_reconnect_backoff_ms", 100),
            ("grpc.enable_retries", 0),
            # On a Unix socket gRPC would send the path as :authority, percent-encoded, which Rust's h2 refuses.
            *([("grpc.default_authority", "localhost")] if self.address.startswith("unix:") else []),
        ]
        if self.tls is None:
            return grpc.aio.insecure_channel(self.address, options)
        if self.tls.server_name:
            options.append(("grpc.ssl_target_name_override", self.tls.server_name))
        return grpc.aio.secure_channel(self.address, self.tls.credentials(), options)

    async def socket(self, *, plain: bool = False) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """A connection of bytes; ``plain``: without TLS, whatever the worker serves.

        Raises:
            OSError: nobody takes it.
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
    """Wait until somebody takes connections there.

    Raises:
        StartError: nobody does.
    """
    clock = asyncio.get_running_loop().time
    end = clock() + patience
    while True:
        begun = clock()
        try:
            _, writer = await asyncio.wait_for(target.socket(plain=True), patience)
        except (OSError, TimeoutError, ValueError) as error:
            if isinstance(error, ValueError) or begun > end:
                message = (
                    f"nobody takes connections at {target.address} within {patience:g} s ({error}): is it running?"
                )
                raise StartError(message) from None
            await asyncio.sleep(0.05)  # the interval of looks at something that sends no event
            continue
        writer.close()
        return
