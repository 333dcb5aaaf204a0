"""What happens in the front, in the judge and to the configuration, counted: events in, metrics out."""

from collections import Counter
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final

from gateway.caching.events import LookupResult
from gateway.deciding.decision import Decision
from gateway.deciding.plan import UnavailableReason
from gateway.policies.model import Phase, Policy
from gateway.serving.loaded_configuration import LoadedConfiguration
from gateway.serving.refusals import Refusal
from gateway.telemetry.metrics import Metrics
from gateway.transports.events import WorkerEvent

if TYPE_CHECKING:
    from gateway.redis.faults import RedisFault


class Counting:
    """A FrontEvents, a JudgeEvents, a ReloadEvents, a PatrolEvents and a ShadowEvents.

    Args:
        metrics: where to count.
        current: the generation in force.
    """

    def __init__(self, metrics: Metrics, current: Callable[[], LoadedConfiguration]) -> None:
        self._metrics = metrics
        self._current = current

    def answered(self, phase: Phase, status: int, seconds: float, body_bytes: int) -> None:
        """Decisions are counted where they are made."""

    def refused(self, why: Refusal) -> None:
        """A request or connection got no verdict."""
        self._metrics.refused(why)

    def limit_hit(self, limit: str) -> None:
        """A limit said no."""
        self._metrics.limit_hit(limit)

    def judged(self, entry: str | None, decision: Decision) -> None:
        """A decision was made; through an entry, if not None."""
        if entry is not None:
            self._metrics.judged(entry, decision)

    def abandoned(self, phase: Phase) -> None:
        """The API server hung up before the decision."""
        self._metrics.abandoned(phase)

    def not_a_review(self) -> None:
        """A body was no AdmissionReview."""
        self._metrics.not_a_review()

    def patrolled_policy(self, policy: Policy, result: str) -> None:
        """A policy was put its own result. One that is not configured any more has no series."""
        if self._current().has(policy):
            self._metrics.patrolled_policy(policy, result)

    def patrolled(self, result: str) -> None:
        """A patrol is over, or was dropped."""
        self._metrics.patrolled(result)

    def compared(self, policy: Policy, result: str) -> None:
        """A verdict of a policy was compared with its shadow's. One that is not configured any more has no series."""
        if self._current().has(policy):
            self._metrics.compared(policy, result)

    def reloaded(self, result: str, *, errors: int, good: bool) -> None:
        """The configuration was read again."""
        self._metrics.reloaded(result, errors=errors, good=good)

    def loaded(self, generation: LoadedConfiguration) -> None:
        """Its policies and entries can be counted from now on."""
        self._metrics.know(generation.policies(), generation.entry_names())
        self._metrics.loaded(generation.loaded.timestamp(), errors=len(generation.configuration.errors))

    def degraded(self, numbers: Mapping[tuple[UnavailableReason, bool], int]) -> None:
        """So many policies are not in force as configured."""
        self._metrics.degraded(numbers)

    def retired(self) -> None:
        """What only the generation before had is not counted any more."""
        current = self._current()
        self._metrics.forget_others(current.policies(), current.entry_names())


class CacheCounting:
    """A CacheEvents.

    Args:
        metrics: where to count.
    """

    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics

    def looked_up(self, policy: Policy, result: LookupResult) -> None:
        """A question of this policy was looked up."""
        self._metrics.looked_up(policy, result)

    def stored(self, policy: Policy) -> None:
        """A verdict of this policy was kept."""
        del policy
        self._metrics.cache_entry("stored")

    def too_large(self, policy: Policy) -> None:
        """A verdict was not kept."""
        del policy
        self._metrics.cache_entry("too_large")

    def evicted(self, entries: int) -> None:
        """So many verdicts made room for newer ones."""
        self._metrics.cache_entry("evicted", entries)

    def seal_failed(self) -> None:
        """An entry in Redis was not opened."""
        self._metrics.seal_failed()

    def redis_failed(self, fault: "RedisFault") -> None:
        """Redis did not do what it was asked to."""
        self._metrics.redis_failed(fault)

    def redis_skipped(self, *, skipped: bool) -> None:
        """From now on Redis is skipped, or used again."""
        self._metrics.redis_skipped(skipped=skipped)

    def write_dropped(self, entries: int) -> None:
        """So many verdicts were not written to Redis."""
        self._metrics.cache_entry("write_dropped", entries)

    def purged(self, policies: int) -> None:
        """The verdicts of so many policies were purged."""
        self._metrics.purged(policies)

    def size(self, memory_bytes: int, entries: int) -> None:
        """What the memory holds now."""
        self._metrics.cache_size(memory_bytes, entries)


class WorkerCounting:
    """A WorkerEvents. Two workers may have one name, while one configuration follows another: they count together.

    Args:
        metrics: where to count.
    """

    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics
        self._known: Counter[str] = Counter()
        self._usable: Counter[str] = Counter()
        self._running: Counter[str] = Counter()

    def arrived(self, worker: str) -> None:
        """It is being connected to."""
        self._known[worker] += 1
        self._metrics.know_worker(worker)

    def happened(self, worker: str, event: WorkerEvent, count: int = 1) -> None:
        """Something happened with it."""
        self._metrics.worker_event(worker, event, count)
        limit = _LIMITS.get(event)
        if limit is not None:
            self._metrics.limit_hit(limit)

    def connections(self, worker: str, change: int) -> None:
        """So many more of its connections may be asked; less than 0: fewer."""
        self._usable[worker] += change
        self._metrics.worker_connections(worker, self._usable[worker])

    def processes(self, worker: str, change: int) -> None:
        """So many more of its processes run; less than 0: fewer."""
        self._running[worker] += change
        self._metrics.hook_processes(worker, self._running[worker])

    def queue(self, worker: str, length: int, oldest_seconds: float) -> None:
        """So many asks are in its queue."""
        self._metrics.worker_queue(worker, length, oldest_seconds)

    def gone(self, worker: str) -> None:
        """It is let go of."""
        self._known[worker] -= 1
        if not self._known[worker]:
            del self._known[worker]
            self._usable.pop(worker, None)
            self._running.pop(worker, None)
            self._metrics.forget_worker(worker)


_LIMITS: Final = {
    WorkerEvent.BACKLOG: "worker_backlog_bytes",
    WorkerEvent.IN_FLIGHT: "worker_in_flight",
    WorkerEvent.FLOODED: "worker_strays",
    WorkerEvent.QUEUE_BYTES: "queue_bytes",
    WorkerEvent.QUEUE_LENGTH: "queue_length",
    WorkerEvent.QUEUE_OPEN_BYTES: "queue_open_bytes",
    WorkerEvent.HOOK_REFUSED: "hook_waiting",
}
