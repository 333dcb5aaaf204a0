"""The metrics of all processes of a gateway, and of its parent."""

import asyncio
from collections.abc import Sequence
from http import HTTPStatus
from typing import Final

from gateway.serving.metrics_page import PATH as METRICS
from gateway.serving.processes.member import Member
from gateway.serving.processes.requests import Unanswered, request
from gateway.telemetry.events import Metric
from gateway.telemetry.merged import Families, merged, parsed, still_configured, with_ended
from gateway.telemetry.metrics import Metrics
from gateway.telemetry.table import (
    ADMIN_REQUESTS_REJECTED,
    CLUSTER,
    GATEWAY,
    LIMIT_HITS,
    PROCESSES,
    PROCESSES_SERVING,
    REDIS,
    WEBHOOK_PROBE,
)

REFRESH_SECONDS: Final = 10.0
"""How often the counts of all processes are read, besides each scrape. What a process counts after that is lost if it
is killed."""

_OPENMETRICS: Final = "application/openmetrics-text; version=1.0.0"
_TEXT: Final = "text/plain"
_EOF: Final = "# EOF\n"

_TABLE: Final[tuple[Metric, ...]] = (*GATEWAY, *CLUSTER, *WEBHOOK_PROBE, *REDIS, *PROCESSES)


class PodMetrics:
    """The last values of each process. ``own`` has those of the parent."""

    def __init__(self) -> None:
        self.own = Metrics((*PROCESSES, ADMIN_REQUESTS_REJECTED, LIMIT_HITS))
        self._last: dict[Member, Families] = {}
        self._retired: Families = {}

    async def written(self, members: Sequence[Member], *, openmetrics: bool) -> tuple[str, bytes]:
        """Content type and text of /metrics. A process that does not answer has its last values."""
        await asyncio.gather(*(self._read(member, openmetrics=openmetrics) for member in members))
        self.own.set(PROCESSES_SERVING, len(members))
        content_type, text = self.own.exposition(openmetrics=openmetrics)
        live = {member.number: families for member, families in self._last.items()}
        # In a thread: the texts of thousands of policies take tens of milliseconds, and connections are accepted here.
        lines = await asyncio.to_thread(_merged, live, text.decode(), self._retired)
        return content_type, f"{lines}{_EOF if openmetrics else ''}".encode()

    async def refresh(self, members: Sequence[Member]) -> None:
        """Read the counts of these processes."""
        await asyncio.gather(*(self._read(member, openmetrics=False) for member in members))

    def ended(self, member: Member) -> None:
        """A process has ended: keep what it has counted."""
        last = self._last.pop(member, None)
        if last is not None:
            self._retired = with_ended(self._retired, last)

    async def _read(self, member: Member, *, openmetrics: bool) -> None:
        try:
            reply = await request(member, "GET", METRICS, {"accept": _OPENMETRICS if openmetrics else _TEXT})
            body = await reply.body()
        except Unanswered:
            return
        if reply.status != HTTPStatus.OK:
            return
        families = await asyncio.to_thread(parsed, body.decode())
        if not member.has_ended:
            self._last[member] = families


def _merged(live: dict[int, Families], own: str, retired: Families) -> str:
    return "".join(merged({**live, 0: parsed(own)}, still_configured(retired, live.values()), _TABLE))
