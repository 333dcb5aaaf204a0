"""Every bound of the verdict cache, with the reason for its value.

A full cache never blocks: memory evicts, and writes that Redis does not take are dropped and counted.
"""

from gateway.bounds import Bounds, budgeted, tunable


class CacheLimits(Bounds):
    """Bounds of one process's cache. Seconds are floats, other values are counts or bytes; all are greater than
    zero.
    """

    memory_bytes: int = budgeted(16, "Bytes of verdicts in memory.")
    """Verdicts kept in this process. An allow without words takes about 0.4 KB with everything around it, so a
    sixteenth of the memory budget, 64 MiB by default, holds 160,000 of them; a patch of 10 KB, 6,000. The least
    recently used goes first."""

    entry_bytes: int = 1_000_000
    """The largest verdict that is kept, in memory and in Redis: a sixty-fourth of the memory, so that no single one
    displaces the rest. A whole object as the answer has mostly 2 to 20 KB; the largest that etcd takes has 1.5 MB."""

    entry_seconds: float = 604_800.0
    """No verdict is used past this age, whatever ttl and staleIfError say: a week. A purge is remembered as long."""

    clock_skew_seconds: float = 5.0
    """By how much the clocks of replicas may differ. A verdict from further in the future is not used, and a purge
    covers as much time after it. NTP keeps a node within 0.1 s; fifty times that is a fault."""

    purge_poll_seconds: float = 1.0
    """How often purges by other replicas are read from Redis: one pipeline with one GETRANGE for each policy."""

    redis_seconds: float = tunable(0.02, "Seconds that a lookup waits for Redis before the worker is called.")
    """How long a lookup waits for Redis before the worker is called. Redis answers a pipeline within a millisecond in
    the same network; 20 ms are ten times its p99 under load, and a twenty-fifth of a short timeout, 0.5 s."""

    redis_answer_seconds: float = 1.0
    """After how long a connection that does not answer is closed. No review waits for it: an answer after
    ``redis_seconds`` is ignored. It bounds connecting too, with DNS, TLS and AUTH."""

    redis_connections: int = 4
    """Pipelines of lookups in flight at once; lookups meanwhile go into the next one. At 0.5 ms for each, four carry
    8,000 loop iterations a second, more than one process has. Three more connections write entries, read and write
    purges, and delete."""

    redis_writes: int = 10_000
    """Verdicts that wait to be written to Redis. At 1,000 misses a second, ten seconds of a slow Redis."""

    redis_write_bytes: int = budgeted(32)
    """The same in bytes: a thirty-second of the memory budget, 3 KB for each of the 10,000. Writes beyond either limit
    are dropped, and counted."""

    redis_failures: int = 5
    """Pipelines late or lost in a row until Redis is skipped: at 20 ms each, a tenth of a second of slower reviews."""

    def check_together(self) -> None:
        """Raise a ValueError that names the limit, if limits contradict each other."""
        if self.entry_bytes > self.memory_bytes:
            raise ValueError(
                f"limit memory_bytes is {self.memory_bytes}: it must hold the largest verdict that is kept, "
                f"{self.entry_bytes} bytes"
            )
