"""Which decisions are logged. A module of its own: the command line imports it for each TAB."""

from gateway.enums import StrEnum


class LogLevel(StrEnum):
    """Which decisions are logged. Each level includes those before it."""

    FAILED = "failed"
    """Those in which a policy failed, also one that was ignored or replaced by a stale verdict; or the gateway did."""

    DENIED = "denied"
    """Those in which a policy denied or two conflict, or would have in mode enforce."""

    ALL = "all"
    """Every decision, and every review that the client canceled."""
