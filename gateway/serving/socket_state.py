"""What the kernel knows of a connection while the gateway is busy: since when data waits, whether the client is there.

Both come from TCP_INFO (tcp(7), Linux); without it nothing has waited, and every client is there. One look takes about
a microsecond.
"""

import socket
import sys
from typing import Final

from msgspec import Struct

TcpSocket = socket.socket
"""A socket that belongs to a transport: to look at."""

_LENGTH: Final = 56
_STATE: Final = 0
_LAST_DATA_RECEIVED: Final = slice(52, 56)
"""``tcpi_last_data_recv``: milliseconds, of the precision of a jiffy."""

_SYN_RECEIVED: Final = 3
_ESTABLISHED: Final = 1

_TCP_INFO: Final[int | None] = getattr(socket, "TCP_INFO", None)


class SocketState(Struct, frozen=True):
    """``is_open``: the client has not closed, as far as the kernel knows. ``waited``: seconds since data came last."""

    is_open: bool
    waited: float


_UNKNOWN: Final = SocketState(is_open=True, waited=0.0)
_CLOSED: Final = SocketState(is_open=False, waited=0.0)


def state_of(connected: socket.socket) -> SocketState:
    """The state of a TCP connection. Never raises."""
    if _TCP_INFO is None:
        return _UNKNOWN
    try:
        info = connected.getsockopt(socket.IPPROTO_TCP, _TCP_INFO, _LENGTH)
    except OSError:
        # Closed here; or a socket of another family, which has no such state.
        return _CLOSED if connected.fileno() < 0 else _UNKNOWN
    is_open = info[_STATE] in {_ESTABLISHED, _SYN_RECEIVED}
    return SocketState(is_open, int.from_bytes(info[_LAST_DATA_RECEIVED], sys.byteorder) / 1000)
