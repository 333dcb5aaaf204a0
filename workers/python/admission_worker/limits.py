"""How much a worker takes on. Full means a decided refusal, never a stall.

Every number has the arithmetic that gave it; each can be set by a flag of the worker's command or by its environment
variable (``admission_worker.command``), or in code where a worker is served by hand.
"""

from msgspec import Struct

MIB = 1024 * 1024

MESSAGE_BYTES = 2 * 20_000_000 + MIB
"""The gateway accepts bodies of 20 MB. A document is at most that body, and mutating policies before this one may have
let it grow; a whole object that goes back may be larger again. Twice the body, and 1 MiB for settings and what stands
around; the gateway's own limit is the same."""

BATCH_BYTES = 4 * MIB
"""gRPC's own default for what a receiver accepts. Outcomes are gathered up to here, so that a gateway which has set no
limit can read every batch; a single outcome that is larger travels alone, up to ``MESSAGE_BYTES``."""

IN_FLIGHT = 4096
"""Calls taken and not yet worked off, over all connections: 16 gateways with 256 calls each. A call is a few KB besides
its document, so 4,096 of them are some 20 MB."""

THREADS = 32
"""Functions marked ``blocking`` that run at the same time. They wait more than they compute: 32 of them, waiting 50 ms
each, answer 640 calls a second."""

SETTINGS_KEPT = 256
"""Parsed settings that are kept: one for each policy of a large configuration."""

SETTINGS_KEPT_BYTES = 16 * MIB
"""The JSON text of all settings that are kept together. A custom resource is at most 1.5 MB (etcd's limit), so ten of
the largest fit."""

GRACE_PERIOD = 8.0
"""Seconds for open calls when the worker is told to stop. A gateway that started it kills it after 10, Kubernetes
after 30 by default; 2 are left for the rest of the shutdown."""


QUIET_PERIOD = 0.5
"""Seconds without a message after which a worker that is told to stop believes that nobody sends any more. Who watches
its health hears of it within a round trip; half a second is a hundred slow ones, and a sixteenth of the grace
period."""


_SMALLEST = {"grace_period": 0, "quiet_period": 0.001}
"""Of those that need not be whole."""


class Limits(Struct, frozen=True, kw_only=True):
    """The limits of one served worker.

    Args:
        in_flight: calls taken and not yet worked off; more are refused (``RESOURCE_EXHAUSTED``, on the stream a
            failure).
        message_bytes: the largest gRPC message, received or sent, in bytes.
        batch_bytes: up to which size outcomes are gathered into one message of the stream, in bytes.
        threads: policies marked ``blocking`` that run at the same time.
        settings_kept: parsed settings that are kept, over all policies.
        settings_kept_bytes: their JSON text together, in bytes.
        grace_period: seconds for open calls when the worker stops.
        quiet_period: seconds without a message after which it stops to wait for more. A test may say 0.01.

    Raises:
        ValueError: a limit that is not positive (``grace_period`` may be 0).
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
    """Counts the calls that are being worked on, and says whether one more may be taken."""

    __slots__ = ("_limit", "count")

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self.count = 0

    def enter(self) -> bool:
        """Take one call. False: there is no room, and nothing was taken."""
        if self.count >= self._limit:
            return False
        self.count += 1
        return True

    def leave(self) -> None:
        """One call is worked off."""
        self.count -= 1

    def refusal(self) -> str:
        """The sentence for whoever is refused: who, limit, next step."""
        return (
            f"the worker has its limit of {self._limit} calls in flight: run more replicas, "
            "or raise --in-flight (ADMISSION_WORKER_IN_FLIGHT)"
        )
