"""The events of the live stream.

========  =====================================================================================================
event     data
========  =====================================================================================================
state     the state of the replica (``gateway_state``): first, and again when it has changed
reviews   ``reviews``: recent reviews, in order; ``skipped``: how many of the interval are left out
numbers   the numbers of all reviews (``policy_statistics.review_statistics``) and ``time``: in each interval
========  =====================================================================================================

Each has ``process``, which is another one after a restart. The parent of several processes merges their streams.
"""

import time
from collections.abc import Iterator
from typing import Any, Final

import msgspec

from gateway.serving.dashboard.gateway_state import GatewayState
from gateway.serving.dashboard.live_stream import Event
from gateway.serving.dashboard.policy_statistics import review_statistics
from gateway.serving.dashboard.recent_reviews import RecentReviews
from gateway.telemetry.metrics import Metrics

STATE_INTERVALS: Final = 5
"""Intervals between two looks at the state: with 2,000 policies, a look takes some milliseconds."""


class LiveEvents:
    """Makes the events. A LiveData."""

    def __init__(self, state: GatewayState, reviews: RecentReviews, metrics: Metrics) -> None:
        self._state = state
        self._reviews = reviews
        self._metrics = metrics
        self._sent = b""
        self._intervals = 0

    def first(self) -> Iterator[Event]:
        """See LiveData."""
        yield "state", self._state.read()
        yield "reviews", {"process": self._state.process, "reviews": self._reviews.first(), "skipped": 0}
        yield "numbers", self._numbers()

    def next(self) -> Iterator[Event]:
        """See LiveData."""
        self._intervals += 1
        if self._intervals % STATE_INTERVALS == 0:
            state = self._state.read()
            encoded = msgspec.json.encode(state)
            if encoded != self._sent:
                self._sent = encoded
                yield "state", state
        reviews, skipped = self._reviews.next()
        if reviews:
            yield "reviews", {"process": self._state.process, "reviews": reviews, "skipped": skipped}
        yield "numbers", self._numbers()

    def _numbers(self) -> dict[str, Any]:
        return {"process": self._state.process, "time": time.time(), **review_statistics(self._metrics)}
