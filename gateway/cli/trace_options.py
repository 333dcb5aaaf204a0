"""The options for traces, beside OpenTelemetry's own variables: of ``serve``, ``bridge`` and ``hook-worker``."""

import os
from collections.abc import Callable
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Final, Optional, TypeVar

import click

from gateway.cli.options import SECONDS, SHARE, option
from gateway.cli.standard_streams import note
from gateway.extras import NEEDS_OPENTELEMETRY_EXTRA

if TYPE_CHECKING:
    from gateway.telemetry.traces.settings import TraceSettings

_F = TypeVar("_F", bound=Callable[..., Any])

TRACES: Final = "Traces (pip install 'admission-gateway[opentelemetry]'); OpenTelemetry's variables hold too"
"""A section of the help."""

_SWITCHES: Final = ("OTEL_TRACES_EXPORTER", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")
"""One of these variables turns traces on, too. Without them nothing of traces is imported."""


def endpoint_option(command: _F) -> _F:
    """``--traces-endpoint``."""
    text = "Export traces by OTLP to this URL, as OTEL_EXPORTER_OTLP_ENDPOINT; port 4317: gRPC, others: HTTP."
    return option("--traces-endpoint", metavar="URL", section=TRACES, help=text)(command)


def sampling_options(command: _F) -> _F:
    """All options of a process that begins traces."""
    command = option(
        "--traces-slow-seconds",
        type=SECONDS,
        default=1.0,
        section=TRACES,
        help="Export the spans of reviews that take so long, as of those denied or failed, sampled or not.",
    )(command)
    command = option(
        "--traces-sample-ratio",
        type=SHARE,
        section=TRACES,
        help="Share of reviews that are sampled, if the API server has not decided.  [default: OTEL_TRACES_SAMPLER, "
        "else 0.01]",
    )(command)
    return endpoint_option(command)


def chosen_traces(values: dict[str, Any]) -> Optional["TraceSettings"]:
    """Remove the options from a command's parameters and return what they set; None: there are no traces.

    Raises:
        click.UsageError: what the endpoint lacks.
    """
    endpoint = values.pop("traces_endpoint")
    ratio, slow_seconds = values.pop("traces_sample_ratio", None), values.pop("traces_slow_seconds", 1.0)
    if endpoint is None and not any(os.environ.get(name, "").strip() for name in _SWITCHES):
        return None
    from gateway.telemetry.traces.settings import is_url, trace_settings  # noqa: PLC0415 - only if there may be traces

    if endpoint is not None and not is_url(endpoint):
        raise click.UsageError(f"--traces-endpoint: {endpoint!r} is not a URL such as http://collector:4317")
    warnings: list[str] = []
    settings = trace_settings(os.environ, endpoint=endpoint, ratio=ratio, slow_seconds=slow_seconds, warnings=warnings)
    if settings is None:
        for each in warnings:
            note(f"warning: {each}; traces are off", fg="yellow")
    if settings is None or has_exporters():
        return settings
    if endpoint is not None:
        raise click.UsageError(f"--traces-endpoint {NEEDS_OPENTELEMETRY_EXTRA}")
    note(f"warning: OTEL_EXPORTER_OTLP_ENDPOINT is set; exporting traces {NEEDS_OPENTELEMETRY_EXTRA}", fg="yellow")
    return None


def has_exporters() -> bool:
    """Whether what exports by OTLP is installed."""
    try:
        return find_spec("opentelemetry.exporter.otlp.proto.http") is not None
    except ImportError:
        return False
