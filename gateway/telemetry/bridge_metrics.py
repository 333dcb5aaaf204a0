"""All metrics of a bridge, which is a process of its own: one queue, one worker. Counters start at 0."""

from collections.abc import Callable, Iterable
from typing import Final

from prometheus_client import CollectorRegistry, Counter, Gauge
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest

from gateway.telemetry.metrics import PREFIX

_BRIDGE: Final = f"{PREFIX}bridge_"


class BridgeMetrics:
    """A bridge's own metrics, and their registry.

    ================================================  ======  =================================
    metric                                            labels  their values
    ================================================  ======  =================================
    admission_gateway_bridge_events_total             event   what happens to what it takes
    admission_gateway_bridge_worker_events_total      event   what happens with the worker
    admission_gateway_bridge_worker_connections       (none)
    admission_gateway_bridge_in_hand                  (none)
    admission_gateway_bridge_taking                   (none)  0 or 1
    admission_gateway_bridge_dropped_log_lines_total  (none)
    ================================================  ======  =================================

    Args:
        events: what can happen to what it takes: values of ``event``, of which there are no others.
        worker_events: what can happen with the worker.
    """

    def __init__(self, events: Iterable[str], worker_events: Iterable[str]) -> None:
        self.registry = CollectorRegistry()
        self._events = self._counter("events", "What happened to entries of the queue, and with Redis.", events)
        self._worker_events = self._counter("worker_events", "What happened with the worker.", worker_events)
        self._connections = self._gauge(
            "worker_connections", "Connections to the worker that may be asked: described, and serving."
        )
        self._in_hand = self._gauge("in_hand", "Questions that the worker is asked, and answers that are not written.")
        self._taking = self._gauge("taking", "Whether work is taken from the queue.")
        self._dropped = Counter(
            f"{_BRIDGE}dropped_log_lines", "Log lines that nobody took in time.", registry=self.registry
        )

    def watch(self, in_hand: Callable[[], int], taking: Callable[[], bool]) -> None:
        """These say how much it has in hand, and whether it takes work, whenever somebody wants to know."""
        self._in_hand.set_function(in_hand)
        self._taking.set_function(taking)

    def happened(self, event: str, count: int = 1) -> None:
        """Something happened to an entry, or with Redis."""
        self._events.labels(event).inc(count)

    def worker_event(self, event: str, count: int = 1) -> None:
        """Something happened with the worker."""
        self._worker_events.labels(event).inc(count)

    def connections(self, change: int) -> None:
        """So many more connections may be asked; less than 0: fewer."""
        self._connections.inc(change)

    def log_line_dropped(self) -> None:
        """A log line was dropped."""
        self._dropped.inc()

    def exposition(self) -> tuple[str, bytes]:
        """Content-Type and body of ``/metrics``."""
        return CONTENT_TYPE_LATEST, generate_latest(self.registry)

    def _counter(self, name: str, text: str, words: Iterable[str]) -> Counter:
        counter = Counter(f"{_BRIDGE}{name}", text, ["event"], registry=self.registry)
        for word in words:
            counter.labels(word)
        return counter

    def _gauge(self, name: str, text: str) -> Gauge:
        return Gauge(f"{_BRIDGE}{name}", text, registry=self.registry)
