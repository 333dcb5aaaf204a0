"""What went wrong with Redis: its kind, for the metrics, and what may be said of it, for the log."""

import ssl
from typing import Final

from redis import exceptions
from redis.asyncio.sentinel import MasterNotFoundError

from gateway.enums import StrEnum


class RedisFault(StrEnum):
    """What went wrong with Redis."""

    TIMEOUT = "timeout"
    """No answer within the time that there was."""

    CONNECTION = "connection"
    """Not reached, lost, loading, not authenticated, or a replica where the master is expected."""

    RESPONSE = "response"
    """Redis answered with an error: out of memory, wrong type, no permission."""

    UNREADABLE = "garbage"
    """Redis answered with something that cannot be an answer, or holds something that cannot be one of ours."""


# "READONLY You can't write against a read only replica": the master is another one now. Of a cluster's own exceptions,
# all say that a slot has no server, or that the server says so.
_CONNECTION: Final = (
    exceptions.ConnectionError,
    exceptions.ReadOnlyError,
    exceptions.RedisClusterException,
    exceptions.ClusterError,
    OSError,
)

_CLOSED: Final = "Connection closed by server."
"""What redis-py says where a server hangs up."""

_MEANINGS: Final[tuple[tuple[type[BaseException], str], ...]] = (
    (exceptions.AuthenticationError, "it wants a user and password, or others than these"),
    (exceptions.NoPermissionError, "its ACL does not let this user do what is needed here"),
    (exceptions.OutOfMemoryError, "it is full, and evicts nothing (maxmemory-policy)"),
    (exceptions.ReadOnlyError, "it is a replica, not the master"),
    (exceptions.BusyLoadingError, "it is loading its data"),
    (MasterNotFoundError, "no Sentinel names a master of this service"),
    (exceptions.RedisClusterException, "no node of a cluster answers there"),
    (
        exceptions.ResponseError,
        "it answers with an error; is it the kind of server that the URL says, with that database?",
    ),
)
"""In our own words, the special before the general."""


def fault_of(error: BaseException) -> RedisFault:
    """Which kind of trouble an exception of redis-py's is."""
    if isinstance(error, exceptions.TimeoutError | TimeoutError):
        return RedisFault.TIMEOUT
    if isinstance(error, _CONNECTION):
        return RedisFault.CONNECTION
    # Whatever else redis-py raises, it could not make sense of what it got.
    return RedisFault.RESPONSE if isinstance(error, exceptions.ResponseError) else RedisFault.UNREADABLE


def reason_of(error: BaseException, *, has_worked: bool = False) -> str:
    """What may be logged: the operating system's words and ours. Redis' own may repeat a password that it was sent.

    Args:
        error: what redis-py raised.
        has_worked: whether this Redis has answered before: then how it is spoken to is no question.
    """
    seen: BaseException | None = error
    while seen is not None:
        if isinstance(seen, ssl.SSLCertVerificationError):
            return f"{type(error).__name__}: {seen.verify_message}"
        if isinstance(seen, OSError) and seen.strerror:
            return f"{type(error).__name__}: {seen.strerror}"
        seen = seen.__cause__ or seen.__context__
    return ": ".join(filter(None, (type(error).__name__, _meaning(error, has_worked=has_worked))))


def _meaning(error: BaseException, *, has_worked: bool) -> str:
    if type(error) is TimeoutError:
        return str(error)
    if isinstance(error, exceptions.ConnectionError) and str(error) == _CLOSED:
        return "it hung up" if has_worked else "it hung up; does it want TLS?"
    return next((text for kind, text in _MEANINGS if isinstance(error, kind)), "")
