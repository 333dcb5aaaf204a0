"""The limits of a worker. At a limit it rejects a call at once; it never stalls.

A flag of the command or its environment variable (``admission_worker.command``) sets most limits; code that serves a
worker itself can set all.
"""

from msgspec import Struct

MIB = 1024 * 1024

MESSAGE_BYTES = 2 * 20_000_000 + MIB
"""The gateway accepts bodies of 20 MB. A document has at most that size plus the additions of earlier mutating
policies, and a returned object may be larger again. So twice the body, and 1 MiB for settings and other fields; the
gateway's own limit is the same."""

BATCH_BYTES = 4 * MIB
"""gRPC's default for the largest received message. Outcomes are batched up to this size, so that a client with that
default can read each batch; a larger outcome is sent alone, up to ``MESSAGE_BYTES``."""

IN_FLIGHT = 4096
"""Open calls over all connections: 16 gateways with 256 calls each. A call without its document has a few KB, so 4,096
have about 20 MB."""

THREADS = 32
"""Functions marked ``blocking`` that run at the same time. They mostly wait: 32 of them that wait 50 ms each answer 640
calls a second."""

SETTINGS_KEPT = 256
"""Parsed settings in the cache: one for each policy of a large configuration."""

SETTINGS_KEPT_BYTES = 16 * MIB
"""The JSON text of all cached settings. A custom resource has at most 1.5 MB (etcd's limit), so ten of the largest
fit."""

GRACE_PERIOD = 8.0
"""Seconds for open calls after a signal to stop. A gateway that started the worker kills it after 10, Kubernetes by
default after 30; 2 remain for the rest of the shutdown."""


QUIET_PERIOD = 0.5
"""Seconds without a message after which a stopping worker expects no more. A client that watches its health learns of
the stop within a round trip; half a second is a hundred slow round trips, and a sixteenth of the grace period."""


_SMALLEST = {"grace_period": 0, "quiet_period": 0.001}
"""The smallest values of limits in seconds; that of the others is 1."""


class Limits(Struct, frozen=True, kw_only=True):
    """The limits of one served worker.

    Args:
        in_flight: open calls; the worker rejects more (``RESOURCE_EXHAUSTED``, on the stream a failure).
        message_bytes: the largest gRPC message, received or sent, in bytes.
        batch_bytes: the size up to which outcomes share one message of the stream, in bytes.
        threads: policies marked ``blocking`` that run at the same time.
        settings_kept: parsed settings in the cache, of all policies.
        settings_kept_bytes: their JSON text in bytes.
        grace_period: seconds for open calls when the worker stops.
        quiet_period: seconds without a message after which a stopping worker expects no more; 0.01 in tests.

    Raises:
        ValueError: a limit is not positive (``grace_period`` may be 0).
    """

    in_flight: int = IN_FLIGHT
    message_bytes: int = MESSAGE_BYTES
    batch_bytes: int = BATCH_BYTES
    threads: int = THREADS
    settings_kept: int = SETTINGS_KEPT
    settings_kept_bytes: int = SETTINGS_KEPT_BYTES
    grace_period: float = GRACE_PERIOD
    quiet_period: float = QUIET_PERIOD

    def __post_init__(self) -> None:
        for name in self.__struct_fields__:
            value = getattr(self, name)
            smallest = _SMALLEST.get(name, 1)
            if not value >= smallest:
                message = f"limit {name}: must be at least {smallest}, is {value!r}"
                raise ValueError(message)


class InFlight:
    """Counts the open calls, up to the limit."""

    __slots__ = ("_limit", "count")

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self.count = 0

    def enter(self) -> bool:
        """Count one more call. False: the limit is reached, and the call is not counted."""
        if self.count >= self._limit:
            return False
        self.count += 1
        return True

    def leave(self) -> None:
        """Count one call less."""
        self.count -= 1

    def refusal(self) -> str:
        """The message for a rejected call: who, limit, next step."""
        return (
            f"the worker has its limit of {self._limit} calls in flight: run more replicas, "
            "or raise --in-flight (ADMISSION_WORKER_IN_FLIGHT)"
        )
