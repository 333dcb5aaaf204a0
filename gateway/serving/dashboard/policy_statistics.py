"""What the metrics of this process count about each policy, since its start, for the dashboard's table.

The browser computes rates and quantiles from two of these records, so nothing is sampled while none is open.
"""

import asyncio
from collections.abc import Callable, Iterable, Sequence
from time import monotonic
from typing import Any, Final

import msgspec

from gateway.engine.decision import ANSWERED
from gateway.engine.plan import Unavailable
from gateway.policies.model import Phase, Policy
from gateway.serving.dashboard.worker_states import lost_workers
from gateway.serving.loaded_configuration import LoadedConfiguration
from gateway.telemetry.events import Metric
from gateway.telemetry.labels import LookupResult
from gateway.telemetry.metrics import Metrics
from gateway.telemetry.table import (
    BUCKETS,
    CACHE_LOOKUPS,
    FAILED_OPEN,
    POLICY_BUCKETS,
    POLICY_CALL_SECONDS,
    POLICY_VERDICTS,
    REVIEW_SECONDS,
    REVIEWS,
    VERDICTS,
)

FRESH_SECONDS: Final = 1.0
"""How long an answer is used again: however many browsers ask, 2,000 policies take 30 ms of each second."""

_PIECE: Final = 100
"""Policies that are read at once: a millisecond."""

_COUNTED: Final = frozenset({"verdicts", "failedOpen", "durations", "lookups", "hits"})

HITS: Final = (LookupResult.MEMORY, LookupResult.REDIS, LookupResult.SHARED)
"""The results of a lookup that saved a call."""


class PolicyStatistics:
    """Reads the numbers of all policies, in chain order.

    ``buckets`` are the upper bounds of the histograms in seconds; ``durations`` the count in each, and in the one
    above. ``lookups`` and ``hits`` are those of a policy's cache, null without one.

    Args:
        loaded: the configuration in force.
        metrics: of this process.
    """

    def __init__(self, loaded: Callable[[], LoadedConfiguration], metrics: Metrics) -> None:
        self._loaded = loaded
        self._metrics = metrics
        self._reading = asyncio.Lock()
        self._content = b""
        self._fresh_until = 0.0

    async def read(self) -> bytes:
        """The numbers as JSON, at most ``FRESH_SECONDS`` old. Other tasks run meanwhile."""
        async with self._reading:
            if monotonic() >= self._fresh_until:
                self._content = msgspec.json.encode({"buckets": POLICY_BUCKETS, "policies": await self._policies()})
                self._fresh_until = monotonic() + FRESH_SECONDS
            return self._content

    async def _policies(self) -> list[dict[str, Any]]:
        configuration = self._loaded()
        lost = lost_workers(configuration, self._metrics)
        made = []
        for number, policy in enumerate(configuration.policies(), 1):
            unavailable = policy.worker in lost or _is_unavailable(configuration, policy)
            made.append(_policy(policy, self._metrics, unavailable=unavailable))
            if not number % _PIECE:
                await asyncio.sleep(0)
        return made


def added_up(contents: Sequence[bytes]) -> bytes:
    """The numbers of several processes with one configuration, from what each has read; it takes some milliseconds.

    While a configuration is loaded, not all may have it: the policies are those of the first, and what others count of
    the same policy is added.
    """
    first, *others = (msgspec.json.decode(content) for content in contents)
    for other in others:
        known = {(policy["phase"], policy["name"]): policy for policy in other["policies"]}
        for policy in first["policies"]:
            same = known.get((policy["phase"], policy["name"]), {})
            for name in _COUNTED & same.keys():
                policy[name] = _added(policy[name], same[name])
    return msgspec.json.encode(first)


def _added(one: Any, other: Any) -> Any:
    if isinstance(one, dict):
        return {name: _added(value, other[name]) for name, value in one.items()}
    if isinstance(one, list):
        return [_added(value, added) for value, added in zip(one, other, strict=True)]
    return one if one is None or other is None else one + other


def review_statistics(metrics: Metrics) -> dict[str, Any]:
    """The numbers of all reviews: ``outcomes``, and ``durations`` as above."""
    phases = [metrics.counts(REVIEW_SECONDS, phase) for phase in Phase]
    return {
        "outcomes": {
            outcome.value: _sum(metrics, REVIEWS, ((phase, outcome) for phase in Phase)) for outcome in ANSWERED
        },
        "buckets": BUCKETS,
        "durations": [sum(each) for each in zip(*phases, strict=True)],
    }


def _policy(policy: Policy, metrics: Metrics, *, unavailable: bool) -> dict[str, Any]:
    labels = policy.phase, policy.qualified_name
    cached = policy.cache is not None
    return {
        "phase": policy.phase.value,
        "name": policy.qualified_name,
        "place": str(policy.place) if policy.place.file else "",
        "worker": policy.worker,
        "mode": policy.mode.value,
        "failurePolicy": policy.failure_policy.value,
        "available": not unavailable,
        "verdicts": {verdict: metrics.value(POLICY_VERDICTS, *labels, verdict) for verdict in VERDICTS},
        "failedOpen": metrics.value(FAILED_OPEN, *labels),
        "durations": metrics.counts(POLICY_CALL_SECONDS, *labels) or [0] * (len(POLICY_BUCKETS) + 1),
        "lookups": _sum(metrics, CACHE_LOOKUPS, ((*labels, each) for each in LookupResult)) if cached else None,
        "hits": _sum(metrics, CACHE_LOOKUPS, ((*labels, each) for each in HITS)) if cached else None,
    }


def _is_unavailable(configuration: LoadedConfiguration, policy: Policy) -> bool:
    availability = configuration.workers.availabilities(policy.phase).get(policy.qualified_name)
    return availability is None or isinstance(availability, Unavailable)


def _sum(metrics: Metrics, metric: Metric, all_labels: Iterable[tuple[str, ...]]) -> float:
    return sum(metrics.value(metric, *labels) for labels in all_labels)
