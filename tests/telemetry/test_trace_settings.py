"""Traces: what OpenTelemetry's variables and the flags mean."""

import pytest
from opentelemetry.sdk.trace.sampling import TraceIdRatioBased

from gateway.engine.trace_context import parent_of
from gateway.telemetry.traces.settings import GRPC, HTTP, otlp_target, trace_settings

ENDPOINT = "OTEL_EXPORTER_OTLP_ENDPOINT"
COLLECTOR = {ENDPOINT: "http://collector:4317"}
TRACE = "0af7651916cd43dd8448eb211c80319c"


@pytest.mark.parametrize(
    ("environment", "endpoint", "on"),
    [
        ({}, None, False),
        ({}, "http://collector:4318", True),
        (COLLECTOR, None, True),
        ({"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://collector:4318/v1/traces"}, None, True),
        (COLLECTOR | {"OTEL_SDK_DISABLED": "True"}, None, False),
        (COLLECTOR | {"OTEL_SDK_DISABLED": "True"}, "http://collector:4318", False),
        (COLLECTOR | {"OTEL_SDK_DISABLED": "yes"}, None, True),
        (COLLECTOR | {"OTEL_TRACES_EXPORTER": "none"}, None, False),
        (COLLECTOR | {"OTEL_TRACES_EXPORTER": "none"}, "http://collector:4318", True),
        ({"OTEL_TRACES_EXPORTER": "otlp"}, None, True),
        ({"OTEL_TRACES_EXPORTER": "console, otlp"}, None, True),
        ({"OTEL_TRACES_EXPORTER": "zipkin"}, None, False),
        ({"OTEL_EXPORTER_OTLP_METRICS_ENDPOINT": "http://collector:4318"}, None, False),
        ({ENDPOINT: "garbage"}, None, False),
        ({ENDPOINT: "garbage", "OTEL_TRACES_EXPORTER": "otlp"}, None, True),
    ],
)
def test_traces_are_on_if_a_flag_or_variable_says_so(environment, endpoint, on):
    """Off by default; OTEL_SDK_DISABLED comes before everything."""
    assert (trace_settings(environment, endpoint=endpoint) is not None) is on


@pytest.mark.parametrize(
    ("environment", "endpoint", "protocol", "url"),
    [
        (COLLECTOR, None, GRPC, ""),
        ({ENDPOINT: "http://collector:4318"}, None, HTTP, ""),
        ({ENDPOINT: "https://collector"}, None, HTTP, ""),
        (COLLECTOR | {"OTEL_EXPORTER_OTLP_PROTOCOL": "http/protobuf"}, None, HTTP, ""),
        ({ENDPOINT: "http://c:4318", "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL": "grpc"}, None, GRPC, ""),
        ({}, "http://collector:4317", GRPC, "http://collector:4317"),
        ({}, "http://collector:4318/", HTTP, "http://collector:4318/v1/traces"),
    ],
)
def test_the_protocol_follows_from_a_variable_or_the_port(environment, endpoint, protocol, url):
    """The flag's URL is that of all signals, as OTEL_EXPORTER_OTLP_ENDPOINT; the variables are left to the exporter."""
    settings = trace_settings(environment, endpoint=endpoint)
    assert (settings.protocol, settings.endpoint) == (protocol, url)


@pytest.mark.parametrize(
    ("sampler", "argument", "ratio", "parent", "root", "sampled"),
    [
        ("", "", None, "01", None, True),
        ("", "", None, "00", None, False),
        ("always_on", "", None, "00", None, True),
        ("always_off", "", None, "01", None, False),
        ("parentbased_always_on", "", None, None, "ff", True),
        ("parentbased_always_off", "", None, None, "00", False),
        ("parentbased_always_off", "", None, "01", None, True),
        ("traceidratio", "0.5", None, None, "7f", True),
        ("traceidratio", "0.5", None, None, "81", False),
        ("parentbased_traceidratio", "0.5", None, None, "81", False),
        ("parentbased_traceidratio", "0.5", None, "01", None, True),
        ("always_off", "", 1.0, None, "ff", True),
        ("always_on", "", 0.0, "00", None, False),
    ],
)
def test_samplers_are_opentelemetrys(monkeypatch, sampler, argument, ratio, parent, root, sampled):
    """The flag comes before the variable. ``root`` is the first byte of the half of a trace's id that counts."""
    environment = COLLECTOR | {"OTEL_TRACES_SAMPLER": sampler, "OTEL_TRACES_SAMPLER_ARG": argument}
    random = bytes.fromhex(f"{TRACE[:16]}{root or '00'}{'0' * 13}1") * 64
    monkeypatch.setattr("gateway.telemetry.traces.sampling.randbytes", lambda number: random[:number])
    begun = trace_settings(environment, ratio=ratio).sampler.begin(
        parent_of([f"00-{TRACE}-b7ad6b7169203331-{parent}"], []) if parent else None
    )
    assert begun.sampled is sampled
    assert begun.traceparent[-2:] == f"0{int(sampled)}"


