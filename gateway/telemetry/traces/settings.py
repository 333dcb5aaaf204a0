"""Whether and how spans are exported: flags, and OpenTelemetry's own variables.

    on               the flag --traces-endpoint; OTEL_TRACES_EXPORTER=otlp; or, without that variable, an endpoint in
                     OTEL_EXPORTER_OTLP_TRACES_ENDPOINT or OTEL_EXPORTER_OTLP_ENDPOINT: for HTTP a URL, for gRPC any
                     name that gRPC resolves
    off              else, and always with OTEL_SDK_DISABLED=true
    protocol         OTEL_EXPORTER_OTLP_TRACES_PROTOCOL, OTEL_EXPORTER_OTLP_PROTOCOL; else gRPC at port 4317, which is
                     registered for it, and HTTP at any other
    sampled          the flag --traces-sample-ratio; OTEL_TRACES_SAMPLER and _ARG; else as the API server says, and
                     1 % of what it says nothing of
    batches          OTEL_BSP_SCHEDULE_DELAY, _EXPORT_TIMEOUT, _MAX_QUEUE_SIZE, _MAX_EXPORT_BATCH_SIZE

OpenTelemetry's exporters read headers, certificates, compression and timeouts themselves. "An invalid value ... MUST be
ignored, with a warning": ``warnings`` has them.
"""

from collections.abc import Mapping
from typing import Final
from urllib.parse import urlsplit

from msgspec import Struct

from gateway.telemetry.traces.sampling import HeadSampler

GRPC: Final = "grpc"
HTTP: Final = "http/protobuf"

_GRPC_PORT: Final = 4317

DEFAULT_RATIO: Final = 0.01
"""Of the reviews that begin a trace: at 500 reviews a second, five traces a second, each of a few kilobytes."""

DEFAULT_SLOW_SECONDS: Final = 1.0
"""kube-apiserver's own SLI counts a write of up to one second as good."""

_SAMPLERS: Final = {
    "always_on": (False, 1.0),
    "always_off": (False, 0.0),
    "traceidratio": (False, None),
    "parentbased_always_on": (True, 1.0),
    "parentbased_always_off": (True, 0.0),
    "parentbased_traceidratio": (True, None),
}
"""OpenTelemetry's names: whether the parent's decision counts, and the ratio; None: in OTEL_TRACES_SAMPLER_ARG."""

_SHOWN_CHARACTERS: Final = 100

_MILLISECONDS: Final = 1000.0


class OtlpTarget(Struct, frozen=True, kw_only=True):
    """Where a signal is exported to. ``shown`` is the chosen endpoint, "" for the default, and ``endpoint`` that for
    the exporter: "" where OpenTelemetry's variables have it.
    """

    protocol: str
    endpoint: str = ""
    shown: str = ""


class BatchSettings(Struct, frozen=True, kw_only=True):
    """Of the batches, with OpenTelemetry's defaults. ``queue_spans`` wait at most, the others are dropped."""

    delay_seconds: float = 5.0
    queue_spans: int = 2048
    batch_spans: int = 512
    stop_seconds: float = 5.0


class TraceSettings(Struct, frozen=True, kw_only=True):
    """How spans are exported. ``endpoint`` is "" where OpenTelemetry's variables have it, and what they say counts."""

    protocol: str
    endpoint: str = ""
    shown_endpoint: str = ""
    sampler: HeadSampler
    batches: BatchSettings = BatchSettings()
    warnings: tuple[str, ...] = ()


def trace_settings(
    environment: Mapping[str, str],
    *,
    endpoint: str | None = None,
    ratio: float | None = None,
    slow_seconds: float = DEFAULT_SLOW_SECONDS,
    warnings: list[str] | None = None,
) -> TraceSettings | None:
    """The settings that flags and variables give; None: nothing is exported.

    Args:
        environment: with OpenTelemetry's variables.
        endpoint: the flag's, a URL as in OTEL_EXPORTER_OTLP_ENDPOINT; None: the flag is not set.
        ratio: the flag's; None: it is not set.
        slow_seconds: reviews that take so long are exported, sampled or not.
        warnings: gets those of the settings, also if nothing is exported.
    """
    warnings = [] if warnings is None else warnings
    if environment.get("OTEL_SDK_DISABLED", "").strip().lower() == "true":
        return None
    chosen = environment.get("OTEL_TRACES_EXPORTER", "").strip()
    if endpoint is None and not _may_be_on(chosen, warnings):
        return None
    target = otlp_target(environment, "TRACES", warnings, endpoint=endpoint)
    if not target.shown and not chosen:
        return None
    return TraceSettings(
        protocol=target.protocol,
        endpoint=target.endpoint,
        shown_endpoint=_without_credentials(target.shown) or f"localhost, by {target.protocol}",
        sampler=_sampler(environment, ratio, slow_seconds, warnings),
        batches=BatchSettings(
            delay_seconds=_number(environment, "OTEL_BSP_SCHEDULE_DELAY", 5000, warnings) / _MILLISECONDS,
            queue_spans=_number(environment, "OTEL_BSP_MAX_QUEUE_SIZE", 2048, warnings),
            batch_spans=_number(environment, "OTEL_BSP_MAX_EXPORT_BATCH_SIZE", 512, warnings),
            stop_seconds=min(5.0, _number(environment, "OTEL_BSP_EXPORT_TIMEOUT", 30_000, warnings) / _MILLISECONDS),
        ),
        warnings=tuple(warnings),
    )


