"""What a gateway needs to explain its reviews: retained decisions, the page, and the way to other replicas."""

import secrets
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Optional

from gateway.serving.explain import ELSEWHERE, FINDINGS, ElsewherePage, ExplainPage, FindElsewhere, FindingsPage
from gateway.serving.settings import Settings
from gateway.serving.verdict_cache import ServedCache
from gateway.telemetry.decision_memory import DecisionMemory
from gateway.telemetry.events import Events
from gateway.telemetry.findings import Findings, Query, find

if TYPE_CHECKING:
    from gateway.serving.admin import GuardedPage
    from gateway.serving.replica_findings import ReplicaFindings


class Explanations:
    """Explains the reviews of one gateway. ``memory`` observes its decisions, ``page`` answers on the admin listener.

    Args:
        settings: of the gateway.
        events: see DecisionMemory.
        cache: has the keys that all replicas share.
    """

    def __init__(self, settings: Settings, events: Events, cache: ServedCache) -> None:
        limits = settings.limits
        self.memory = DecisionMemory(limits.retained_decisions, limits.retained_bytes, events=events)
        self._process = secrets.token_hex(16)
        self._replicas = self._other_replicas(settings, cache)
        others = tuple(self._elsewhere())
        self.page = ExplainPage(self.memory, others, reaches_replicas=bool(others))

    def parent_pages(self) -> "Mapping[str, GuardedPage]":
        """What one process of several has for its parent."""
        pages: dict[str, GuardedPage] = {FINDINGS: FindingsPage(self.find)}
        if self._replicas is not None:
            pages[ELSEWHERE] = ElsewherePage(self._replicas.find_elsewhere)
        return pages

    def find(self, query: Query) -> Findings:
        """What this process finds."""
        return find(self.memory, query, process=self._process)

    def _other_replicas(self, settings: Settings, cache: ServedCache) -> Optional["ReplicaFindings"]:
        if cache.seals is None:
            return None
        from gateway.redis.addresses import redis_address  # noqa: PLC0415 - without Redis, not needed
        from gateway.serving.replica_findings import ReplicaFindings  # noqa: PLC0415 - as above

        address, is_shared = redis_address(settings.redis), settings.seal_key_file is not None
        return ReplicaFindings(address, cache.seals, is_shared=is_shared, find=self.find, process=self._process)

    def _elsewhere(self) -> Iterator[FindElsewhere]:
        if self._replicas is not None:
            yield self._replicas.find_elsewhere

    def start(self) -> None:
        """Connect to the other replicas, in the background."""
        if self._replicas is not None:
            self._replicas.start()

    async def close(self) -> None:
        """End what ``start`` began."""
        if self._replicas is not None:
            await self._replicas.close()
