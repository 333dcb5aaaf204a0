"""``/metrics``: in OpenMetrics for clients that ask for it, as Prometheus does, else in Prometheus' text format.

A client that does not read its answer holds the answer's memory until ``Limits.write_seconds`` are over, so there are
at most ``Limits.scrapes`` answers at a time.
"""

from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import Final, Protocol

from gateway.serving import web
from gateway.serving.limits import Limits
from gateway.serving.refusals import SERVER, line
from gateway.telemetry.events import Events, NoEvents
from gateway.telemetry.table import LIMIT_HITS

PATH: Final = "/metrics"

_OPENMETRICS: Final = "application/openmetrics-text"
_VERSIONS: Final = frozenset({"", "1.0.0"})
_TEXT: Final = "text/plain"


class WrittenMetrics(Protocol):
    """Writes the metrics."""

    async def __call__(self, *, openmetrics: bool) -> tuple[str, bytes]:
        """Content-Type and body, in OpenMetrics or in Prometheus' text format."""


class MetricsPage:
    """Answers requests for metrics."""

    def __init__(self, metrics: WrittenMetrics, limits: Limits, events: Events | None = None) -> None:
        self._metrics = metrics
        self._events = events or NoEvents()
        self._most = limits.scrapes
        self._open = 0

    async def __call__(self, request: web.BaseRequest) -> web.Response:
        """The answer, already written if it has metrics."""
        if self._open >= self._most:
            self._events.count(LIMIT_HITS, "scrapes")
            text = f"{self._open} answers with metrics are being written, which is the limit; try again"
            return _page(503, "text/plain; charset=utf-8", line(text))
        self._open += 1
        try:
            openmetrics = prefers_openmetrics(request.headers.getall("Accept", ()))
            response = _page(200, *await self._metrics(openmetrics=openmetrics))
            # Written here, so that it counts until the client has read it. The caller notices a lost connection.
            with suppress(ConnectionError):
                await response.prepare(request)
                await response.write_eof()
            return response
        finally:
            self._open -= 1


def _page(status: int, content_type: str, body: bytes) -> web.Response:
    headers = {"Content-Type": content_type, "Cache-Control": "no-store", "Server": SERVER}
    return web.Response(status=status, body=body, headers=headers)


def prefers_openmetrics(accepted: Iterable[str]) -> bool:
    """Whether the values of Accept (RFC 9110, 12.5.1) name OpenMetrics 1.0.0, and the text format not above it."""
    weights = {_OPENMETRICS: 0.0, _TEXT: 0.0}
    for name, version, weight in _ranges(accepted):
        if name == _TEXT or (name == _OPENMETRICS and version in _VERSIONS):
            weights[name] = max(weights[name], weight)
    return weights[_OPENMETRICS] > 0 and weights[_OPENMETRICS] >= weights[_TEXT]


def _ranges(accepted: Iterable[str]) -> Iterator[tuple[str, str, float]]:
    """Each media range, its version and its weight; one whose weight cannot be read has none."""
    for each in ",".join(accepted).split(","):
        name, *rest = (part.strip().lower() for part in each.split(";"))
        parameters = {key.strip(): value.strip().strip('"') for key, _, value in (part.partition("=") for part in rest)}
        try:
            weight = float(parameters.get("q", "1"))
        except ValueError:
            weight = 0.0
        yield name, parameters.get("version", ""), weight
