"""Errors of Redis: their kind, for metrics, and a text, for logs."""

import ssl
from typing import Final

from redis import exceptions
from redis.asyncio.sentinel import MasterNotFoundError

from gateway.enums import StrEnum


class RedisFault(StrEnum):
    """The kinds of errors of Redis."""

    TIMEOUT = "timeout"
    """No answer within the time limit."""

    CONNECTION = "connection"
    """Not reached, lost, loading, not authenticated, or a replica where the master is expected."""

    RESPONSE = "response"
    """Redis answered with an error: out of memory, wrong type, no permission."""

    UNREADABLE = "unreadable"
    """Redis answered with something invalid, or holds a value that the gateway cannot have written."""


# "READONLY You can't write against a read only replica": another server is the master now. All exceptions of a cluster
# mean that a slot has no server.
_CONNECTION: Final = (
    exceptions.ConnectionError,
    exceptions.ReadOnlyError,
    exceptions.RedisClusterException,
    exceptions.ClusterError,
    OSError,
)

_CLOSED: Final = "Connection closed by server."
"""redis-py's text when the server closes the connection."""

_MEANINGS: Final[tuple[tuple[type[BaseException], str], ...]] = (
    (exceptions.AuthenticationError, "it requires a user and password, or rejects those given"),
    (exceptions.NoPermissionError, "its ACL does not permit this user the command"),
    (exceptions.OutOfMemoryError, "it has no free memory, and evicts nothing (maxmemory-policy)"),
    (exceptions.ReadOnlyError, "it is a replica, not the master"),
    (exceptions.BusyLoadingError, "it is loading its data"),
    (MasterNotFoundError, "no Sentinel reports a master of this service"),
    (exceptions.RedisClusterException, "no node of the cluster answers"),
    (
        exceptions.ResponseError,
        "it answers with an error; check that the URL's scheme and database match the server",
    ),
)
"""The gateway's texts, the special before the general."""


def fault_of(error: BaseException) -> RedisFault:
    """The kind of one of redis-py's exceptions."""
    if isinstance(error, exceptions.TimeoutError | TimeoutError):
        return RedisFault.TIMEOUT
    if isinstance(error, _CONNECTION):
        return RedisFault.CONNECTION
    # Any other exception of redis-py means that it could not decode the answer.
    return RedisFault.RESPONSE if isinstance(error, exceptions.ResponseError) else RedisFault.UNREADABLE


def reason_of(error: BaseException, *, has_worked: bool = False) -> str:
    """A text that may be logged: the operating system's or the gateway's. Redis' own may contain a password.

    Args:
        error: what redis-py raised.
        has_worked: whether this Redis has answered before: then TLS is not the reason.
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
        return "it closed the connection" if has_worked else "it closed the connection; does it require TLS?"
    return next((text for kind, text in _MEANINGS if isinstance(error, kind)), "")