def _may_be_on(exporter: str, warnings: list[str]) -> bool:
    """Whether OTEL_TRACES_EXPORTER leaves traces on. Without it, it depends on an endpoint."""
    exporters = {name.strip() for name in exporter.split(",")}
    others = sorted(exporters - {"otlp", "none", ""})
    warnings += [f"OTEL_TRACES_EXPORTER: {name!r} is not supported; set otlp or none" for name in others]
    return not exporter or "otlp" in exporters


def otlp_target(
    environment: Mapping[str, str], signal: str, warnings: list[str], *, endpoint: str | None = None
) -> OtlpTarget:
    """Where a signal, such as TRACES, is exported to by OTLP: the first endpoint that can be used.

    Args:
        environment: with OpenTelemetry's variables.
        signal: its name in them.
        warnings: gets one for each variable that is ignored.
        endpoint: the URL of all signals, which comes before the variables; None: there is none.
    """
    chosen = _protocol(environment, signal, warnings)
    own = f"OTEL_EXPORTER_OTLP_{signal}_ENDPOINT"
    path = f"/v1/{signal.lower()}"
    if endpoint is not None:
        protocol = chosen or _usual_protocol(endpoint)
        return OtlpTarget(protocol=protocol, endpoint=_of_signal(endpoint, protocol, path), shown=endpoint)
    ignored = False
    for name in (own, "OTEL_EXPORTER_OTLP_ENDPOINT"):
        url = environment.get(name, "").strip()
        protocol = chosen or _usual_protocol(url)
        if url and (protocol == GRPC or is_url(url)):
            # The exporter would read the variable that is ignored.
            return OtlpTarget(protocol=protocol, endpoint=_of_signal(url, protocol, path) if ignored else "", shown=url)
        if url:
            ignored = True
            shown = _without_credentials(url)[:_SHOWN_CHARACTERS]
            warnings.append(f"{name}: {shown!r} is not a URL such as http://collector:4318; it is ignored")
    protocol = chosen or HTTP
    default = "http://localhost:4317" if protocol == GRPC else "http://localhost:4318"
    return OtlpTarget(protocol=protocol, endpoint=_of_signal(default, protocol, path) if ignored else "")


def _of_signal(url: str, protocol: str, path: str) -> str:
    # "the base URL ... v1/traces relative to this"
    return f"{url.rstrip('/')}{path}" if protocol == HTTP else url


def _protocol(environment: Mapping[str, str], signal: str, warnings: list[str]) -> str:
    for name in (f"OTEL_EXPORTER_OTLP_{signal}_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL"):
        text = environment.get(name, "").strip()
        if text in {GRPC, HTTP}:
            return text
        if text:
            warnings.append(f"{name}: {text!r} is not supported; set {GRPC} or {HTTP}")
    return ""


def _usual_protocol(endpoint: str) -> str:
    try:
        port = urlsplit(endpoint).port
    except ValueError:
        port = None
    return GRPC if port == _GRPC_PORT else HTTP


def is_url(text: str) -> bool:
    """Whether it is a URL to which OTLP can be exported."""
    try:
        found = urlsplit(text)
        return found.scheme in {"http", "https"} and bool(found.hostname) and found.port != 0
    except ValueError:
        return False


def _sampler(
    environment: Mapping[str, str], ratio: float | None, slow_seconds: float, warnings: list[str]
) -> HeadSampler:
    if ratio is not None:
        return HeadSampler(ratio=ratio, slow_seconds=slow_seconds)
    name = environment.get("OTEL_TRACES_SAMPLER", "").strip()
    if not name:
        return HeadSampler(ratio=DEFAULT_RATIO, slow_seconds=slow_seconds)
    found = _SAMPLERS.get(name)
    if found is None:
        known = ", ".join(_SAMPLERS)
        warnings.append(f"OTEL_TRACES_SAMPLER: {name!r} is not supported; set one of {known}")
        return HeadSampler(ratio=DEFAULT_RATIO, slow_seconds=slow_seconds)
    parent_based, given = found
    if given is None:
        given = _ratio(environment.get("OTEL_TRACES_SAMPLER_ARG", "").strip(), warnings)
    return HeadSampler(ratio=given, slow_seconds=slow_seconds, parent_based=parent_based)


def _ratio(text: str, warnings: list[str]) -> float:
    try:
        ratio = float(text or 1.0)
    except ValueError:
        ratio = -1.0
    if 0 <= ratio <= 1:
        return ratio
    warnings.append(f"OTEL_TRACES_SAMPLER_ARG: {text!r} is not a number from 0 to 1; 1 is used")
    return 1.0


def _number(environment: Mapping[str, str], name: str, default: int, warnings: list[str]) -> int:
    text = environment.get(name, "").strip()
    if not text:
        return default
    if text.isascii() and text.isdigit() and 0 < int(text) <= 10**9:
        return int(text)
    warnings.append(f"{name}: {text[:20]!r} is not a number from 1 to 1000000000; {default} is used")
    return default


def _without_credentials(url: str) -> str:
    """For the log: a URL may have a password."""
    head, at, tail = url.rpartition("@")
    return f"{head.partition('://')[0]}://{tail}" if at and "://" in head else tail if at else url
