"""Creates the channel to one address of a worker."""

from typing import Any, Final

import grpc
import grpc.aio

from gateway.policies.workers.targets import GrpcTls
from gateway.transports.credentials import WorkerCredentials
from gateway.transports.grpc.addresses import authority
from gateway.transports.limits import TransportLimits

RECONNECT_MS: Final = (100, 2_000)
"""First and longest backoff between connection attempts. The gateway reconnects to a restarted worker within two
seconds, and a hundred gateways cause little load at an address where none listens."""

RECONNECT_LOCALLY_MS: Final = (50, 100)
"""The same for a Unix socket: reviews and the gateway's start wait for a worker that starts, and ten attempts a second
take less than a hundredth of a core."""

NEVER_IDLE: Final = 2**31 - 1
"""Milliseconds. A channel must not become idle: the next review would wait for a new connection."""


class Dialer:
    """Creates channels.

    Args:
        target: the worker's, as it is configured: its name is the authority of all calls.
        limits: see TransportLimits.
        credentials: None: plain text.
    """

    def __init__(self, target: str, limits: TransportLimits, credentials: WorkerCredentials | None = None) -> None:
        self._authority = authority(target)
        self._pauses = RECONNECT_LOCALLY_MS if target.startswith("unix:") else RECONNECT_MS
        self._limits = limits
        self._credentials = credentials

    @property
    def tls(self) -> GrpcTls | None:
        """The TLS configuration; None: plain text."""
        return None if self._credentials is None else self._credentials.tls

    def changed(self) -> bool:
        """Whether the certificates have changed since the last channel."""
        return self._credentials is not None and self._credentials.changed()

    def channel(self, address: str) -> grpc.aio.Channel:
        """A new channel to one address. It does not connect yet.

        Raises:
            CredentialsError: the certificates cannot be used.
        """
        loaded = None if self._credentials is None else self._credentials.load()
        options: list[tuple[str, Any]] = list(self._options())
        if loaded is not None and loaded.credentials is not None:
            options.extend(loaded.options)
            return grpc.aio.secure_channel(address, loaded.credentials, options=options)
        if self._authority:
            options.append(("grpc.default_authority", self._authority))
        return grpc.aio.insecure_channel(address, options=options)

    def _options(self) -> tuple[tuple[str, Any], ...]:
        limits = self._limits
        return (
            ("grpc.max_send_message_length", limits.message_bytes),
            ("grpc.max_receive_message_length", limits.answer_message_bytes),
            # Flow control lets a worker send 64 KB of an answer that is not read yet (see ``answer_room``). Probes of
            # the bandwidth would raise that to some MB for each call.
            ("grpc.http2.bdp_probe", 0),
            ("grpc.initial_reconnect_backoff_ms", self._pauses[0]),
            # gRPC's name for the time that an attempt to connect may take, at least.
            ("grpc.min_reconnect_backoff_ms", _milliseconds(limits.worker_connect_seconds)),
            ("grpc.max_reconnect_backoff_ms", self._pauses[1]),
            ("grpc.client_idle_timeout_ms", NEVER_IDLE),
            ("grpc.keepalive_time_ms", _milliseconds(limits.worker_keepalive_seconds)),
            ("grpc.keepalive_timeout_ms", _milliseconds(limits.worker_keepalive_timeout_seconds)),
            ("grpc.keepalive_permit_without_calls", 1),
            # The gateway retries itself, because it knows side effects and the remaining time.
            ("grpc.enable_retries", 0),
            # A worker's address is configuration; reviews must not pass a proxy of the environment.
            ("grpc.enable_http_proxy", 0),
            ("grpc.service_config_disable_resolution", 1),
            # Each channel has its own connection, so that channels do not delay each other.
            ("grpc.use_local_subchannel_pool", 1),
        )


def _milliseconds(seconds: float) -> int:
    return max(1, min(int(seconds * 1000), NEVER_IDLE))
