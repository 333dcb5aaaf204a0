"""What happens with a worker, reported."""

from gateway.telemetry.events import Events
from gateway.telemetry.labels import LIMIT_OF, WorkerEvent
from gateway.telemetry.table import LIMIT_HITS, WORKER_EVENTS


def count_worker_event(events: Events, worker: str, event: WorkerEvent, amount: int = 1) -> None:
    """Report that something happened, so often; and that a limit was hit, where that is what happened."""
    events.count(WORKER_EVENTS, worker, event, amount=amount)
    limit = LIMIT_OF.get(event)
    if limit is not None:
        events.count(LIMIT_HITS, limit)