@pytest.mark.parametrize("ratio", [0.0, 0.3, 1.0])
def test_traces_without_a_parent_are_new_ones(ratio):
    """Each has valid ids of its own, and is sampled as OpenTelemetry's sampler decides for its id."""
    begin = trace_settings(COLLECTOR, ratio=ratio).sampler.begin
    traces = [begin(None) for _ in range(200)]
    assert len({trace.trace_id for trace in traces}) == len({trace.span_id for trace in traces}) == len(traces)
    theirs = TraceIdRatioBased(ratio)
    for trace in traces:
        parent = parent_of([trace.traceparent], [])
        assert (parent.trace_id, int(parent.span_id, 16)) == (trace.trace_id, trace.span_id)
        assert trace.sampled is theirs.should_sample(None, int(trace.trace_id, 16), "").decision.is_sampled()


def test_invalid_variables_are_ignored_with_a_warning():
    """A start does not depend on them."""
    settings = trace_settings(
        COLLECTOR
        | {
            "OTEL_TRACES_EXPORTER": "otlp,jaeger",
            "OTEL_EXPORTER_OTLP_PROTOCOL": "http/json",
            "OTEL_TRACES_SAMPLER": "jaeger_remote",
            "OTEL_BSP_SCHEDULE_DELAY": "soon",
            "OTEL_BSP_MAX_QUEUE_SIZE": "0",
        }
    )
    assert len(settings.warnings) == 5
    assert settings.sampler.ratio == 0.01
    assert (settings.batches.delay_seconds, settings.batches.queue_spans) == (5.0, 2048)


@pytest.mark.parametrize("url", ["garbage", "garbage://nowhere", "http://[::", "http://", "http://c:99999", "c:4317"])
@pytest.mark.parametrize("signal", ["TRACES", "LOGS"])
def test_an_endpoint_that_is_no_url_is_ignored_with_a_warning(url, signal):
    """As if it were not set: the variable of all signals holds, or the default."""
    own = f"OTEL_EXPORTER_OTLP_{signal}_ENDPOINT"
    path = f"/v1/{signal.lower()}"
    for others, protocol, endpoint in (
        ({}, HTTP, f"http://localhost:4318{path}"),
        ({"OTEL_EXPORTER_OTLP_PROTOCOL": "http/protobuf"} | COLLECTOR, HTTP, f"http://collector:4317{path}"),
        (COLLECTOR, GRPC, "http://collector:4317"),
    ):
        warnings = []
        target = otlp_target({own: url} | others, signal, warnings)
        assert (target.protocol, target.endpoint) == (protocol, endpoint)
        assert warnings == [f"{own}: {url!r} is not a URL such as http://collector:4318; it is ignored"]


@pytest.mark.parametrize("target", ["collector:4317", "dns:///collector:4317"])
def test_grpc_has_names_of_its_own(target):
    """OpenTelemetry: "The option SHOULD accept any form allowed by the underlying gRPC client implementation"."""
    warnings = []
    settings = trace_settings({ENDPOINT: target, "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"}, warnings=warnings)
    assert (settings.protocol, settings.endpoint, settings.shown_endpoint, warnings) == (GRPC, "", target, [])


def test_what_is_ignored_is_said_also_without_traces():
    """They are off because of it; a password is not shown."""
    warnings = []
    assert trace_settings({ENDPOINT: "gopher://user:secret@host"}, warnings=warnings) is None
    assert warnings == [f"{ENDPOINT}: 'gopher://host' is not a URL such as http://collector:4318; it is ignored"]


def test_a_password_in_the_endpoint_is_not_shown():
    """The log names the endpoint."""
    settings = trace_settings({}, endpoint="https://user:secret@collector:4318")
    assert settings.shown_endpoint == "https://collector:4318"
