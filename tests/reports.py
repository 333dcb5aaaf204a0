"""What components report, remembered."""

from collections import Counter

from gateway.telemetry.events import Kind, NoEvents
from gateway.telemetry.table import (
    HOOK_PROCESSES,
    LIMIT_HITS,
    QUEUE_LENGTH,
    QUEUE_OLDEST_SECONDS,
    WORKER_CONNECTIONS,
)


class Reports:
    """An Events. ``counted`` has the counted words in order, and "gone" for each worker; ``values`` are gauges.

    ``reports[word]`` is how often a word was counted.
    """

    def __init__(self):
        self.counted = []
        self.values = Counter()

    def count(self, metric, *labels, amount=1):
        if metric.kind is Kind.GAUGE:
            self.values[metric] += amount
        elif metric is not LIMIT_HITS:
            self.counted += [labels[-1].value] * amount

    def set(self, metric, value, *labels):
        self.values[metric] = value

    def observe(self, metric, value, *labels, trace_id=""):
        pass

    def series(self, metric, *labels):
        return NoEvents().series(metric, *labels)

    def worker_added(self, worker, events):
        pass

    def worker_removed(self, worker):
        self.counted.append("gone")

    def __getitem__(self, word):
        return self.counted.count(word)

    @property
    def usable(self):
        return self.values[WORKER_CONNECTIONS]

    @property
    def length(self):
        return self.values[QUEUE_LENGTH]

    @property
    def oldest(self):
        return self.values[QUEUE_OLDEST_SECONDS]

    @property
    def running(self):
        return self.values[HOOK_PROCESSES]
