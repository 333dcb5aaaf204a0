"""What went wrong with Redis: its kind, for the metrics, and what may be said of it, for the log."""

import ssl
from typing import Final

from redis import exceptions

from gateway.caching.events import RedisFault

# "READONLY You can't write against a read only replica": the master is another one now. Of a cluster's own exceptions,
# all say that a slot has no server, or that the server says so.
_CONNECTION: Final = (
    exceptions.ConnectionError,
    exceptions.ReadOnlyError,
    exceptions.RedisClusterException,
    exceptions.ClusterError,
    OSError,
)


def fault_of(error: BaseException) -> RedisFault:
    """Which kind of trouble an exception of redis-py's is."""
    if isinstance(error, exceptions.TimeoutError | TimeoutError):
        return RedisFault.TIMEOUT
    if isinstance(error, _CONNECTION):
        return RedisFault.CONNECTION
    # Whatever else redis-py raises, it could not make sense of what it got.
    return RedisFault.RESPONSE if isinstance(error, exceptions.ResponseError) else RedisFault.GARBAGE


def reason_of(error: BaseException) -> str:
    """What may be logged: the operating system's words and ours. Redis' own may repeat a password that it was sent."""
    seen: BaseException | None = error
    while seen is not None:
        if isinstance(seen, ssl.SSLCertVerificationError):
            return f"{type(error).__name__}: {seen.verify_message}"
        if isinstance(seen, OSError) and seen.strerror:
            return f"{type(error).__name__}: {seen.strerror}"
        seen = seen.__cause__ or seen.__context__
    return f"TimeoutError: {error}" if type(error) is TimeoutError and str(error) else type(error).__name__
